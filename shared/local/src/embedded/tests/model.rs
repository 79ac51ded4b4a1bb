//! Random operations on one queue against a naive reference.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_core::model::{CarriedEvents, Timestamp};
use posthaste_ports::{
    Clock, ErrorKind, GroupCount, OutgoingMessage, QueueCounts, QueueName, QueueReceiver,
    QueueSender, ReceiptHandle, ReceiveRequest, ReceivedMessage, Successor,
};
use proptest::prelude::*;

use super::device::Device;
use super::{clock, open_with, text};
use crate::{EmbeddedStore, LocalOptions};
use posthaste_testkit::ManualClock;

const RECEIVES_MAX: u32 = 3;
const IN_FLIGHT_MAX: usize = 6;
const HIDDEN_MAX: Duration = Duration::from_hours(12);

#[derive(Debug, Clone)]
enum Step {
    Send {
        group: u8,
        delay: Duration,
    },
    Receive {
        max: usize,
        visibility_secs: u64,
    },
    Acknowledge {
        receipt: prop::sample::Index,
    },
    Replace {
        receipt: prop::sample::Index,
        delay: Duration,
    },
    Change {
        receipt: prop::sample::Index,
        secs: u64,
    },
    Advance {
        ms: u64,
    },
    Restart,
}

#[derive(Debug)]
struct Message {
    body: String,
    carried: CarriedEvents,
    group: Option<String>,
    sent_at: Timestamp,
    visible_at: Timestamp,
    received_at: Timestamp,
    receive_count: u32,
    receipt: Option<ReceiptHandle>,
}

/// The beginning of a delivery message, with a number of its own.
fn delivery(number: u32, carried: CarriedEvents) -> String {
    let CarriedEvents { events, .. } = carried;
    let published_ms = u64::from(carried.accepted_secs) * 1000 + 999;
    format!(
        r#"{{"v":1,"n":{events},"topic":"a","subscription":"b","schema":"x","publishedAt":{published_ms},"m":{number}}}"#
    )
}

/// The queue in its plainest form.
#[derive(Debug, Default)]
struct Model {
    messages: Vec<Message>,
    /// Messages that must be in the redrive queue, and were not found there yet.
    redriven: Vec<String>,
    /// Messages that were found there.
    found: BTreeSet<String>,
    receipts: Vec<ReceiptHandle>,
    bodies: u32,
}

impl Model {
    fn send(&mut self, group: u8, delay: Duration, now: Timestamp) -> OutgoingMessage {
        self.bodies += 1;
        let carried = CarriedEvents::new(
            u64::from(self.bodies % 7 + 1),
            Timestamp::from_millis(now.as_millis().saturating_sub(u64::from(self.bodies * 997))),
        );
        // Some are no deliveries.
        let (body, carried) = match self.bodies % 4 {
            0 => (self.bodies.to_string(), CarriedEvents::one_event(now)),
            _ => (delivery(self.bodies, carried), carried),
        };
        let group = (group > 0).then(|| format!("group-{group}"));
        let visible_at = now + delay;
        let sent = OutgoingMessage {
            body: body.clone().into(),
            group: group.clone(),
            delay,
        };
        let received_at = now;
        let receive_count = 0;
        let receipt = None;
        self.messages.push(Message {
            body,
            carried,
            group,
            sent_at: now,
            visible_at,
            received_at,
            receive_count,
            receipt,
        });
        sent
    }

    fn is_in_flight(message: &Message, now: Timestamp) -> bool {
        message.receipt.is_some() && message.visible_at > now
    }

    fn in_flight(&self, now: Timestamp) -> usize {
        self.messages
            .iter()
            .filter(|message| Self::is_in_flight(message, now))
            .count()
    }

    fn in_flight_of(&self, group: Option<&String>, now: Timestamp) -> usize {
        let of = self
            .messages
            .iter()
            .filter(|message| message.group.as_ref() == group);
        of.filter(|message| Self::is_in_flight(message, now))
            .count()
    }

    /// Messages that may be given out next: visible, of the groups with the fewest in flight, if a
    /// slot is free for those.
    fn candidates(&self, now: Timestamp) -> Vec<usize> {
        let free = IN_FLIGHT_MAX.saturating_sub(self.in_flight(now));
        let of = |index: &usize| self.in_flight_of(self.messages[*index].group.as_ref(), now);
        let visible =
            (0..self.messages.len()).filter(|index| self.messages[*index].visible_at <= now);
        let visible: Vec<_> = visible.collect();
        let fewest = visible.iter().map(of).min().unwrap_or(0);
        visible
            .into_iter()
            .filter(|index| of(index) == fewest && fewest < free)
            .collect()
    }

    /// True if the queue could have given out these, one after the other.
    fn receive(
        &mut self,
        given: &[ReceivedMessage],
        max: usize,
        visibility: Duration,
        now: Timestamp,
    ) {
        let mut given = given.iter();
        for _ in 0..max {
            let Some(received) = given.next() else { break };
            self.redrive_before(&text(received), now);
            let candidates = self.candidates(now);
            let found = candidates
                .iter()
                .find(|index| self.messages[**index].body == text(received));
            let message = &mut self.messages[*found.expect("a message that may be given out")];
            message.receive_count += 1;
            assert_eq!(
                (received.receive_count, received.sent_at),
                (message.receive_count, message.sent_at)
            );
            message.received_at = now;
            message.visible_at = now + visibility;
            message.receipt = Some(received.receipt.clone());
            assert!(!self.receipts.contains(&received.receipt));
            self.receipts.push(received.receipt.clone());
        }
        assert_eq!(given.count(), 0, "more messages than asked for");
    }

    /// Worn-out messages may be moved whenever they could be given out; all of them before a
    /// receive returns fewer than it could.
    fn redrive_before(&mut self, body: &str, now: Timestamp) {
        let is_candidate = |model: &Self| {
            model
                .candidates(now)
                .iter()
                .any(|i| model.messages[*i].body == body)
        };
        while !is_candidate(self) {
            let worn_out = self
                .candidates(now)
                .into_iter()
                .find(|i| self.messages[*i].receive_count >= RECEIVES_MAX);
            let Some(index) = worn_out else { return };
            self.redriven.push(self.messages.remove(index).body);
        }
    }

    /// Notes a message that was found in the redrive queue.
    fn was_redriven(&mut self, body: &str, now: Timestamp) {
        if !self.found.insert(body.to_owned()) {
            return;
        }
        if let Some(index) = self.redriven.iter().position(|known| known == body) {
            self.redriven.remove(index);
            return;
        }
        let index = self.messages.iter().position(|known| known.body == body);
        let message = self
            .messages
            .remove(index.expect("a message of the queue, and moved once"));
        assert!(
            message.receive_count >= RECEIVES_MAX && message.visible_at <= now,
            "moved too early"
        );
    }

    fn held(&self, receipt: &ReceiptHandle) -> Option<usize> {
        self.messages
            .iter()
            .position(|message| message.receipt.as_ref() == Some(receipt))
    }

    /// Events of a group, by where their messages are, the oldest one's time, and the time at which
    /// the first delayed message becomes visible.
    fn waiting(&self, group: &str, now: Timestamp) -> GroupCount {
        let of = self
            .messages
            .iter()
            .filter(|it| it.group.as_deref() == Some(group));
        let mut count = GroupCount::default();
        for message in of {
            let events = u64::from(message.carried.events);
            if message.visible_at <= now {
                count.due += events;
            } else if Self::is_in_flight(message, now) {
                count.in_flight += events;
            } else {
                count.delayed += events;
                count.next_due = count.next_due.into_iter().chain([message.visible_at]).min();
            }
            let accepted = message.carried.oldest_accepted_at();
            count.oldest = count.oldest.into_iter().chain(accepted).min();
        }
        count
    }

    fn counts(&self, now: Timestamp) -> QueueCounts {
        let in_flight = self.in_flight(now) as u64;
        let visible = self
            .messages
            .iter()
            .filter(|message| message.visible_at <= now)
            .count() as u64;
        QueueCounts {
            visible,
            delayed: self.messages.len() as u64 - visible - in_flight,
            in_flight,
        }
    }
}

struct World {
    device: Device,
    clock: ManualClock,
    local: EmbeddedStore<ManualClock>,
    model: Model,
}

fn options() -> LocalOptions {
    LocalOptions {
        max_receive_count: RECEIVES_MAX,
        deliveries_in_flight_max: IN_FLIGHT_MAX,
        // Room for a few bodies only, so that both ways of reading are taken.
        body_cache_bytes: 400,
        ..LocalOptions::default()
    }
}

impl World {
    async fn make(&mut self, step: Step) {
        let now = self.clock.now();
        let queue = self.local.queue(QueueName::Deliveries);
        match step {
            Step::Send { group, delay } => {
                let message = self.model.send(group, delay, now);
                queue
                    .send_batch(vec![message])
                    .await
                    .unwrap()
                    .remove(0)
                    .unwrap();
            }
            Step::Receive {
                max,
                visibility_secs,
            } => {
                let visibility = Duration::from_secs(visibility_secs);
                let request = ReceiveRequest {
                    max,
                    visibility,
                    wait: Duration::ZERO,
                };
                let given = queue.receive(request).await.unwrap();
                self.model.receive(&given, max, visibility, now);
                self.follow_redrive().await;
                assert!(
                    given.len() == max || self.model.candidates(now).is_empty(),
                    "too few were given"
                );
            }
            Step::Acknowledge { receipt } => {
                let Some(receipt) = self.receipt(receipt) else {
                    return;
                };
                queue.acknowledge(&receipt).await.unwrap();
                if let Some(index) = self.model.held(&receipt) {
                    self.model.messages.remove(index);
                }
            }
            Step::Replace { receipt, delay } => {
                let Some(receipt) = self.receipt(receipt) else {
                    return;
                };
                let held = self.model.held(&receipt);
                let message = self.model.send(3, delay, now);
                let successor = Successor {
                    to: QueueName::Deliveries,
                    message,
                };
                let replaced = queue
                    .replace(&receipt, vec![successor])
                    .await
                    .map_err(|error| error.kind);
                assert_eq!(replaced, held.map(drop).ok_or(ErrorKind::NotFound));
                // The old one is gone, or else the successor was never sent.
                self.model
                    .messages
                    .remove(held.unwrap_or(self.model.messages.len() - 1));
            }
            Step::Change { receipt, secs } => {
                let Some(receipt) = self.receipt(receipt) else {
                    return;
                };
                let changed = queue
                    .change_visibility(&receipt, Duration::from_secs(secs))
                    .await;
                assert_eq!(
                    changed.map_err(|error| error.kind),
                    self.change(&receipt, secs, now)
                );
            }
            Step::Advance { ms } => self.clock.advance(Duration::from_millis(ms)),
            Step::Restart => self.restart().await,
        }
    }

    fn receipt(&self, index: prop::sample::Index) -> Option<ReceiptHandle> {
        let receipts = &self.model.receipts;
        (!receipts.is_empty()).then(|| receipts[index.index(receipts.len())].clone())
    }

    fn change(
        &mut self,
        receipt: &ReceiptHandle,
        secs: u64,
        now: Timestamp,
    ) -> Result<(), ErrorKind> {
        let held = self.model.held(receipt);
        let held = held.filter(|index| Model::is_in_flight(&self.model.messages[*index], now));
        let message = &mut self.model.messages[held.ok_or(ErrorKind::NotFound)?];
        let visible_at = now + Duration::from_secs(secs);
        if visible_at > message.received_at + HIDDEN_MAX {
            return Err(ErrorKind::Invalid);
        }
        message.visible_at = visible_at;
        Ok(())
    }

    /// A restart ends every visibility timeout and starts the receive counts again.
    async fn restart(&mut self) {
        self.local.clone().close().await;
        self.local = open_with(&self.device, &options(), &self.clock);
        let now = self.clock.now();
        for message in self
            .model
            .messages
            .iter_mut()
            .filter(|message| message.receive_count > 0)
        {
            message.receive_count = 0;
            message.receipt = None;
            message.visible_at = now;
        }
    }

    /// The queue may have moved more than the given messages show: what is in the redrive queue
    /// left this one.
    async fn follow_redrive(&mut self) {
        let redrive = self.local.queue(QueueName::Redrive);
        let request = ReceiveRequest {
            max: 10,
            visibility: HIDDEN_MAX,
            wait: Duration::ZERO,
        };
        loop {
            let moved = redrive.receive(request).await.unwrap();
            if moved.is_empty() {
                break;
            }
            for message in moved {
                self.model.was_redriven(&text(&message), self.clock.now());
            }
        }
        assert_eq!(
            self.model.redriven,
            Vec::<String>::new(),
            "messages that are not in the redrive queue"
        );
        let QueueCounts {
            visible,
            delayed,
            in_flight,
        } = redrive.counts().await.unwrap();
        assert_eq!(
            visible + delayed + in_flight,
            self.model.found.len() as u64,
            "none is lost from there"
        );
    }

    async fn check(&self) {
        let counts = self
            .local
            .queue(QueueName::Deliveries)
            .counts()
            .await
            .unwrap();
        assert_eq!(counts, self.model.counts(self.clock.now()));
        self.check_groups().await;
    }

    /// Checks that the waiting messages are those of the model, group by group, also after a
    /// restart.
    async fn check_groups(&self) {
        let groups: Vec<_> = (1..5).map(|number| format!("group-{number}")).collect();
        let queue = self.local.queue(QueueName::Deliveries);
        let counts = queue.waiting_counts(&groups).await.unwrap().unwrap();
        let all: BTreeMap<_, _> = queue
            .waiting_by_group()
            .await
            .unwrap()
            .unwrap()
            .into_iter()
            .collect();
        for (group, count) in groups.iter().zip(counts) {
            let expected = self.model.waiting(group, self.clock.now());
            assert_eq!(count, expected, "{group}");
            let expected = GroupCount {
                next_due: None,
                ..expected
            };
            let found = all.get(group.as_str()).copied().unwrap_or_default();
            assert_eq!(found, expected, "{group} among all");
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let receipt = any::<prop::sample::Index>;
    let delay = || {
        prop_oneof![4 => Just(0), 2 => 1_u64..5000, 1 => Just(900_000)]
            .prop_map(Duration::from_millis)
    };
    prop_oneof![
        8 => (0_u8..4, delay()).prop_map(|(group, delay)| Step::Send { group, delay }),
        6 => (1_usize..=10, 1_u64..6)
            .prop_map(|(max, visibility_secs)| Step::Receive { max, visibility_secs }),
        4 => receipt().prop_map(|receipt| Step::Acknowledge { receipt }),
        3 => (receipt(), delay()).prop_map(|(receipt, delay)| Step::Replace { receipt, delay }),
        4 => (receipt(), prop_oneof![Just(0), 0_u64..5, Just(43_199), Just(43_200)])
            .prop_map(|(receipt, secs)| Step::Change { receipt, secs }),
        4 => prop_oneof![5 => 1_u64..4000, 1 => Just(1_000_000)].prop_map(|ms| Step::Advance { ms }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_queue_does_what_the_reference_does(steps in prop::collection::vec(step(), 1..120)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let (device, clock) = (Device::default(), clock());
            let local = open_with(&device, &options(), &clock);
            let mut world = World { device, clock, local, model: Model::default() };
            for step in steps {
                world.make(step).await;
                world.check().await;
            }
        });
    }
}
