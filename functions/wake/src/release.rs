//! Releasing one object: send its messages, then delete it.

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::delivery::Delivery;
use posthaste_core::time::Timestamp;
use posthaste_core::wire::{WireError, parse_delivery, parse_parked, render_delivery, render_parked};
use posthaste_ports::guard::{Panicked, guarded};
use posthaste_ports::sending::send_all;
use posthaste_ports::{
    Clock, ETag, Entropy, ObjectStore, OutgoingMessage, PortError, PutCondition, QueueSender,
};

use crate::{Wake, WakeReport};

/// Objects released at once.
pub(crate) const RELEASES_AT_ONCE: usize = 8;

/// Why an object stays where it is until the next run.
#[derive(Debug, thiserror::Error)]
enum ReleaseError {
    #[error("failed to read or delete the object")]
    Store(#[source] PortError),
    #[error("failed to understand the object")]
    Object(#[source] WireError),
    #[error("failed in the middle")]
    Panicked(#[source] Panicked),
    #[error("failed to send {failed} of {messages} messages")]
    Send {
        failed: usize,
        messages: usize,
        #[source]
        first: PortError,
    },
}

impl<Q, S, C, E> Wake<Q, S, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Releases the objects of these keys at once.
    pub(crate) async fn release_some(&self, keys: &[String], report: &mut WakeReport) {
        let releases = join_all(keys.iter().map(|key| guarded(self.release(key)))).await;
        for (released, key) in releases.into_iter().zip(keys) {
            match released.map_err(ReleaseError::Panicked).flatten() {
                Ok(sent) => {
                    report.released += 1;
                    report.sent += sent;
                }
                Err(error) => {
                    report.left += 1;
                    tracing::error!(%key, error = &error as &dyn std::error::Error, "parked deliveries not released");
                }
            }
        }
    }

    async fn release(&self, key: &str) -> Result<usize, ReleaseError> {
        let Some(object) = self.ports.state.get(key).await.map_err(ReleaseError::Store)? else {
            return Ok(0);
        };
        let messages = parse_parked(&object.bytes).map_err(ReleaseError::Object)?;
        let count = messages.len();
        let now = self.ports.clock.now();
        let outgoing = messages.iter().map(|message| outgoing(message, now)).collect();
        let sent = send_all(&self.ports.deliveries, outgoing).await;
        let (mut unsent, mut first) = (Vec::new(), None);
        for (message, sent) in messages.into_iter().zip(sent) {
            if let Err(error) = sent {
                unsent.push(message);
                first.get_or_insert(error);
            }
        }
        let Some(first) = first else {
            self.ports.state.delete(key).await.map_err(ReleaseError::Store)?;
            return Ok(count);
        };
        if unsent.len() < count {
            self.keep_unsent(key, &unsent, object.etag).await;
        }
        Err(ReleaseError::Send { failed: unsent.len(), messages: count, first })
    }

    /// Leaves in the object what was not sent, so that the next run does not send the rest once more. If that fails it
    /// does: at least once.
    async fn keep_unsent(&self, key: &str, unsent: &[Bytes], etag: ETag) {
        let kept = self.ports.state.put(key, render_parked(unsent), PutCondition::IfMatch(etag)).await;
        if let Err(error) = kept {
            tracing::warn!(%key, error = &error as &dyn std::error::Error, "parked object not shortened, its messages are sent again");
        }
    }
}

/// A parked message as it goes back: due from now on, because the time it spent waiting for us must not read as a slow
/// drain. One that cannot be read goes as it is: deliver keeps it byte for byte.
fn outgoing(message: &Bytes, now: Timestamp) -> OutgoingMessage {
    match parse_delivery(message) {
        Ok(delivery) => {
            let delivery = Delivery { not_before: now, ..delivery };
            let group = Some(delivery.group());
            OutgoingMessage { body: render_delivery(&delivery), group, delay_secs: 0 }
        }
        Err(_) => OutgoingMessage { body: message.clone(), group: None, delay_secs: 0 },
    }
}
