//! The lease that keeps two runs apart: an object with a time at which it lapses.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::layout::WAKE_LEASE;
use posthaste_core::time::Timestamp;
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, QueueSender};
use serde::{Deserialize, Serialize};

use crate::Wake;

/// How long a lease holds when its holder dies: longer than a run may go on.
const LEASE_LENGTH: Duration = Duration::from_secs(90);

/// A lease as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lease {
    lapses_at: Timestamp,
}

impl<Q, S, C, E> Wake<Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Takes the lease; `None` if somebody else has it.
    pub(crate) async fn take_lease(&self) -> Result<Option<ETag>, PortError> {
        let now = self.ports.clock.now();
        let condition = match self.ports.state.get(WAKE_LEASE).await? {
            None => PutCondition::IfAbsent,
            Some(object) => {
                // A lease that cannot be read, or lapses later than any we give, has lapsed: it keeps nobody out for ever.
                let lapses_at = serde_json::from_slice(&object.bytes).map(|lease: Lease| lease.lapses_at);
                if lapses_at.is_ok_and(|lapses_at| lapses_at > now && lapses_at <= now + LEASE_LENGTH) {
                    return Ok(None);
                }
                PutCondition::IfMatch(object.etag)
            }
        };
        match self.write_lease(now + LEASE_LENGTH, condition).await {
            Ok(etag) => Ok(Some(etag)),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the lease lapse at once. If that fails it lapses by itself.
    pub(crate) async fn give_back(&self, lease: ETag) {
        if let Err(error) = self.write_lease(Timestamp::EPOCH, PutCondition::IfMatch(lease)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "lease not given back, it lapses by itself"
            );
        }
    }

    async fn write_lease(&self, lapses_at: Timestamp, condition: PutCondition) -> Result<ETag, PortError> {
        let lease = serde_json::to_vec(&Lease { lapses_at }).unwrap_or_default();
        self.ports.state.put(WAKE_LEASE, Bytes::from(lease), condition).await
    }
}
