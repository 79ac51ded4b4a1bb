//! The queue and the store in memory, as plainly as can be: the model that the conformance suite
//! itself is tried against.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method};
use parking_lot::Mutex;
use posthaste_core::model::{CarriedEvents, EndpointUrl, Timestamp};
use posthaste_core::pressure::DueOfGroup;
use posthaste_core::stored::delivery::carried_by_message;

use posthaste_ports::{
    Clock, ErrorKind, GroupCount, MessageId, OutgoingMessage, PortError, QueueCounts, QueueName,
    QueueReceiver, QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor,
    WebhookRequest, validate,
};

pub use crate::memory_store::MemoryStore;

/// The number of receives after which a message goes to the redrive queue.
pub const MAX_RECEIVE_COUNT: u32 = 3;

pub fn message(body: &'static str) -> OutgoingMessage {
    OutgoingMessage {
        body: Bytes::from(body),
        group: None,
        delay: Duration::ZERO,
    }
}

pub fn request(url: &str, body: &'static str) -> WebhookRequest {
    let url = EndpointUrl::parse(url).unwrap();
    let body = vec![Bytes::from(body)];
    let timeout = Duration::from_secs(30);
    WebhookRequest {
        method: Method::POST,
        url,
        headers: HeaderMap::new(),
        body,
        needs_new_connection: false,
        needs_body: false,
        timeout,
    }
}

/// One queue of a set; clones share it.
#[derive(Debug, Clone)]
pub struct MemoryQueue {
    name: QueueName,
    /// Whether the queue tells the events of a group, as SQS does not.
    tells_groups: bool,
    world: Arc<Mutex<World>>,
}

#[derive(Debug, Default)]
struct World {
    elapsed: Duration,
    numbers: u64,
    messages: Vec<Stored>,
}

#[derive(Debug, Clone)]
struct Stored {
    queue: QueueName,
    number: u64,
    message: OutgoingMessage,
    sent_at: Timestamp,
    visible_from: Duration,
    received_at: Duration,
    receive_count: u32,
    receipt: Option<ReceiptHandle>,
}

impl Default for MemoryQueue {
    fn default() -> Self {
        Self {
            name: QueueName::Deliveries,
            tells_groups: true,
            world: Arc::default(),
        }
    }
}

impl MemoryQueue {
    /// A queue that does not tell what waits by group, as SQS does not.
    pub fn like_sqs() -> Self {
        Self {
            tells_groups: false,
            ..Self::default()
        }
    }

    pub fn sibling_queue(&self, name: QueueName) -> Self {
        Self {
            name,
            tells_groups: self.tells_groups,
            world: self.world.clone(),
        }
    }

    pub fn advance(&self, length: Duration) {
        self.world.lock().elapsed += length;
    }

    /// The messages of this queue, in the order in which they were sent.
    pub fn messages(&self) -> Vec<OutgoingMessage> {
        let world = self.world.lock();
        world
            .messages
            .iter()
            .filter(|m| m.queue == self.name)
            .map(|m| m.message.clone())
            .collect()
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::EPOCH + self.world.lock().elapsed
    }

    /// The bodies of this queue's messages, in the order in which they were sent. They leave the
    /// queue.
    pub fn take_bodies(&self) -> Vec<Bytes> {
        let mut world = self.world.lock();
        let (own, others) = std::mem::take(&mut world.messages)
            .into_iter()
            .partition(|stored| stored.queue == self.name);
        world.messages = others;
        let own: Vec<Stored> = own;
        own.into_iter().map(|stored| stored.message.body).collect()
    }
}

impl World {
    /// The events of each group of a queue, and when the first delayed ones become visible.
    fn waiting(&self, queue: QueueName) -> BTreeMap<String, (GroupCount, Option<Timestamp>)> {
        let mut all: BTreeMap<String, (GroupCount, Option<Timestamp>)> = BTreeMap::new();
        for stored in self.messages.iter().filter(|it| it.queue == queue) {
            let carried = carried_by_message(&stored.message.body)
                .unwrap_or_else(|| CarriedEvents::one_event(stored.sent_at));
            let group = stored.message.group.clone().unwrap_or_default();
            let (count, next_due) = all.entry(group).or_default();
            let events = u64::from(carried.events);
            if stored.visible_from <= self.elapsed {
                count.due += events;
            } else if stored.receipt.is_some() {
                count.in_flight += events;
            } else {
                count.delayed += events;
                let due = Timestamp::EPOCH + stored.visible_from;
                *next_due = (*next_due).into_iter().chain([due]).min();
            }
            count.oldest = count
                .oldest
                .into_iter()
                .chain(carried.oldest_accepted_at())
                .min();
        }
        all
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn send(&mut self, queue: QueueName, message: OutgoingMessage) -> MessageId {
        let number = self.number();
        let visible_from = self.elapsed + message.delay;
        let sent_at = Timestamp::EPOCH + self.elapsed;
        let received_at = Duration::ZERO;
        let receive_count = 0;
        let receipt = None;
        self.messages.push(Stored {
            queue,
            number,
            message,
            sent_at,
            visible_from,
            received_at,
            receive_count,
            receipt,
        });
        MessageId(number.to_string().into())
    }

    fn held(&self, queue: QueueName, receipt: &ReceiptHandle) -> Result<usize, PortError> {
        let found = self
            .messages
            .iter()
            .position(|m| m.queue == queue && m.receipt.as_ref() == Some(receipt));
        found.ok_or(PortError::new(
            "find a received message",
            ErrorKind::NotFound,
        ))
    }

    fn in_flight(&self, queue: QueueName, group: Option<&String>) -> usize {
        let is_it =
            |m: &&Stored| m.queue == queue && m.receipt.is_some() && m.visible_from > self.elapsed;
        self.messages
            .iter()
            .filter(is_it)
            .filter(|m| m.message.group.as_ref() == group)
            .count()
    }

    fn next_visible(&self, queue: QueueName) -> Option<usize> {
        let visible = self.messages.iter().enumerate();
        let visible = visible.filter(|(_, m)| m.queue == queue && m.visible_from <= self.elapsed);
        let fair = visible
            .min_by_key(|(_, m)| (self.in_flight(queue, m.message.group.as_ref()), m.number));
        fair.map(|(index, _)| index)
    }

    fn take(&mut self, queue: QueueName, request: ReceiveRequest) -> Vec<ReceivedMessage> {
        let mut received = Vec::new();
        while received.len() < request.max
            && let Some(index) = self.next_visible(queue)
        {
            let elapsed = self.elapsed;
            let number = self.number();
            let stored = &mut self.messages[index];
            if queue != QueueName::Redrive && stored.receive_count >= MAX_RECEIVE_COUNT {
                stored.queue = QueueName::Redrive;
                stored.receipt = None;
                continue;
            }
            let receipt = ReceiptHandle(number.to_string().into());
            stored.receive_count += 1;
            stored.receipt = Some(receipt.clone());
            stored.received_at = elapsed;
            stored.visible_from = elapsed + request.visibility;
            received.push(ReceivedMessage {
                id: MessageId(stored.number.to_string().into()),
                receipt,
                body: stored.message.body.clone(),
                receive_count: stored.receive_count,
                sent_at: stored.sent_at,
            });
        }
        received
    }
}

impl QueueSender for MemoryQueue {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        validate::batch(&entries).map_err(|e| e.into_port_error("send"))?;
        let mut world = self.world.lock();
        let send = |entry: OutgoingMessage| {
            validate::message(&entry).map_err(|e| e.into_port_error("send"))?;
            Ok(world.send(self.name, entry))
        };
        Ok(entries.into_iter().map(send).collect())
    }
}

impl QueueReceiver for MemoryQueue {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        validate::receive_request(&request).map_err(|e| e.into_port_error("receive"))?;
        let until = self.world.lock().elapsed + request.wait;
        loop {
            let received = self.world.lock().take(self.name, request);
            if !received.is_empty() || self.world.lock().elapsed >= until {
                return Ok(received);
            }
            tokio::task::yield_now().await;
        }
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        let mut world = self.world.lock();
        if let Ok(index) = world.held(self.name, receipt) {
            world.messages.remove(index);
        }
        Ok(())
    }

    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        let mut world = self.world.lock();
        for successor in &successors {
            validate::message(&successor.message).map_err(|e| e.into_port_error("replace"))?;
        }
        let index = world.held(self.name, receipt)?;
        world.messages.remove(index);
        for successor in successors {
            world.send(successor.to, successor.message);
        }
        Ok(())
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        let mut world = self.world.lock();
        let index = world.held(self.name, receipt)?;
        let visible_from = world.elapsed + visibility;
        let stored = &mut world.messages[index];
        validate::visibility_timeout(visible_from.saturating_sub(stored.received_at))
            .map_err(|e| e.into_port_error("change"))?;
        stored.visible_from = visible_from;
        Ok(())
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        let world = self.world.lock();
        let mut counts = QueueCounts::default();
        for stored in world.messages.iter().filter(|m| m.queue == self.name) {
            match (stored.visible_from > world.elapsed, &stored.receipt) {
                (false, _) => counts.visible += 1,
                (true, None) => counts.delayed += 1,
                (true, Some(_)) => counts.in_flight += 1,
            }
        }
        Ok(counts)
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        if !self.tells_groups {
            return Ok(None);
        }
        let world = self.world.lock();
        let mut groups: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for stored in world.messages.iter().filter(|m| m.queue == self.name) {
            let group = stored.message.group.as_deref().unwrap_or_default();
            let (due, bytes) = groups.entry(group).or_default();
            *due += u64::from(stored.visible_from <= world.elapsed);
            *bytes += stored.message.body.len() as u64;
        }
        let of = |(group, (due, bytes)): (&str, (u64, u64))| DueOfGroup {
            group: group.into(),
            due,
            bytes,
        };
        let due = groups.into_iter().filter(|(_, (due, _))| *due > 0);
        Ok(Some(due.map(of).collect()))
    }

    async fn due_counts(&self, groups: &[String]) -> Result<Option<Vec<u64>>, PortError> {
        let Some(all) = self.due_by_group().await? else {
            return Ok(None);
        };
        let due = |name: &String| {
            let of = all.iter().find(|of| &*of.group == name.as_str());
            of.map_or(0, |of| of.due)
        };
        Ok(Some(groups.iter().map(due).collect()))
    }

    async fn waiting_counts(
        &self,
        groups: &[String],
    ) -> Result<Option<Vec<GroupCount>>, PortError> {
        if !self.tells_groups {
            return Ok(None);
        }
        let all = self.world.lock().waiting(self.name);
        let count = |group: &String| {
            let (count, next_due) = all.get(group.as_str()).copied().unwrap_or_default();
            GroupCount { next_due, ..count }
        };
        Ok(Some(groups.iter().map(count).collect()))
    }

    async fn waiting_by_group(&self) -> Result<Option<Vec<(Arc<str>, GroupCount)>>, PortError> {
        if !self.tells_groups {
            return Ok(None);
        }
        let all = self.world.lock().waiting(self.name);
        let count = |(group, (count, _)): (String, _)| (group.into(), count);
        Ok(Some(all.into_iter().map(count).collect()))
    }
}

/// A clock that shows the time it is set to. No task sleeps by it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct SetClock(Arc<Mutex<Duration>>);

impl SetClock {
    const START: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    pub fn advance(&self, length: Duration) {
        *self.0.lock() += length;
    }
}

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Self::START + self.monotonic()
    }

    fn monotonic(&self) -> Duration {
        *self.0.lock()
    }

    fn sleep(&self, _: Duration) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}
