//! The queue of records, on their way into the delivery log.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, PortError, Ports};
use posthaste_services::Tally;
use posthaste_services::delivery_log::{count_lost, log_lost, send_records};

use crate::limits::RecordsSettings;

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
        send_records(&*self.queue, &self.clock, bodies).await
    }

    /// Counts records that are missing in the log, by topic, and logs them: while all are refused, one line a
    /// minute.
    pub(crate) fn report_lost(&self, lost: &BTreeMap<&TopicName, usize>, error: &PortError) {
        if let Some(records) = self.lost.add(count_lost(lost), self.clock.monotonic()) {
            log_lost(records, error);
        }
    }
}
