//! A model of an SQS standard queue in memory, on the manual clock: fair as AWS documents it, or
//! plain.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use posthaste_core::model::Timestamp;
use posthaste_ports::{
    Clock, ErrorKind, MessageId, OutgoingMessage, PortError, QueueCounts, QueueName, QueueReceiver,
    QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor,
};
use posthaste_testkit::ManualClock;
use tokio::sync::Notify;

/// A group is noisy with more than one in so many of the messages in flight, or of the seconds that
/// messages were in flight lately.
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues-detailed.html>
const NOISY_ONE_IN: u32 = 10;

/// A group with fewer messages in flight is not noisy by their number (the same page).
const NOISY_MIN: u32 = 30;

/// The time that is lately. AWS names none; this is assumed.
const LATELY: Duration = Duration::from_mins(1);

/// Bytes that are billed as one request.
const CHUNK_BYTES: usize = 64 << 10;

/// The order in which messages are given out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Order {
    /// As they became due: messages are sent without a group.
    #[default]
    Plain,
    /// The same, but those of noisy groups last.
    Fair,
}

/// Most messages that one request receives or deletes.
const REQUEST_MESSAGES_MAX: usize = 10;

/// A delivery queue and the dead-letter queue. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct Sqs {
    clock: ManualClock,
    name: QueueName,
    /// The queue of the slow lane, beside the other one.
    slow: Option<Box<Sqs>>,
    shared: Arc<Mutex<Shared>>,
    /// Wakes pollers that wait for a message.
    sent: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Shared {
    order: Order,
    numbers: u64,
    messages: BTreeMap<u64, Stored>,
    groups: BTreeMap<Option<String>, Group>,
    in_flight: u32,
    counts: Counts,
}

/// The messages of a group.
#[derive(Debug, Default)]
struct Group {
    /// All of them by the time from which they are visible.
    by_time: BTreeSet<(Duration, u64)>,
    in_flight: u32,
    processing: Processing,
}

/// The time for which a group's messages are and were in flight.
#[derive(Debug, Default)]
struct Processing {
    /// The sum of the times at which those in flight were received.
    received_at: Duration,
    /// The end and the length of each that ended lately.
    ended: VecDeque<(Duration, Duration)>,
    /// The sum of their lengths.
    lately: Duration,
}

#[derive(Debug)]
struct Stored {
    message: OutgoingMessage,
    visible_from: Duration,
    receives: u32,
    sent_at: Timestamp,
    /// The time of the receive, while it is in flight.
    in_flight_from: Option<Duration>,
}

/// Totals of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// Requests to SQS, in chunks of 64 KB.
    pub(super) requests: u64,
    /// Messages of the dead-letter queue.
    pub(super) dead: usize,
    /// The most messages that were in flight at once.
    pub(super) in_flight_most: usize,
}

impl Sqs {
    pub(super) fn new(clock: ManualClock, order: Order) -> Self {
        let shared = Mutex::new(Shared {
            order,
            ..Shared::default()
        });
        Self {
            clock,
            name: QueueName::Deliveries,
            slow: None,
            shared: Arc::new(shared),
            sent: Arc::default(),
        }
    }

    /// The same queue beside that of the slow lane, whose messages carry their group.
    pub(super) fn beside_slow(self, slow: &Self) -> Self {
        Self {
            slow: Some(Box::new(slow.clone())),
            ..self
        }
    }

    /// The queue of the slow lane.
    pub(super) fn of_slow_lane(clock: ManualClock) -> Self {
        Self {
            name: QueueName::SlowDeliveries,
            ..Self::new(clock, Order::Fair)
        }
    }

    /// Takes what is due, as a receive of the event source mapping does.
    pub(super) fn take(&self, max: usize, visibility: Duration) -> Vec<ReceivedMessage> {
        let now = self.clock.monotonic();
        let mut shared = self.lock();
        let mut taken: Vec<ReceivedMessage> = Vec::new();
        while taken.len() < max
            && let Some(number) = shared.next(now)
        {
            let stored = shared.receive(number, now, now + visibility);
            taken.push(ReceivedMessage {
                id: MessageId(number.to_string().into()),
                receipt: ReceiptHandle(format!("{number} {}", stored.receives).into()),
                body: stored.message.body.clone(),
                receive_count: stored.receives,
                sent_at: stored.sent_at,
            });
        }
        if !taken.is_empty() {
            for request in taken.chunks(REQUEST_MESSAGES_MAX) {
                shared.counts.requests += chunks(request.iter().map(|message| message.body.len()));
            }
        }
        taken
    }

    /// Deletes messages, as the mapping does after an invocation: ten in one request.
    pub(super) fn delete(&self, receipts: &[ReceiptHandle]) {
        let mut shared = self.lock();
        receipts
            .iter()
            .filter_map(held)
            .for_each(|held| shared.remove(held, self.clock.monotonic()));
        shared.counts.requests += receipts.len().div_ceil(REQUEST_MESSAGES_MAX) as u64;
    }

    /// Waits until there may be something to take.
    pub(super) async fn arrival(&self) {
        let now = self.clock.monotonic();
        let due = self
            .lock()
            .groups
            .values()
            .filter_map(|group| group.first_after(now))
            .min();
        let due = async {
            match due {
                Some(due) => self.clock.sleep(due.saturating_sub(now)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! { biased; () = self.sent.notified() => {}, () = due => {} }
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// The number of messages in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.lock().in_flight as usize
    }

    /// The messages that are in the queue, in flight or not.
    pub(super) fn take_messages(&self) -> Vec<OutgoingMessage> {
        let mut shared = self.lock();
        shared.groups.clear();
        std::mem::take(&mut shared.messages)
            .into_values()
            .map(|stored| stored.message)
            .collect()
    }

    fn send(&self, entries: Vec<OutgoingMessage>) -> Vec<MessageId> {
        let now = (self.clock.monotonic(), self.clock.now());
        let mut shared = self.lock();
        shared.counts.requests += chunks(entries.iter().map(|entry| entry.body.len()));
        let ids: Vec<_> = entries
            .into_iter()
            .map(|entry| shared.add(entry, now))
            .collect();
        drop(shared);
        for _ in &ids {
            self.sent.notify_one();
        }
        ids
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock()
    }
}

/// The requests that bodies of so many bytes are billed as.
fn chunks(bytes: impl Iterator<Item = usize>) -> u64 {
    u64::try_from(bytes.sum::<usize>().div_ceil(CHUNK_BYTES)).expect("a small number")
}

/// The number of the message, and that of the receive.
fn held(receipt: &ReceiptHandle) -> Option<(u64, u32)> {
    let (number, receives) = receipt.0.split_once(' ')?;
    Some((number.parse().ok()?, receives.parse().ok()?))
}

impl Group {
    fn first_due(&self, now: Duration) -> Option<(Duration, u64)> {
        self.by_time
            .first()
            .copied()
            .filter(|(from, _)| *from <= now)
    }

    fn first_after(&self, now: Duration) -> Option<Duration> {
        self.by_time
            .range((now, u64::MAX)..)
            .next()
            .map(|(from, _)| *from)
    }

    /// The time for which its messages were in flight lately.
    fn processing(&mut self, now: Duration) -> Duration {
        self.processing.forget(now);
        let under_way = now * self.in_flight;
        self.processing.lately + under_way.saturating_sub(self.processing.received_at)
    }

    /// Whether its share of the messages in flight, or of the processing time of all, is too large.
    fn is_noisy(&mut self, in_flight: u32, processing: Duration, now: Duration) -> bool {
        let by_number = self.in_flight >= NOISY_MIN && self.in_flight * NOISY_ONE_IN > in_flight;
        by_number || self.processing(now) * NOISY_ONE_IN > processing
    }
}

impl Processing {
    /// A message is no longer in flight.
    fn end(&mut self, from: Duration, now: Duration) {
        let length = now.saturating_sub(from);
        self.received_at -= from;
        self.ended.push_back((now, length));
        self.lately += length;
    }

    fn forget(&mut self, now: Duration) {
        while let Some((end, length)) = self.ended.front().copied()
            && end + LATELY < now
        {
            self.ended.pop_front();
            self.lately -= length;
        }
    }
}

impl Shared {
    fn add(
        &mut self,
        message: OutgoingMessage,
        (now, sent_at): (Duration, Timestamp),
    ) -> MessageId {
        self.numbers += 1;
        let visible_from = now + whole_secs(message.delay);
        let group = self.groups.entry(message.group.clone()).or_default();
        group.by_time.insert((visible_from, self.numbers));
        let stored = Stored {
            message,
            visible_from,
            receives: 0,
            sent_at,
            in_flight_from: None,
        };
        self.messages.insert(self.numbers, stored);
        MessageId(self.numbers.to_string().into())
    }

    /// The message that is given out next: the first of a quiet group, or else of the noisy group
    /// with the fewest in flight.
    fn next(&mut self, now: Duration) -> Option<u64> {
        let processing = |group: &mut Group| group.processing(now);
        let processing: Duration = self.groups.values_mut().map(processing).sum();
        let due = self
            .groups
            .values_mut()
            .filter_map(|group| Some((group.first_due(now)?, group)));
        let rank = |(first, group): ((Duration, u64), &mut Group)| {
            let is_noisy = group.is_noisy(self.in_flight, processing, now);
            let is_last = is_noisy && self.order == Order::Fair;
            (is_last.then_some(group.in_flight), first)
        };
        due.map(rank).min().map(|(_, (_, number))| number)
    }

    fn receive(&mut self, number: u64, now: Duration, hidden_until: Duration) -> &Stored {
        self.land(number, now);
        self.show_from(number, hidden_until);
        let stored = self.messages.get_mut(&number).expect("a message");
        stored.receives += 1;
        stored.in_flight_from = Some(now);
        let group = self.groups.get_mut(&stored.message.group).expect("a group");
        group.in_flight += 1;
        group.processing.received_at += now;
        self.in_flight += 1;
        self.counts.in_flight_most = self.counts.in_flight_most.max(self.in_flight as usize);
        stored
    }

    /// The message becomes visible then.
    fn show_from(&mut self, number: u64, from: Duration) {
        let stored = self.messages.get_mut(&number).expect("a message");
        let group = self.groups.get_mut(&stored.message.group).expect("a group");
        group.by_time.remove(&(stored.visible_from, number));
        group.by_time.insert((from, number));
        stored.visible_from = from;
    }

    /// The message is no longer in flight.
    fn land(&mut self, number: u64, now: Duration) {
        let stored = self.messages.get_mut(&number).expect("a message");
        if let Some(from) = stored.in_flight_from.take() {
            self.in_flight -= 1;
            let group = self.groups.get_mut(&stored.message.group).expect("a group");
            group.in_flight -= 1;
            group.processing.end(from, now);
        }
    }

    fn remove(&mut self, (number, receives): (u64, u32), now: Duration) {
        if self
            .messages
            .get(&number)
            .is_some_and(|stored| stored.receives == receives)
        {
            self.land(number, now);
            let stored = self.messages.remove(&number).expect("a message");
            let group = self.groups.get_mut(&stored.message.group).expect("a group");
            group.by_time.remove(&(stored.visible_from, number));
        }
    }
}

impl QueueSender for Sqs {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        Ok(self.send(entries).into_iter().map(Ok).collect())
    }
}

impl QueueReceiver for Sqs {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        Ok(self.take(request.max, request.visibility))
    }

    /// The mapping deletes what the invocation does not report as failed.
    async fn acknowledge(&self, _: &ReceiptHandle) -> Result<(), PortError> {
        Ok(())
    }

    /// A request for the successors, and one for the message.
    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        let (own, others): (Vec<_>, Vec<_>) = successors
            .into_iter()
            .partition(|next| next.to == self.name);
        let (slow, dead): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|next| next.to == QueueName::SlowDeliveries);
        if let Some(queue) = self.slow.as_ref().filter(|_| !slow.is_empty()) {
            queue.send(slow.into_iter().map(|next| next.message).collect());
        }
        self.lock().counts.dead += dead.len();
        if !own.is_empty() {
            self.send(own.into_iter().map(|next| next.message).collect());
        }
        self.delete(std::slice::from_ref(receipt));
        Ok(())
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        let gone = || PortError::new("change", ErrorKind::NotFound);
        let (number, _) = held(receipt).ok_or_else(gone)?;
        let from = self.clock.monotonic() + visibility;
        let mut shared = self.lock();
        shared.counts.requests += 1;
        shared
            .messages
            .contains_key(&number)
            .then(|| shared.show_from(number, from))
            .ok_or_else(gone)
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        let shared = self.lock();
        let now = self.clock.monotonic();
        let visible = shared
            .messages
            .values()
            .filter(|stored| stored.visible_from <= now)
            .count() as u64;
        let in_flight = u64::from(shared.in_flight);
        let delayed = (shared.messages.len() as u64).saturating_sub(visible + in_flight);
        Ok(QueueCounts {
            visible,
            delayed,
            in_flight,
        })
    }
}

/// SQS delays by whole seconds.
fn whole_secs(delay: Duration) -> Duration {
    let secs = delay.as_millis().div_ceil(1000);
    Duration::from_secs(u64::try_from(secs).unwrap_or(u64::MAX))
}
