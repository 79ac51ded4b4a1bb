//! Releasing objects: send their messages, then delete them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::attempt::batch::Pack;
use posthaste_core::model::delivery::Delivery;
use posthaste_core::model::idle::wait_noted_at;
use posthaste_core::model::limits::{SQS_BATCH_ENTRIES_MAX, SQS_MESSAGE_BYTES_MAX};
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::Subscription;
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::format::FormatError;
use posthaste_core::stored::layout;
use posthaste_core::stored::parked::{parse_parked, render_parked};
use posthaste_ports::{
    Clock, ETag, Entropy, ErrorKind, ObjectStore, OutgoingMessage, PortError, PutCondition, QueueSender,
};
use posthaste_services::catch_panic::{Panicked, catch_panic};
use posthaste_services::send_all::{BATCHES_AT_ONCE_MAX, send_all};

use crate::course::Course;
use crate::limits::{Limits, within};
use crate::{Wake, WakePorts};

/// Objects released at once.
pub(crate) const RELEASES_AT_ONCE: usize = 8;

/// What is sent between two looks at the clock: as much as is under way at once.
const WAVE: Pack = Pack {
    items_max: SQS_BATCH_ENTRIES_MAX * BATCHES_AT_ONCE_MAX,
    bytes_preferred: SQS_MESSAGE_BYTES_MAX * BATCHES_AT_ONCE_MAX,
};

/// Minutes after its due minute at which a parked object is late. deliver's note keeps its subscription for longer.
const LATE_MINUTES: u64 = 5;

/// How long a note may take that keeps an idle subscription.
const NOTED_WITHIN: Duration = Duration::from_secs(2);

/// Why an object stays where it is until the next run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReleaseError {
    #[error("failed to read or delete the object")]
    Store(#[source] PortError),
    /// It holds what was sent as well, which goes once more in the next run, and must not before.
    #[error("failed to shorten the object")]
    Shorten(#[source] PortError),
    #[error("failed to understand the object")]
    Object(#[source] FormatError),
    #[error("failed in the middle")]
    Panicked(#[source] Panicked),
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

impl ReleaseError {
    /// Whether the object will be no better in a minute. It is then tried again with what was written late: if the next
    /// lists began at it, they would walk for days past everything that was released since.
    fn is_lasting(&self) -> bool {
        // A newer program can read what is merely newer.
        match self {
            Self::Object(error) => !matches!(error, FormatError::Newer(_)),
            Self::Store(error) => error.kind == ErrorKind::Damaged,
            _ => false,
        }
    }

    /// Whether the queue did not take something, or not in time: it will not take anything else either.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self, Self::Send { .. } | Self::OutOfTime { .. })
    }
}

/// An object that was read.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Its key.
    pub(crate) key: String,
    etag: ETag,
    /// Its messages, in order.
    pub(crate) messages: Vec<Bytes>,
}

impl Opened {
    /// Puts the messages in front that have an expired event, and returns how many they are. One that cannot be read has
    /// none: it goes when its turn comes.
    pub(crate) fn put_expired_first(&mut self, now: Timestamp) -> usize {
        let has_expired =
            |message: &Bytes| parse_delivery(message).is_ok_and(|delivery| delivery.has_expired(now));
        let (expired, others): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.messages).into_iter().partition(has_expired);
        let count = expired.len();
        self.messages = expired;
        self.messages.extend(others);
        count
    }
}

/// What became of messages.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    /// Of each, in order, whether it was sent.
    pub(crate) is_sent: Vec<bool>,
    /// The first error; where something was not sent and there is none, there was no time.
    pub(crate) first: Option<Arc<PortError>>,
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
        let releases = join_all(keys.iter().map(|key| catch_panic(self.release(key, limits)))).await;
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
        let Some(opened) = self.open(key).await? else { return Ok(0) };
        let Sent { is_sent, first } = self.send_in_waves(&opened.messages, limits).await;
        self.end_object(opened, &is_sent, first).await.map(|()| is_sent.len())
    }

    /// Notes that something waits for the subscription of a parked object that is released late: what deliver noted of
    /// it is old by then.
    async fn note_late(&self, key: &str) {
        let now = self.ports.clock.now();
        if layout::parked_due_minute(key).is_none_or(|due| now.minute() < due + LATE_MINUTES) {
            return;
        }
        let owner = layout::parked_folder(key).and_then(layout::folder_owner);
        let Some((topic, subscription)) = owner else { return };
        let topic = self.ports.registry.topic(&topic).await.ok().flatten();
        if let Some(found) = topic.as_ref().and_then(|topic| topic.subscription(&subscription)) {
            self.note_waiting(found, now).await;
        }
    }

    /// Notes that an event waits for a subscription, before the event goes to the queue, where no sweep can see
    /// it.
    pub(crate) async fn note_waiting(&self, subscription: &Subscription, now: Timestamp) {
        let WakePorts { clock, state, .. } = &self.ports;
        let noted = Box::pin(self.activity.of_subscription(state, subscription, wait_noted_at(now)));
        // A release does not wait for its note: without one the sweep may delete an idle subscription early.
        let _ = within(clock, clock.monotonic() + NOTED_WITHIN, noted).await;
    }

    /// Reads an object; `None` if it is not there any more.
    pub(crate) async fn open(&self, key: &str) -> Result<Option<Opened>, ReleaseError> {
        Box::pin(self.note_late(key)).await;
        let Some(object) = self.ports.state.get(key).await.map_err(ReleaseError::Store)? else {
            return Ok(None);
        };
        let messages = parse_parked(&object.bytes).map_err(ReleaseError::Object)?;
        Ok(Some(Opened { key: key.to_owned(), etag: object.etag, messages }))
    }

    /// Deletes an object all of whose messages were sent. Of another it keeps those that were not: the first ones were
    /// tried, as `is_sent` says, and the others are left for later.
    pub(crate) async fn end_object(
        &self,
        opened: Opened,
        is_sent: &[bool],
        first: Option<Arc<PortError>>,
    ) -> Result<(), ReleaseError> {
        let Opened { key, etag, messages } = opened;
        let is_unsent = |index: usize| is_sent.get(index) != Some(&true);
        let unsent: Vec<_> = (0..messages.len()).filter(|index| is_unsent(*index)).collect();
        if unsent.is_empty() {
            return self.ports.state.delete(&key).await.map_err(ReleaseError::Store);
        }
        let kept = if unsent.len() < messages.len() {
            let unsent: Vec<_> = unsent.iter().map(|index| messages[*index].clone()).collect();
            self.keep_unsent(&key, &unsent, etag).await
        } else {
            Ok(())
        };
        // That the queue refuses matters more: it ends the run's releases.
        refusal(is_sent, first).map_or(kept.map_err(ReleaseError::Shorten), Err)
    }

    /// Sends while there is time. What a wave was about when it was given up counts as not sent, although some of it may
    /// have been: at least once.
    pub(crate) async fn send_in_waves(&self, messages: &[Bytes], limits: Limits) -> Sent {
        let clock = &self.ports.clock;
        let mut all = Sent::default();
        for wave in WAVE.cut(messages.iter().map(Bytes::len)) {
            let wave = &messages[wave];
            let end = all.is_sent.len() + wave.len();
            if clock.monotonic() < limits.begin {
                let now = clock.now();
                let outgoing = wave.iter().map(|message| outgoing(message, now)).collect();
                let sent = within(clock, limits.send, send_all(&self.ports.deliveries, outgoing)).await;
                for sent in sent.into_iter().flatten() {
                    all.is_sent.push(sent.is_ok());
                    if let Err(error) = sent {
                        all.first.get_or_insert(Arc::new(error));
                    }
                }
            }
            all.is_sent.resize(end, false);
        }
        all
    }

    /// Leaves in the object what was not sent, so that the next run does not send the rest once more. If that fails it
    /// does: at least once.
    async fn keep_unsent(&self, key: &str, unsent: &[Bytes], etag: ETag) -> Result<(), PortError> {
        let kept = self.ports.state.put(key, render_parked(unsent), PutCondition::IfMatch(etag)).await;
        if let Err(error) = &kept {
            tracing::warn!(%key, error = error as &dyn std::error::Error, "object not shortened, its messages are sent again");
        }
        kept.map(|_| ())
    }
}

/// The error of messages that were tried, if some were not sent.
fn refusal(is_sent: &[bool], first: Option<Arc<PortError>>) -> Option<ReleaseError> {
    let (failed, messages) = (is_sent.iter().filter(|is_sent| !**is_sent).count(), is_sent.len());
    (failed > 0).then(|| match first {
        Some(first) => ReleaseError::Send { failed, messages, first },
        None => ReleaseError::OutOfTime { unsent: failed, messages },
    })
}

/// A message as it goes back: due from now on, because the time it spent waiting for us must not read as a slow
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
