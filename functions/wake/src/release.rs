//! Releasing one object: send its messages, then delete it.

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::batch::Pack;
use posthaste_core::delivery::Delivery;
use posthaste_core::limits::{SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX};
use posthaste_core::time::Timestamp;
use posthaste_core::wire::{WireError, parse_delivery, parse_parked, render_delivery, render_parked};
use posthaste_ports::guard::{Panicked, guarded};
use posthaste_ports::sending::{BATCHES_AT_ONCE_MAX, send_all};
use posthaste_ports::{
    Clock, ETag, Entropy, ObjectStore, OutgoingMessage, PortError, PutCondition, QueueSender,
};

use crate::Wake;
use crate::course::Course;
use crate::limits::{Limits, within};

/// Objects released at once.
pub(crate) const RELEASES_AT_ONCE: usize = 8;

/// What is sent between two looks at the clock: as much as is under way at once.
const WAVE: Pack = Pack {
    items_max: SQS_BATCH_ENTRIES_MAX * BATCHES_AT_ONCE_MAX,
    bytes_preferred: SQS_MESSAGE_BYTES_MAX * BATCHES_AT_ONCE_MAX,
};

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
    #[error("failed to send {unsent} of {messages} messages in time")]
    OutOfTime { unsent: usize, messages: usize },
}

impl ReleaseError {
    /// Whether the object will be no better in a minute. It is then tried again with what was written late: if the next
    /// lists began at it, they would walk for days past everything that was released since.
    fn is_lasting(&self) -> bool {
        // A newer program can read what is merely newer.
        matches!(self, Self::Object(error) if !matches!(error, WireError::Newer(_)))
    }
}

/// What is left of an object's messages.
#[derive(Debug, Default)]
struct Unsent {
    messages: Vec<Bytes>,
    /// The first error; without one there was no time.
    first: Option<PortError>,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Releases the objects of these keys at once.
    pub(crate) async fn release_some(&self, keys: &[String], limits: Limits, course: &mut Course) {
        let releases = join_all(keys.iter().map(|key| guarded(self.release(key, limits)))).await;
        for (released, key) in releases.into_iter().zip(keys) {
            match released.map_err(ReleaseError::Panicked).flatten() {
                Ok(sent) => {
                    course.report.released += 1;
                    course.report.sent += sent;
                }
                Err(error) => {
                    course.report.left += 1;
                    if !error.is_lasting() {
                        course.hold(std::slice::from_ref(key));
                    }
                    tracing::error!(%key, error = &error as &dyn std::error::Error, "parked deliveries not released");
                }
            }
        }
        course.tried(keys);
    }

    async fn release(&self, key: &str, limits: Limits) -> Result<usize, ReleaseError> {
        let Some(object) = self.ports.state.get(key).await.map_err(ReleaseError::Store)? else {
            return Ok(0);
        };
        let messages = parse_parked(&object.bytes).map_err(ReleaseError::Object)?;
        let count = messages.len();
        let Unsent { messages: unsent, first } = self.send_in_waves(messages, limits).await;
        if unsent.is_empty() {
            self.ports.state.delete(key).await.map_err(ReleaseError::Store)?;
            return Ok(count);
        }
        if unsent.len() < count {
            self.keep_unsent(key, &unsent, object.etag).await;
        }
        let failed = unsent.len();
        Err(first.map_or(ReleaseError::OutOfTime { unsent: failed, messages: count }, |first| {
            ReleaseError::Send { failed, messages: count, first }
        }))
    }

    /// Sends while there is time. What a wave was about when it was given up counts as not sent, although some of it may
    /// have been: at least once.
    async fn send_in_waves(&self, messages: Vec<Bytes>, limits: Limits) -> Unsent {
        let clock = &self.ports.clock;
        let mut left = Unsent::default();
        for wave in WAVE.cut(messages.iter().map(Bytes::len)) {
            let wave = &messages[wave];
            if clock.monotonic() >= limits.begin {
                left.messages.extend_from_slice(wave);
                continue;
            }
            let now = clock.now();
            let outgoing = wave.iter().map(|message| outgoing(message, now)).collect();
            let Some(sent) = within(clock, limits.send, send_all(&self.ports.deliveries, outgoing)).await
            else {
                left.messages.extend_from_slice(wave);
                continue;
            };
            for (message, sent) in wave.iter().zip(sent) {
                if let Err(error) = sent {
                    left.messages.push(message.clone());
                    left.first.get_or_insert(error);
                }
            }
        }
        left
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
