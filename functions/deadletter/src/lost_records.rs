//! Records of the delivery log that were never written: a gap in the log, which is counted.
//!
//! Such a message comes from the redrive queue. Its records are about deliveries and are none, so
//! that no endpoint misses an event. They are not kept: the bucket of dead letters is for what can
//! be sent again.

use posthaste_ports::Ports;

use crate::dead_letters::DeadLetters;
use crate::receive::LostRecords;

impl<P: Ports> DeadLetters<P> {
    /// Counts and logs the records of a message, and lets it go.
    pub(crate) async fn count_lost_records(&self, LostRecords { message, topics }: LostRecords) {
        let records: usize = topics.values().sum();
        tracing::error!(
            message_id = %message.id.0, records, "records of the delivery log are lost, record failed on them"
        );
        for (topic, records) in topics {
            metrics::counter!("LogRecordsLostCount", "topic" => topic).increment(records as u64);
        }
        self.acknowledge(&message).await;
    }
}
