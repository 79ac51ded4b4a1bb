//! The queues of an installation in memory, on its clock: as SQS has them, or as the embedded
//! queue does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::model::{CarriedEvents, Timestamp};
use posthaste_core::pressure::DueOfGroup;
use posthaste_core::stored::delivery::carried_by_message;
use posthaste_ports::{
    Clock, ErrorKind, GroupCount, MessageId, OutgoingMessage, PortError, QueueCounts, QueueName,
    QueueReceiver, QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor,
    WithheldFate, WithheldMessages, validate,
};
use posthaste_testkit::ManualClock;

use crate::course::Place;

/// The number of receives after which a message goes to the redrive queue, as in template.yaml.
const MAX_RECEIVE_COUNT: u32 = 50;

/// One queue of an installation. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct SimulatedQueue {
    name: QueueName,
    place: Place,
    clock: ManualClock,
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug, Default)]
struct Shared {
    numbers: u64,
    messages: BTreeMap<(QueueName, u64), Stored>,
    /// Whether the process is being killed: then nothing is told to the queue any more.
    is_killed: bool,
}

#[derive(Debug, Clone)]
struct Stored {
    message: OutgoingMessage,
    sent_at: Timestamp,
    /// By the clock's `monotonic`. Withheld messages are never visible.
    visible_from: Duration,
    received_at: Duration,
    receive_count: u32,
    receipt: Option<ReceiptHandle>,
}

impl SimulatedQueue {
    pub(crate) fn new(place: Place, clock: ManualClock) -> Self {
        Self {
            name: QueueName::Deliveries,
            place,
            clock,
            shared: Arc::default(),
        }
    }

    pub(crate) fn named(&self, name: QueueName) -> Self {
        Self {
            name,
            ..self.clone()
        }
    }

    /// The number of messages that are due and not in flight.
    pub(crate) fn visible(&self) -> usize {
        let now = self.clock.monotonic();
        let shared = self.shared.lock();
        shared
            .of(self.name)
            .filter(|it| it.1.visible_from <= now)
            .count()
    }

    /// The time of the clock's `monotonic` at which the next message becomes visible.
    pub(crate) fn next_visible(&self) -> Option<Duration> {
        let now = self.clock.monotonic();
        let shared = self.shared.lock();
        let times = shared.of(self.name).map(|it| it.1.visible_from);
        times.filter(|time| *time > now).min()
    }

    /// All messages, also those in flight.
    pub(crate) fn length(&self) -> usize {
        self.shared.lock().of(self.name).count()
    }

    /// Changes the bodies of messages for which `change` has another one.
    pub(crate) fn change_bodies(&self, change: impl Fn(&Bytes) -> Option<Bytes>) {
        let messages = &mut self.shared.lock().messages;
        for (_, stored) in messages.iter_mut().filter(|it| it.0.0 == self.name) {
            if let Some(body) = change(&stored.message.body) {
                stored.message.body = body;
            }
        }
    }

    /// The process is killed: what drops with it tells the queue nothing.
    pub(crate) fn kill(&self) {
        self.shared.lock().is_killed = true;
    }

    /// After the receivers have died whose messages are in flight: an embedded queue shows them
    /// again at its start.
    pub(crate) fn forget_receivers(&self) {
        self.shared.lock().is_killed = false;
        if self.place == Place::Aws {
            return;
        }
        let now = self.clock.monotonic();
        for stored in self.shared.lock().messages.values_mut() {
            if stored.receipt.take().is_some() && stored.visible_from > now {
                stored.visible_from = now;
            }
            if stored.visible_from == Duration::MAX {
                stored.visible_from = now;
            }
        }
    }

    fn send(&self, shared: &mut Shared, to: QueueName, message: OutgoingMessage) -> u64 {
        let now = self.clock.monotonic();
        // SQS delays by whole seconds.
        let delay = if self.place == Place::Aws && message.delay.subsec_nanos() > 0 {
            Duration::from_secs(message.delay.as_secs() + 1)
        } else {
            message.delay
        };
        shared.numbers += 1;
        let stored = Stored {
            message,
            sent_at: self.clock.now(),
            visible_from: now + delay,
            received_at: Duration::ZERO,
            receive_count: 0,
            receipt: None,
        };
        shared.messages.insert((to, shared.numbers), stored);
        shared.numbers
    }

    fn groups(&self) -> BTreeMap<String, (GroupCount, u64, Option<Timestamp>)> {
        let now = self.clock.monotonic();
        let time = self.clock.now();
        let mut all = BTreeMap::<String, (GroupCount, u64, Option<Timestamp>)>::new();
        let shared = self.shared.lock();
        let shown = shared
            .of(self.name)
            .filter(|it| it.1.visible_from < Duration::MAX);
        for (_, stored) in shown {
            let body = &stored.message.body;
            let carried = carried_by_message(body)
                .unwrap_or_else(|| CarriedEvents::one_event(stored.sent_at));
            let group = stored.message.group.clone().unwrap_or_default();
            let (count, due_bytes, next_due) = all.entry(group).or_default();
            let events = u64::from(carried.events);
            if stored.visible_from <= now {
                count.due += events;
                *due_bytes += body.len() as u64;
            } else if stored.receipt.is_some() {
                count.in_flight += events;
            } else {
                count.delayed += events;
                let due = time + stored.visible_from.saturating_sub(now);
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

    fn tells_groups(&self) -> bool {
        self.place == Place::Serve
    }
}

impl Shared {
    fn of(&self, name: QueueName) -> impl Iterator<Item = (u64, &Stored)> {
        let range = (name, 0)..=(name, u64::MAX);
        self.messages
            .range(range)
            .map(|(key, stored)| (key.1, stored))
    }

    fn held(&self, name: QueueName, receipt: &ReceiptHandle) -> Result<u64, PortError> {
        let is_it = |it: &(u64, &Stored)| it.1.receipt.as_ref() == Some(receipt);
        let found = self.of(name).find(is_it).map(|(number, _)| number);
        found.ok_or(PortError::new(
            "find a received message",
            ErrorKind::NotFound,
        ))
    }

    /// The visible message whose group has the fewest in flight, and of these the oldest.
    fn next(&self, name: QueueName, now: Duration) -> Option<u64> {
        let mut in_flight = BTreeMap::<Option<&String>, usize>::new();
        for (_, stored) in self.of(name) {
            if stored.receipt.is_some() && stored.visible_from > now {
                *in_flight.entry(stored.message.group.as_ref()).or_default() += 1;
            }
        }
        let visible = self.of(name).filter(|it| it.1.visible_from <= now);
        let of = |stored: &Stored| in_flight.get(&stored.message.group.as_ref()).copied();
        let fair = visible.min_by_key(|(number, stored)| (of(stored), *number));
        fair.map(|(number, _)| number)
    }
}

impl QueueSender for SimulatedQueue {
    async fn send_batch(
        &self,
        entries: Vec<OutgoingMessage>,
    ) -> Result<Vec<Result<MessageId, PortError>>, PortError> {
        validate::batch(&entries).map_err(|e| e.into_port_error("send"))?;
        let mut shared = self.shared.lock();
        let send = |entry: OutgoingMessage| {
            validate::message(&entry).map_err(|e| e.into_port_error("send"))?;
            let number = self.send(&mut shared, self.name, entry);
            Ok(MessageId(number.to_string().into()))
        };
        Ok(entries.into_iter().map(send).collect())
    }

    fn sends_whole(&self) -> bool {
        self.place == Place::Serve
    }

    async fn send_whole(
        &self,
        entries: Vec<OutgoingMessage>,
        beside: Vec<Successor>,
    ) -> Result<(), PortError> {
        let mut shared = self.shared.lock();
        let all = entries.iter().chain(beside.iter().map(|it| &it.message));
        for message in all {
            validate::message(message).map_err(|e| e.into_port_error("send whole"))?;
        }
        for entry in entries {
            self.send(&mut shared, self.name, entry);
        }
        for successor in beside {
            self.send(&mut shared, successor.to, successor.message);
        }
        Ok(())
    }

    async fn withhold(&self, entries: Vec<OutgoingMessage>) -> Result<WithheldMessages, PortError> {
        let mut shared = self.shared.lock();
        let mut keys = Vec::new();
        for entry in entries {
            validate::message(&entry).map_err(|e| e.into_port_error("withhold"))?;
            let key = (self.name, self.send(&mut shared, self.name, entry));
            if let Some(stored) = shared.messages.get_mut(&key) {
                keys.push((key, stored.visible_from));
                stored.visible_from = Duration::MAX;
            }
        }
        let world = Arc::clone(&self.shared);
        Ok(WithheldMessages::new(move |fate| {
            let mut shared = world.lock();
            if shared.is_killed {
                return;
            }
            for (key, visible_from) in keys {
                match (fate, shared.messages.get_mut(&key)) {
                    (WithheldFate::Shown, Some(stored)) => stored.visible_from = visible_from,
                    (WithheldFate::Deleted, _) => drop(shared.messages.remove(&key)),
                    (WithheldFate::Shown, None) => {}
                }
            }
        }))
    }
}

impl QueueReceiver for SimulatedQueue {
    async fn receive(&self, request: ReceiveRequest) -> Result<Vec<ReceivedMessage>, PortError> {
        validate::receive_request(&request).map_err(|e| e.into_port_error("receive"))?;
        let now = self.clock.monotonic();
        let mut shared = self.shared.lock();
        let mut received = Vec::new();
        while received.len() < request.max
            && let Some(number) = shared.next(self.name, now)
        {
            shared.numbers += 1;
            let receipt = ReceiptHandle(shared.numbers.to_string().into());
            let key = (self.name, number);
            let Some(stored) = shared.messages.get_mut(&key) else {
                break;
            };
            if self.name != QueueName::Redrive && stored.receive_count >= MAX_RECEIVE_COUNT {
                stored.receipt = None;
                if let Some(stored) = shared.messages.remove(&key) {
                    shared.messages.insert((QueueName::Redrive, number), stored);
                }
                continue;
            }
            stored.receive_count += 1;
            stored.receipt = Some(receipt.clone());
            stored.received_at = now;
            stored.visible_from = now + request.visibility;
            received.push(ReceivedMessage {
                id: MessageId(number.to_string().into()),
                receipt,
                body: stored.message.body.clone(),
                receive_count: stored.receive_count,
                sent_at: stored.sent_at,
            });
        }
        Ok(received)
    }

    async fn acknowledge(&self, receipt: &ReceiptHandle) -> Result<(), PortError> {
        let mut shared = self.shared.lock();
        if let Ok(number) = shared.held(self.name, receipt) {
            shared.messages.remove(&(self.name, number));
        }
        Ok(())
    }

    /// On AWS the successors are sent first, whatever the receipt is worth.
    async fn replace(
        &self,
        receipt: &ReceiptHandle,
        successors: Vec<Successor>,
    ) -> Result<(), PortError> {
        for successor in &successors {
            validate::message(&successor.message).map_err(|e| e.into_port_error("replace"))?;
        }
        let mut shared = self.shared.lock();
        let held = shared.held(self.name, receipt);
        let number = match (self.place, held) {
            (Place::Serve, held) => Some(held?),
            (Place::Aws, held) => held.ok(),
        };
        for successor in successors {
            self.send(&mut shared, successor.to, successor.message);
        }
        if let Some(number) = number {
            shared.messages.remove(&(self.name, number));
        }
        Ok(())
    }

    async fn change_visibility(
        &self,
        receipt: &ReceiptHandle,
        visibility: Duration,
    ) -> Result<(), PortError> {
        let mut shared = self.shared.lock();
        let number = shared.held(self.name, receipt)?;
        let now = self.clock.monotonic();
        if let Some(stored) = shared.messages.get_mut(&(self.name, number)) {
            let visible_from = now + visibility;
            let length = visible_from.saturating_sub(stored.received_at);
            validate::visibility_timeout(length).map_err(|e| e.into_port_error("change"))?;
            stored.visible_from = visible_from;
        }
        Ok(())
    }

    async fn counts(&self) -> Result<QueueCounts, PortError> {
        let now = self.clock.monotonic();
        let mut counts = QueueCounts::default();
        for (_, stored) in self.shared.lock().of(self.name) {
            match (stored.visible_from > now, &stored.receipt) {
                (false, _) => counts.visible += 1,
                (true, None) => counts.delayed += 1,
                (true, Some(_)) => counts.in_flight += 1,
            }
        }
        Ok(counts)
    }

    async fn due_by_group(&self) -> Result<Option<Vec<DueOfGroup>>, PortError> {
        if !self.tells_groups() {
            return Ok(None);
        }
        let due = self.groups().into_iter().filter(|it| it.1.0.due > 0);
        let of = |(group, (count, bytes, _)): (String, (GroupCount, u64, _))| DueOfGroup {
            group: group.into(),
            due: count.due,
            bytes,
        };
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
        if !self.tells_groups() {
            return Ok(None);
        }
        let all = self.groups();
        let count = |group: &String| {
            let (count, _, next_due) = all.get(group).copied().unwrap_or_default();
            GroupCount { next_due, ..count }
        };
        Ok(Some(groups.iter().map(count).collect()))
    }

    async fn waiting_by_group(&self) -> Result<Option<Vec<(Arc<str>, GroupCount)>>, PortError> {
        if !self.tells_groups() {
            return Ok(None);
        }
        let count = |(group, (count, ..)): (String, (GroupCount, u64, _))| (group.into(), count);
        Ok(Some(self.groups().into_iter().map(count).collect()))
    }
}
