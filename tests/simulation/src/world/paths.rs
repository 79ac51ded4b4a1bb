//! Subscriptions of several topics at paths of one host and port, each of which behaves in its own
//! way, and time in which all of them are busy.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use posthaste_core::api::TopicSettings;
use posthaste_core::model::{
    CreationRecord, Delivery, EventPayload, SQS_BATCH_ENTRIES_MAX, SubscriptionName, Timestamp,
    TopicCreations, TopicName,
};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, ObjectStore, OutgoingMessage, PutCondition, QueueName, QueueSender};
use posthaste_testkit::records;
use serde_json::json;

use super::World;
use crate::link_path::LinkPath;
use crate::names::creation_id;

/// The host of all paths.
const HOST: &str = "https://billing.example.com";

/// The time that an invocation has.
const INVOCATION: Duration = Duration::from_mins(2);

/// Most invocations at once, of ten messages each: more than the messages that may be in flight.
const INVOCATIONS_MAX: usize = 120;

/// Most invocations that begin in one go.
const BEGUN_AT_ONCE_MAX: u64 = 20;

/// Messages of one invocation.
const MESSAGES: u64 = 10;

type Work<'a> = FuturesUnordered<Pin<Box<dyn Future<Output = ()> + 'a>>>;

fn names(place: &str) -> (TopicName, SubscriptionName) {
    let (topic, name) = place.split_once('.').expect("a topic and a name");
    (records::topic_name(topic), records::subscription_name(name))
}

impl World {
    /// Writes the topics of these subscriptions, all of which are at one host and port.
    pub async fn subscribe_paths(&self, paths: &[LinkPath]) {
        let mut topics: BTreeMap<TopicName, TopicSettings> = BTreeMap::new();
        for path in paths {
            let (topic, name) = names(path.place());
            let mut settings =
                json!({ "endpoint": { "url": format!("{HOST}{}", path.url_path()) } });
            let members = settings.as_object_mut().expect("an object");
            members.extend(path.settings().as_object().expect("an object").clone());
            let settings = serde_json::from_value(settings).expect("settings of a subscription");
            let of_topic = topics.entry(topic).or_default();
            of_topic.subscriptions.insert(name, settings);
            if let Some(answer) = path.answer() {
                self.endpoint.answer_at(path.url_path(), answer);
            }
        }
        let now = self.clock.now();
        for (topic, settings) in topics {
            let creation = CreationRecord {
                id: creation_id(1),
                at: Some(now),
            };
            let created = settings.subscriptions.keys();
            let creations = TopicCreations {
                topic: Some(creation),
                subscriptions: created.map(|name| (name.clone(), creation)).collect(),
            };
            let key = layout::topic_record_key(&topic);
            let record = TopicRecord {
                creations,
                ..records::topic_record(topic, settings, now)
            };
            let state = self.local.state_store();
            let put = state.put(&key, record.render(), PutCondition::Always);
            put.await.expect("a write");
        }
    }

    /// Puts so many deliveries, each of these events, into the queue for a subscription.
    pub async fn publish_to(&self, place: &str, events: &[String], messages: usize) {
        let payload = |json: &String| EventPayload::Inline(Bytes::from(json.clone()));
        let key = format!("k{}", self.clock.now().as_millis());
        let delivery = Delivery {
            identity: Some(self.identity()),
            ..records::delivery(
                names(place),
                &key,
                events.iter().map(payload),
                self.clock.now(),
            )
        };
        let message = OutgoingMessage {
            body: render_delivery(&delivery),
            group: Some(delivery.message_group_id()),
            delay: Duration::ZERO,
        };
        let queue = self.local.queue(QueueName::Deliveries);
        let mut left = messages;
        while left > 0 {
            let batch = vec![message.clone(); left.min(SQS_BATCH_ENTRIES_MAX)];
            left -= batch.len();
            let sent = self.calls.unnoted(queue.send_batch(batch)).await;
            assert!(sent.expect("a batch").iter().all(Result::is_ok));
        }
    }

    /// Time passes, from one moment at which something is due to the next, and at most `step` at
    /// once. Before each step `act` is called with its number. As many invocations of deliver run
    /// at once as there is work for, and wake runs each minute.
    pub async fn pass_busily(
        &self,
        step: Duration,
        length: Duration,
        mut act: impl AsyncFnMut(u32),
    ) {
        let end = self.clock.now() + length;
        let mut work = Work::new();
        let mut steps = 0;
        let mut next_step = self.clock.now();
        let mut minute = minute_of(next_step);
        while self.clock.now() < end {
            if self.clock.now() >= next_step {
                act(steps).await;
                steps += 1;
                next_step = next_step + step;
            }
            if minute_of(self.clock.now()) > minute {
                minute = minute_of(self.clock.now());
                work.push(Box::pin(async {
                    self.wake.run().await.expect("a run of wake");
                }));
            }
            self.work_on(&mut work).await;
            let now = self.clock.now();
            let due = self.clock.next_due().filter(|due| *due > now);
            let next = due.map_or(next_step, |due| due.min(next_step));
            self.clock.advance(next.since(now));
        }
    }

    /// Lets all of the work go on as far as it does without time, and begins more while there is
    /// something to deliver.
    async fn work_on<'a>(&'a self, work: &mut Work<'a>) {
        let mut at_once = 1;
        loop {
            let visible = self.visible(QueueName::Deliveries).await;
            let wanted = visible.div_ceil(MESSAGES).min(at_once);
            for _ in 0..wanted {
                if work.len() < INVOCATIONS_MAX {
                    work.push(Box::pin(async {
                        self.deliver_within(INVOCATION).await;
                    }));
                }
            }
            self.rest_beside(work).await;
            let left = self.visible(QueueName::Deliveries).await;
            if left == 0 || left >= visible {
                return;
            }
            at_once = (at_once * 2).min(BEGUN_AT_ONCE_MAX);
        }
    }

    async fn rest_beside(&self, work: &mut Work<'_>) {
        loop {
            tokio::select! {
                biased;
                Some(()) = work.next(), if !work.is_empty() => {}
                () = self.rest() => return,
            }
        }
    }
}

fn minute_of(time: Timestamp) -> u64 {
    time.as_millis() / 60_000
}
