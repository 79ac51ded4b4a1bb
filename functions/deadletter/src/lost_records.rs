//! Records of the delivery log that were never written: a gap in the log, which is counted.
//!
//! Such a message comes from the redrive queue. Its records are about deliveries and are none, so
//! that no endpoint misses an event. They are not kept: the bucket of dead letters is for what can
//! be sent again.

use crate::receive::LostRecords;

/// Counts and logs the records of a message, which is then let go.
pub(crate) fn count_lost_records(lost: &LostRecords) {
    let LostRecords { message, topics } = lost;
    let records: usize = topics.values().sum();
    tracing::error!(
        message_id = %message.id.0, records, "records of the delivery log are lost, record failed on them"
    );
    for (topic, records) in topics {
        metrics::counter!("LogRecordsLostCount", "topic" => topic.clone())
            .increment(*records as u64);
    }
}
