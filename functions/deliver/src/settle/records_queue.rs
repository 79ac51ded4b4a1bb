//! The queue of records, on their way into the delivery log.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, ErrorKind, OutgoingMessage, PortError, Ports};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{Tally, send_all, timeout};

use crate::limits::RecordsSettings;
use crate::records::{count_lost, log_lost};

/// The longest time that messages wait for the records of their group. What is late is lost, since a message
/// that is handed back sends its webhook again.
pub(crate) const RECORDS_TIME: Duration = Duration::from_secs(2);

const SENDING: &str = "send records of the delivery log";

/// Sends records.
pub(crate) struct RecordsQueue<P: Ports> {
    pub(crate) queue: Arc<P::Queue>,
    pub(crate) clock: P::Clock,
    pub(crate) settings: RecordsSettings,
    /// Records that were lost.
    pub(crate) lost: Tally,
}

impl<P: Ports> RecordsQueue<P> {
    /// Sends messages of records. An `Err` means that some may be missing.
    pub(crate) async fn send(&self, bodies: Vec<Bytes>) -> Result<(), PortError> {
        let sent = catch_panic(send_all(&*self.queue, bodies.into_iter().map(record_message).collect()));
        let sent = timeout(&self.clock, RECORDS_TIME, sent).await;
        let sent = sent.ok_or_else(|| PortError::new(SENDING, ErrorKind::TimedOut))?;
        let sent = sent.map_err(|panicked| PortError::caused(SENDING, ErrorKind::Other, panicked))?;
        sent.into_iter().collect()
    }

    /// Counts records that are missing in the log, by topic, and logs them: while all are refused, one line a
    /// minute.
    pub(crate) fn report_lost(&self, lost: &BTreeMap<&TopicName, usize>, error: &PortError) {
        count_lost(lost);
        let records = lost.values().sum::<usize>() as u64;
        if let Some(records) = self.lost.add(records, self.clock.monotonic()) {
            log_lost(records, error);
        }
    }
}

/// A message of records.
pub(crate) fn record_message(body: Bytes) -> OutgoingMessage {
    OutgoingMessage { body, group: None, delay_secs: 0 }
}
