//! A decorator that misbehaves by chance, as a queue and a store of a cloud may: beside
//! [`Faulty`](crate::Faulty), which does what a test has planned.
//!
//! Each kind of misbehaviour has a chance of its own. The draws are seeded, so a run repeats them.

use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::api::WaitingCount;
use posthaste_core::pressure::DueOfGroup;
use posthaste_ports::{
    ETag, Entropy, ErrorKind, GroupCount, ListPage, MessageId, ObjectStore, OutgoingMessage,
    PortError, PutCondition, QueueCounts, QueueReceiver, QueueSender, ReceiptHandle,
    ReceiveRequest, ReceivedMessage, RevalidatedObject, StoredObject, Successor, WithheldMessages,
};

use crate::entropy::SeededEntropy;
use crate::faulty::{EntryFault, send_with_faults};

/// A kind of misbehaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(usize)]
pub enum Trick {
    /// A message that is sent is there twice.
    Duplicate,
    /// Messages are received in another order.
    Reorder,
    /// A message is visible again at once, while its receiver works on it.
    ReturnEarly,
    /// A settled message comes back after its visibility timeout.
    Resurrect,
    /// The effect happens, and its result is lost.
    LoseAnswer,
    /// Counts are those of the last time.
    LagCounts,
    /// A conditional put happens, and the store says that the condition does not hold (412).
    FalseConflict,
    /// A conditional put meets another one, and neither happens (409).
    Conflict,
    /// The other side asks for less, and nothing happens.
    Throttle,
    /// Some messages of a batch are not sent, or sent without a result.
    PartialBatch,
    /// Others run before the call happens.
    Yield,
}

/// All tricks.
pub const TRICKS: [Trick; 11] = [
    Trick::Duplicate,
    Trick::Reorder,
    Trick::ReturnEarly,
    Trick::Resurrect,
    Trick::LoseAnswer,
    Trick::LagCounts,
    Trick::FalseConflict,
    Trick::Conflict,
    Trick::Throttle,
    Trick::PartialBatch,
    Trick::Yield,
];

/// The chance of a trick is one of so many thousandths.
const CHANCES: u64 = 1000;

/// Most turns that others have before a call.
const TURNS_MAX: u64 = 4;

/// The tricks that decorated ports play. Clones share the draws and the counts.
#[derive(Debug, Clone)]
pub struct Mood(Arc<MoodState>);

#[derive(Debug)]
struct MoodState {
    /// The chance of each trick, in thousandths of the calls that it may happen to.
    chances: [u64; TRICKS.len()],
    played: [AtomicU64; TRICKS.len()],
    plays: Mutex<Vec<PlayedTrick>>,
    entropy: SeededEntropy,
    is_off: AtomicBool,
}

/// A trick that was played.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedTrick {
    /// The trick, which is not [`Trick::Yield`].
    pub trick: Trick,
    /// The label of the decorated port.
    pub port: &'static str,
    /// The object's key or the listing's prefix; empty for queues.
    pub key: String,
}

impl Mood {
    /// A mood that plays these tricks, each in so many thousandths of its calls.
    pub fn new(seed: u64, tricks: &[(Trick, u64)]) -> Self {
        let mut chances = [0; TRICKS.len()];
        for (trick, chance) in tricks {
            chances[*trick as usize] = *chance;
        }
        Self(Arc::new(MoodState {
            chances,
            played: <[AtomicU64; TRICKS.len()]>::default(),
            plays: Mutex::default(),
            entropy: SeededEntropy::new(seed),
            is_off: AtomicBool::new(false),
        }))
    }

    /// Switches all tricks on, or all but [`Trick::Yield`] off.
    pub fn switch(&self, is_on: bool) {
        self.0.is_off.store(!is_on, Ordering::Relaxed);
    }

    /// The number of times that a trick was played.
    pub fn played(&self, trick: Trick) -> u64 {
        self.0.played[trick as usize].load(Ordering::Relaxed)
    }

    /// Returns the tricks that were played since the last call.
    pub fn take_plays(&self) -> Vec<PlayedTrick> {
        std::mem::take(&mut self.0.plays.lock())
    }

    fn plays(&self, trick: Trick) -> bool {
        let chance = self.0.chances[trick as usize];
        let is_off = self.0.is_off.load(Ordering::Relaxed) && trick != Trick::Yield;
        if chance == 0 || is_off || self.below(CHANCES) >= chance {
            return false;
        }
        self.0.played[trick as usize].fetch_add(1, Ordering::Relaxed);
        true
    }

    fn below(&self, end: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.entropy.fill(&mut bytes);
        u64::from_le_bytes(bytes) % end.max(1)
    }

    async fn let_others_run(&self) {
        if self.plays(Trick::Yield) {
            for _ in 0..=self.below(TURNS_MAX) {
                Turn(false).await;
            }
        }
    }
}

fn played(kind: ErrorKind) -> PortError {
    PortError::new("get past an adversary", kind)
}

/// A future that lets other tasks run once.
struct Turn(bool);

impl Future for Turn {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// A port that misbehaves.
#[derive(Debug, Clone)]
pub struct Adversary<P> {
    port: P,
    label: &'static str,
    mood: Mood,
    counts: Arc<Mutex<Option<QueueCounts>>>,
}

impl<P> Adversary<P> {
    /// Decorates `port`. What is played names it by this label.
    pub fn new(port: P, label: &'static str, mood: &Mood) -> Self {
        Self {
            port,
            label,
            mood: mood.clone(),
            counts: Arc::default(),
        }
    }

    /// The port without its moods.
    pub fn port(&self) -> &P {
        &self.port
    }

    fn plays(&self, trick: Trick, key: &str) -> bool {
        let is_played = self.mood.plays(trick);
        if is_played {
            self.mood.0.plays.lock().push(PlayedTrick {
                trick,
                port: self.label,
                key: key.to_owned(),
            });
        }
        is_played
    }

    /// Fails where the other side asks for less.
    fn throttle(&self, key: &str) -> Result<(), PortError> {
        if self.plays(Trick::Throttle, key) {
            return Err(played(ErrorKind::Throttled { retry_after: None }));
        }
        Ok(())
    }

    /// Returns a result, or an error if the result is lost.
    fn answer<T>(&self, key: &str, answer: Result<T, PortError>) -> Result<T, PortError> {
        if self.plays(Trick::LoseAnswer, key) {
            return Err(played(ErrorKind::TimedOut));
        }
        answer
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: QueueSender> QueueSender for Adversary<P> {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        let again: Vec<_> = entries
            .iter()
            .filter(|_| self.plays(Trick::Duplicate, ""))
            .cloned()
            .collect();
        let answer = if self.plays(Trick::PartialBatch, "") {
            let faults: Vec<_> = (0..entries.len())
                .filter(|_| self.mood.below(2) == 0)
                .map(|index| EntryFault {
                    index,
                    is_sent: self.mood.below(2) == 0,
                    kind: ErrorKind::Other,
                })
                .collect();
            send_with_faults(&self.port, entries, &faults).await
        } else {
            self.port.send_batch(entries).await
        };
        if !again.is_empty() {
            self.port.send_batch(again).await?;
        }
        self.answer("", answer)
    }

    fn sends_whole(&self) -> bool {
        self.port.sends_whole()
    }

    async fn send_whole(
        &self,
        entries: Vec<OutgoingMessage>,
        beside: Vec<Successor>,
    ) -> Result<(), PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        self.answer("", self.port.send_whole(entries, beside).await)
    }

    async fn withhold(&self, entries: Vec<OutgoingMessage>) -> Result<WithheldMessages, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        self.port.withhold(entries).await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: QueueReceiver> QueueReceiver for Adversary<P> {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        let mut messages = self.port.receive(request).await?;
        if self.plays(Trick::Reorder, "") {
            for place in 1..messages.len() {
                let other = self.mood.below(place as u64 + 1);
                messages.swap(place, usize::try_from(other).unwrap());
            }
        }
        for message in &messages {
            if self.plays(Trick::ReturnEarly, "") {
                let shown = self
                    .port
                    .change_visibility(&message.receipt, Duration::ZERO);
                shown.await?;
            }
        }
        Ok(messages)
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        if self.plays(Trick::Resurrect, "") {
            return Ok(());
        }
        self.answer("", self.port.acknowledge(receipt).await)
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        self.answer("", self.port.replace(receipt, successors).await)
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        let changed = self.port.change_visibility(receipt, visibility).await;
        self.answer("", changed)
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        let counts = self.port.counts().await?;
        let before = self.counts.lock().replace(counts);
        let lags = self.plays(Trick::LagCounts, "");
        Ok(before.filter(|_| lags).unwrap_or(counts))
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        self.port.due_by_group().await
    }

    async fn due_counts(&self, groups: &[String]) -> Result<Option<Vec<u64>>, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        self.port.due_counts(groups).await
    }

    async fn waiting_counts(
        &self,
        groups: &[String],
    ) -> Result<Option<Vec<GroupCount>>, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        self.port.waiting_counts(groups).await
    }

    async fn waiting_by_group(&self) -> Result<Option<Vec<(Arc<str>, GroupCount)>>, PortError> {
        self.mood.let_others_run().await;
        self.throttle("")?;
        self.port.waiting_by_group().await
    }
}

#[deny(clippy::missing_trait_methods)]
impl<P: ObjectStore> ObjectStore for Adversary<P> {
    fn waiting_objects(&self, of: Option<&[String]>) -> Option<Vec<(Arc<str>, WaitingCount)>> {
        self.port.waiting_objects(of)
    }

    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        self.mood.let_others_run().await;
        self.throttle(key)?;
        self.port.get(key).await
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        self.mood.let_others_run().await;
        self.throttle(key)?;
        self.port.get_if_changed(key, known).await
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        self.mood.let_others_run().await;
        self.throttle(key)?;
        self.port.get_range(key, range).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        self.mood.let_others_run().await;
        self.throttle(key)?;
        let is_conditional = condition != PutCondition::Always;
        if is_conditional && self.plays(Trick::Conflict, key) {
            return Err(played(ErrorKind::Other));
        }
        let answer = self.port.put(key, bytes, condition).await;
        if is_conditional && answer.is_ok() && self.plays(Trick::FalseConflict, key) {
            return Err(played(ErrorKind::PreconditionFailed));
        }
        self.answer(key, answer)
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        self.mood.let_others_run().await;
        self.throttle(key)?;
        self.answer(key, self.port.delete(key).await)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        self.mood.let_others_run().await;
        self.throttle(prefix)?;
        self.port.list(prefix, after, max).await
    }
}

#[cfg(test)]
mod tests;
