//! The steps after a write of subscriptions: changes of link health, and handshakes. The write is
//! durable before and stays, even if a step fails.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use posthaste_core::api::edit::SubscriptionChange;
use posthaste_core::stored::TopicRecord;
use posthaste_ports::{Clock, Ports};

use crate::handshakes::HandshakeRunner;
use crate::health_changes::{HealthChanges, HealthWriter};
use crate::manage::Manage;

/// The steps after a write of subscriptions.
pub(crate) struct WriteFollowUp<P: Ports> {
    clock: P::Clock,
    health: HealthWriter<P>,
    handshakes: HandshakeRunner<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for WriteFollowUp<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            clock: manage.clock.clone(),
            health: HealthWriter::from_ref(manage),
            handshakes: HandshakeRunner::from_ref(manage),
        }
    }
}

impl<P: Ports> WriteFollowUp<P> {
    /// Ends holds and forgets the health of endpoints that changed, then runs the handshakes, until
    /// a time of the clock's `monotonic`. Answers the record with the endpoints' answers.
    pub(crate) async fn follow_up_write(
        &self,
        record: TopicRecord,
        changes: &[SubscriptionChange],
        until: Duration,
    ) -> TopicRecord {
        let written_at = self.clock.monotonic();
        let health = HealthChanges::after_write(&record, changes);
        self.health
            .apply_after_write(&record.name, &health, until)
            .await;
        let pending = changes
            .iter()
            .filter_map(|change| change.handshake.clone())
            .collect();
        // Only this answer shows a secret that was made. So the record is answered even if the
        // outcome of the handshakes cannot be written; they are then still pending.
        let ends = self.handshakes.handshake_ends(until);
        self.handshakes
            .shake_hands(record.clone(), pending, ends, written_at)
            .await
            .unwrap_or_else(|error| {
                tracing::warn!(
                    topic = %record.name, problem = error.0.kind.title(),
                    "outcome of handshakes not written; they are still to be run"
                );
                record
            })
    }
}
