//! The way of the delivery log's records into their queue. A record that does not get there is a
//! gap in the log: it is counted and logged, and no delivery waits for it.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use metrics::counter;
use posthaste_core::model::TopicName;
use posthaste_ports::{Clock, ErrorKind, OutgoingMessage, PortError, QueueSender};

use crate::catch_panic::catch_panic;
use crate::send_all::send_all;
use crate::timeout_at::timeout;

/// The longest time that messages wait for their records. Later ones are lost, since a message that
/// is handed back sends its webhook, or writes its dead letter, again.
pub const RECORDS_TIME: Duration = Duration::from_secs(2);

const SENDING: &str = "send records of the delivery log";

/// An error for records that are missing because they could not be made.
#[derive(Debug, thiserror::Error)]
#[error("a record cannot be made")]
pub struct RecordNotMade;

/// Sends messages of records to their queue. An `Err` means that some may be missing.
pub async fn send_records(
    queue: &impl QueueSender,
    clock: &impl Clock,
    bodies: Vec<Bytes>,
) -> Result<(), PortError> {
    let sent = catch_panic(send_all(
        queue,
        bodies.into_iter().map(record_message).collect(),
    ));
    let sent = timeout(clock, RECORDS_TIME, sent).await;
    let sent = sent.ok_or_else(|| PortError::new(SENDING, ErrorKind::TimedOut))?;
    let sent =
        sent.map_err(|panicked| PortError::with_cause(SENDING, ErrorKind::Other, panicked))?;
    sent.into_iter().collect()
}

/// A message of records.
pub fn record_message(body: Bytes) -> OutgoingMessage {
    OutgoingMessage {
        body,
        group: None,
        delay: Duration::ZERO,
    }
}

/// Counts records that are missing in the log, by topic, and logs them.
pub fn report_lost(lost: &BTreeMap<&TopicName, usize>, error: &(dyn Error + 'static)) {
    log_lost(count_lost(lost), error);
}

/// Counts records that are missing in the log, by topic, and returns their sum.
pub fn count_lost(lost: &BTreeMap<&TopicName, usize>) -> u64 {
    for (topic, records) in lost {
        counter!("LogRecordsLostCount", "topic" => topic.to_string()).increment(*records as u64);
    }
    lost.values().sum::<usize>() as u64
}

/// Logs records that are missing in the log.
pub fn log_lost(records: u64, error: &(dyn Error + 'static)) {
    tracing::error!(
        records,
        error,
        "records of the delivery log lost, their deliveries are settled"
    );
}
