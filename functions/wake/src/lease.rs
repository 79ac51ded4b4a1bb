//! The lease that keeps two runs apart: an object with a time at which it lapses. It also carries from one run to the next
//! how far the list is known to be empty.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::layout::WAKE_LEASE;
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, ObjectStore, PortError, PutCondition, QueueSender};
use serde::{Deserialize, Serialize};

use crate::Wake;
use crate::set_back::Look;

/// How long a lease holds when its holder dies: longer than a run may go on.
const LEASE_LENGTH: Duration = Duration::from_secs(90);

/// What one run leaves for the next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Notes {
    /// The oldest minute, since the epoch, for which something may still be parked. `None` if that is not known.
    pub(crate) open_from_minute: Option<u64>,
    /// When what lies before that minute is looked at all the same.
    pub(crate) scan_at: Option<Timestamp>,
    /// The last temporary topic that was looked at, where a run did not come to the end of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) swept_to: Option<String>,
    /// The key after which a run goes on to look for held deliveries that did not come to the end of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) held_to: Option<String>,
    /// The last parked object that was looked at under pressure for what has expired, where a run did not come to the end
    /// of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expired_to: Option<String>,
    /// When the last run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) began_at: Option<Timestamp>,
    /// When runs began again after an outage. `None` if none is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) awake_since: Option<Timestamp>,
    /// The look for what a clock parked that was ahead. `None` if all was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) look: Option<Look>,
}

/// A lease as it is stored. Those of older programs have nothing but their time.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct LeaseObject {
    lapses_at: Timestamp,
    /// Whose it is, or was last. No two runs write the same bytes, or a store that recognizes its own write by them
    /// would let both in.
    #[serde(default)]
    holder: String,
    #[serde(flatten)]
    notes: Notes,
}

/// A lease that is held.
#[derive(Debug)]
pub(crate) struct Lease {
    etag: ETag,
    holder: String,
    /// What the last run left.
    pub(crate) notes: Notes,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Takes the lease; `None` if somebody else has it.
    pub(crate) async fn take_lease(&self) -> Result<Option<Lease>, PortError> {
        let now = self.ports.clock.now();
        let (condition, notes) = match self.ports.state.get(WAKE_LEASE).await? {
            None => (PutCondition::IfAbsent, Notes::default()),
            Some(object) => {
                // A lease that cannot be read, or lapses later than any we give, has lapsed: it keeps nobody out for ever.
                let held: Option<LeaseObject> = serde_json::from_slice(&object.bytes).ok();
                let is_held =
                    |held: &LeaseObject| held.lapses_at > now && held.lapses_at <= now + LEASE_LENGTH;
                if held.as_ref().is_some_and(is_held) {
                    return Ok(None);
                }
                (PutCondition::IfMatch(object.etag), held.map(|held| held.notes).unwrap_or_default())
            }
        };
        let holder = self.ports.entropy.uuid().to_string();
        // The notes stay as they are until the run has ended: of one that is killed the next knows nothing else.
        let lease =
            LeaseObject { lapses_at: now + LEASE_LENGTH, holder: holder.clone(), notes: notes.clone() };
        match self.write_lease(&lease, condition).await {
            Ok(etag) => Ok(Some(Lease { etag, holder, notes })),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets the lease lapse at once, and leaves these notes. If that fails it lapses by itself, and the next run looks
    /// where this one did.
    pub(crate) async fn give_back(&self, lease: Lease, notes: Notes) {
        let lapsed = LeaseObject { lapses_at: Timestamp::EPOCH, holder: lease.holder, notes };
        if let Err(error) = self.write_lease(&lapsed, PutCondition::IfMatch(lease.etag)).await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "lease not given back, it lapses by itself"
            );
        }
    }

    async fn write_lease(&self, lease: &LeaseObject, condition: PutCondition) -> Result<ETag, PortError> {
        let lease = serde_json::to_vec(lease).unwrap_or_default();
        self.ports.state.put(WAKE_LEASE, Bytes::from(lease), condition).await
    }
}
