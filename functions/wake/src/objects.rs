//! Objects of parked and held deliveries: opened, their messages sent, and closed. An object is
//! deleted only when all of its messages were sent, so a crash or a failed send makes copies and
//! loses nothing.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::attempt::PackingLimits;
use posthaste_core::model::{SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX};
use posthaste_core::release::messages::requeued_message;
use posthaste_core::stored::parked::{parse_parked, render_parked};
use posthaste_core::stored::{FormatError, layout};
use posthaste_ports::{
    Clock, ETag, ErrorKind, ObjectStore, OutgoingMessage, PortError, Ports, PutCondition,
};
use posthaste_services::catch_panic::CaughtPanic;
use posthaste_services::send_all::BATCHES_AT_ONCE_MAX;
use posthaste_services::timeout_at;

use crate::cancellations::{CancellationError, mark_cancelled};
use crate::ports::WakePorts;
use crate::run::WakeRun;
use crate::waits;

/// Objects released at once.
pub(crate) const RELEASES_AT_ONCE: usize = 8;

/// Messages that are sent between two looks at the clock: as many as are on their way at once.
const WAVE: PackingLimits = PackingLimits {
    items_max: SQS_BATCH_ENTRIES_MAX * BATCHES_AT_ONCE_MAX,
    bytes_preferred: SQS_MESSAGE_BYTES_MAX * BATCHES_AT_ONCE_MAX,
};

/// Why an object stays where it is until the next run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    #[error("failed to read or delete the object")]
    Store(#[source] PortError),
    #[error("failed to look for what was taken back")]
    Cancellations(#[source] CancellationError),
    /// The object still holds what was sent. The next run sends that again; this one must not.
    #[error("failed to shorten the object")]
    Shorten(#[source] PortError),
    #[error("failed to understand the object")]
    Object(#[source] FormatError),
    #[error("failed in the middle")]
    Panicked(#[source] CaughtPanic),
    #[error("failed to send {failed} of {messages} messages")]
    Send {
        failed: usize,
        messages: usize,
        #[source]
        first: Arc<PortError>,
    },
    #[error("failed to send {unsent} of {messages} messages in time")]
    OutOfTime { unsent: usize, messages: usize },
}

/// An object that was read.
#[derive(Debug)]
pub(crate) struct OpenedObject {
    /// Key of the object.
    pub(crate) key: String,
    /// Messages, in order.
    pub(crate) messages: Vec<Bytes>,
    pub(crate) etag: ETag,
}

/// The result of sending messages.
#[derive(Debug, Default)]
pub(crate) struct SentMessages {
    /// True for each message, in order, that was sent.
    pub(crate) is_sent: Vec<bool>,
    /// The first error. If something was not sent and there is no error, there was no time.
    pub(crate) first: Option<Arc<PortError>>,
}

/// Releases an object; answers how many messages were sent.
pub(crate) async fn release<P: Ports>(
    run: WakeRun<'_, P>,
    key: &str,
) -> Result<usize, ReleaseError> {
    let Some(opened) = open(run, key).await? else {
        return Ok(0);
    };
    let sent = send_messages(run, &opened.messages).await;
    close(run.ports, opened, &sent.is_sent, sent.first)
        .await
        .map(|_| sent.is_sent.len())
}

/// Reads an object; `None` if it is gone. What was published for later and taken back is marked.
pub(crate) async fn open<P: Ports>(
    run: WakeRun<'_, P>,
    key: &str,
) -> Result<Option<OpenedObject>, ReleaseError> {
    let ports = run.ports;
    Box::pin(waits::note_late(ports, key)).await;
    let Some(object) = ports.state.get(key).await.map_err(ReleaseError::Store)? else {
        return Ok(None);
    };
    let mut messages = parse_parked(&object.bytes).map_err(ReleaseError::Object)?;
    let owner = layout::parked_folder(key).and_then(layout::folder_owner);
    if let Some((topic, _)) = owner.filter(|_| layout::is_scheduled(key)) {
        let marked = Box::pin(mark_cancelled(ports, run.cancellations, &topic, messages));
        messages = marked.await.map_err(ReleaseError::Cancellations)?;
    }
    Ok(Some(OpenedObject {
        key: key.to_owned(),
        etag: object.etag,
        messages,
    }))
}

/// Sends while there is time. A wave that is given up counts as not sent, although some of it may
/// have been: at least once.
pub(crate) async fn send_messages<P: Ports>(
    run: WakeRun<'_, P>,
    messages: &[Bytes],
) -> SentMessages {
    let clock = &run.ports.clock;
    let mut all = SentMessages::default();
    for wave in WAVE.cut_into_runs(messages.iter().map(Bytes::len)) {
        let wave = &messages[wave];
        let end = all.is_sent.len() + wave.len();
        if run.has_time() {
            let now = clock.now();
            let requeued = wave.iter().map(|message| requeued_message(message, now));
            let outgoing = requeued.map(|(body, group)| OutgoingMessage {
                body,
                group,
                delay: Duration::ZERO,
            });
            let sent = run.ports.send_messages(outgoing.collect());
            for sent in timeout_at(clock, run.send, Box::pin(sent))
                .await
                .into_iter()
                .flatten()
            {
                all.is_sent.push(sent.is_ok());
                all.first = all.first.or_else(|| sent.err().map(Arc::new));
            }
        }
        all.is_sent.resize(end, false);
    }
    all
}

/// Deletes an object all of whose messages were sent. In any other object it keeps the messages
/// that were not: `is_sent` tells of the first ones, and the others were left for later. Answers the
/// key of what is kept.
pub(crate) async fn close<P: Ports>(
    ports: &WakePorts<P>,
    opened: OpenedObject,
    is_sent: &[bool],
    first: Option<Arc<PortError>>,
) -> Result<String, ReleaseError> {
    let OpenedObject {
        key,
        etag,
        messages,
    } = opened;
    let all = messages.len();
    let unsent: Vec<_> = messages
        .into_iter()
        .enumerate()
        .filter(|(index, _)| is_sent.get(*index) != Some(&true))
        .map(|(_, message)| message)
        .collect();
    if unsent.is_empty() {
        let deleted = ports.state.delete(&key).await;
        return deleted.map(|()| key).map_err(ReleaseError::Store);
    }
    let kept = if unsent.len() < all {
        keep_unsent(&ports.state, &key, &unsent, etag).await
    } else {
        Ok(key)
    };
    // A refusal of the queue matters more: it ends the run's releases.
    refusal_error(is_sent, first).map_or(kept.map_err(ReleaseError::Shorten), Err)
}

/// Leaves in the object what was not sent, so that the next run does not send the rest again. If
/// that fails it does: at least once. The key says what the object carries, so the rest has another
/// one; answers it.
async fn keep_unsent(
    store: &impl ObjectStore,
    key: &str,
    unsent: &[Bytes],
    etag: ETag,
) -> Result<String, PortError> {
    let rest = layout::key_of_rest(key, unsent);
    let kept = if rest == key {
        store
            .put(key, render_parked(unsent), PutCondition::IfMatch(etag))
            .await
            .map(drop)
    } else {
        move_rest(store, key, &rest, unsent).await
    };
    if let Err(error) = &kept {
        let error = error as &dyn Error;
        tracing::warn!(%key, error, "object not shortened, its messages are sent again");
    }
    kept.map(|()| rest)
}

/// Puts the rest of an object under its own key, and then deletes the object. A crash in between
/// leaves both: at least once.
async fn move_rest(
    store: &impl ObjectStore,
    key: &str,
    rest: &str,
    unsent: &[Bytes],
) -> Result<(), PortError> {
    store
        .put(rest, render_parked(unsent), PutCondition::Always)
        .await?;
    store.delete(key).await
}

impl ReleaseError {
    /// Tells whether the object will be no better in a minute. The daily scan of the list's start
    /// tries it again: if the next lists began at it, they would walk for days past everything
    /// that was released since.
    pub(crate) fn is_lasting(&self) -> bool {
        // A newer program can read a newer object.
        match self {
            Self::Object(error) => !matches!(error, FormatError::Newer(_)),
            Self::Cancellations(CancellationError::Note(error)) => {
                !matches!(error, FormatError::Newer(_))
            }
            Self::Store(error) => error.kind == ErrorKind::Damaged,
            _ => false,
        }
    }

    /// Tells whether the queue did not take something, or not in time: it will not take anything
    /// else either.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::OutOfTime { .. })
    }
}

/// The error of messages that were tried, if some were not sent.
fn refusal_error(is_sent: &[bool], first: Option<Arc<PortError>>) -> Option<ReleaseError> {
    let failed = is_sent.iter().filter(|is_sent| !**is_sent).count();
    let messages = is_sent.len();
    (failed > 0).then(|| match first {
        Some(first) => ReleaseError::Send {
            failed,
            messages,
            first,
        },
        None => ReleaseError::OutOfTime {
            unsent: failed,
            messages,
        },
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::model::{CarriedEvents, EventPayload, Timestamp};
    use posthaste_core::stored::delivery::render_delivery;
    use posthaste_testkit::records::{delivery, subscription_name, topic_name};
    use posthaste_testkit::{CallFault, FaultPlan, PortOperation};

    use super::*;
    use crate::testing::Kit;

    /// Releases an object with this number of messages; answers the result, how many messages were
    /// sent, and how many are left.
    async fn release(kit: &Kit, deliveries: usize) -> (Result<usize, ReleaseError>, usize, usize) {
        let key = kit.park(Duration::ZERO, "x", deliveries);
        let released = super::release(kit.run(), &key).await;
        (
            released,
            kit.queue.take_bodies().len(),
            kit.left(&key).await.len(),
        )
    }

    #[tokio::test]
    async fn an_object_is_deleted_once_all_of_it_was_sent() {
        let kit = Kit::new();
        let (released, sent, _) = release(&kit, 25).await;
        assert_eq!(
            (released.unwrap(), sent, kit.store.keys("parked/").len()),
            (25, 25, 0)
        );
    }

    #[tokio::test]
    async fn an_object_keeps_what_the_queue_did_not_take() {
        let kit = Kit::refusing(|number| number == 1);
        let (released, sent, left) = release(&kit, 25).await;
        let error = released.unwrap_err();
        assert!(
            matches!(
                &error,
                ReleaseError::Send {
                    failed: 10,
                    messages: 25,
                    ..
                }
            ),
            "{error}"
        );
        assert!(error.is_refusal() && !error.is_lasting());
        assert_eq!((sent, left), (15, 10));
    }

    /// Parks deliveries, of 1, 2, 3 … events, under a key that says what is in the object.
    fn park_counted(kit: &Kit, deliveries: usize) -> String {
        let to = || (topic_name("orders"), subscription_name("billing"));
        let body = |n: usize| {
            let payloads = (0..=n).map(|_| EventPayload::Inline(Bytes::from_static(b"{}")));
            let at = Timestamp::from_millis(1_000_000 - 1000 * n as u64);
            render_delivery(&delivery(to(), "k", payloads, at))
        };
        let messages: Vec<_> = (0..deliveries).map(body).collect();
        let id = layout::id_with_carried("20260307T0400Z-x", &messages);
        let (topic, name) = to();
        let key = layout::parked_key(kit.clock.now(), &topic, &name, &id);
        kit.store.write(&key, render_parked(&messages));
        key
    }

    #[tokio::test]
    async fn the_key_of_what_is_left_says_what_it_carries() {
        let kit = Kit::refusing(|number| number == 1);
        let key = park_counted(&kit, 25);
        assert_eq!(
            layout::carried_of_key(&key),
            Some(CarriedEvents::new(325, Timestamp::from_millis(976_000)))
        );
        assert!(super::release(kit.run(), &key).await.is_err());
        // Deliveries 11 to 20 were refused.
        let [rest] = kit.store.keys("parked/").try_into().unwrap();
        assert_eq!(
            layout::carried_of_key(&rest),
            Some(CarriedEvents::new(155, Timestamp::from_millis(981_000)))
        );
        assert_eq!(kit.left(&rest).await.len(), 10);
        assert_eq!(super::release(kit.run(), &rest).await.unwrap(), 10);
        assert_eq!(kit.store.keys("parked/"), [] as [String; 0]);
    }

    #[tokio::test]
    async fn a_rest_that_cannot_be_put_leaves_the_object_as_it_is() {
        for operation in [PortOperation::Put, PortOperation::Delete] {
            let store = FaultPlan::by(move |effect| {
                (effect.operation == operation).then_some(CallFault::Before(ErrorKind::Other))
            });
            let queue = FaultPlan::by(|effect| {
                let is_refused = effect.operation == PortOperation::SendBatch && effect.number == 0;
                is_refused.then_some(CallFault::Before(ErrorKind::Other))
            });
            let kit = Kit::with(&store, &queue);
            let key = park_counted(&kit, 15);
            assert!(super::release(kit.run(), &key).await.is_err());
            // At least once: what was sent is sent again with the object.
            assert_eq!(kit.left(&key).await.len(), 15, "{operation:?}");
        }
    }

    #[tokio::test]
    async fn without_time_nothing_is_sent_and_the_object_stays_as_it_is() {
        let kit = Kit::new();
        let key = kit.park(Duration::ZERO, "x", 3);
        let run = kit.run();
        kit.clock.advance(Duration::from_secs(42));
        let error = super::release(run, &key).await.unwrap_err();
        assert!(
            matches!(
                error,
                ReleaseError::OutOfTime {
                    unsent: 3,
                    messages: 3
                }
            ),
            "{error}"
        );
        assert_eq!(
            (kit.queue.take_bodies().len(), kit.left(&key).await.len()),
            (0, 3)
        );
    }

    /// An object that is gone sends nothing, and one that cannot be read is a lasting error.
    #[tokio::test]
    async fn missing_object_sends_nothing_and_an_unreadable_one_stays() {
        let kit = Kit::new();
        assert!(open(kit.run(), "parked/x").await.unwrap().is_none());
        kit.store.write("parked/x", "{");
        let error = open(kit.run(), "parked/x").await.unwrap_err();
        assert!(error.is_lasting() && !error.is_refusal());
    }
}
