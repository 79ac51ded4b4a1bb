//! The steps after a write of subscriptions. The write is durable, whatever comes of them.

use std::time::Duration;

use posthaste_core::api::edit::SubscriptionChange;
use posthaste_core::stored::TopicRecord;
use posthaste_ports::Ports;

use crate::health_changes::HealthChanges;
use crate::manage::Manage;

impl<P: Ports> Manage<P> {
    /// Ends or forgets what is known of endpoints that changed, then asks those that must consent, until a
    /// time of the clock's `monotonic`. Answers the record with what the endpoints said.
    pub(crate) async fn follow_up(
        &self,
        record: TopicRecord,
        changes: &[SubscriptionChange],
        until: Duration,
    ) -> TopicRecord {
        self.apply_after_write(&record.name, &HealthChanges::after_write(&record, changes), until).await;
        let pending: Vec<_> = changes.iter().filter_map(|change| change.handshake.clone()).collect();
        // This answer is the only one that shows a secret that was made. So the record is answered also where
        // the outcome of the handshakes cannot be kept: then they are still to be run.
        self.shake_hands(record.clone(), pending, until).await.unwrap_or_else(|error| {
            let problem = error.0;
            tracing::warn!(
                topic = %record.name, ?problem, "outcome of handshakes not written; they are still to be run"
            );
            record
        })
    }
}
