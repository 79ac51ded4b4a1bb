//! Publishing into the world's queues.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::delivery::message_group_id;
use posthaste_core::model::{Delivery, EventPayload, PayloadDigest, SubscriptionName, TopicName};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_ports::{Clock, OutgoingMessage, QueueName, QueueSender};
use posthaste_testkit::records;

use super::World;
use crate::names::{subscription_name, topic_name};

impl World {
    /// Puts one delivery of these events into the queue, as publish does.
    pub async fn publish(&self, events: &[String], time_to_live: Duration) {
        let payloads = events
            .iter()
            .map(|json| EventPayload::Inline(Bytes::from(json.clone())));
        self.publish_payloads(payloads.collect(), time_to_live)
            .await;
    }

    /// Puts one delivery of these events into the queue for `pager` of the topic `ops`, as publish
    /// does.
    pub async fn publish_to_ops(&self, events: &[String], time_to_live: Duration) {
        let payloads = events
            .iter()
            .map(|json| EventPayload::Inline(Bytes::from(json.clone())));
        let delivery = Delivery {
            topic: TopicName::parse("ops").expect("a name"),
            subscription: SubscriptionName::parse("pager").expect("a name"),
            ..self.delivery(payloads.collect(), time_to_live)
        };
        self.send(QueueName::Deliveries, render_delivery(&delivery))
            .await;
    }

    /// Puts one delivery into the queue whose event is, or was, in the state bucket under this key:
    /// this text.
    pub async fn publish_stored(&self, key: &str, json: &str) {
        let digest = Some(PayloadDigest::for_json(json.as_bytes()));
        let payload = EventPayload::Stored {
            key: key.to_owned(),
            bytes: json.len(),
            digest,
            names: None,
        };
        self.publish_payloads(vec![payload], Duration::from_hours(24))
            .await;
    }

    async fn publish_payloads(&self, payloads: Vec<EventPayload>, time_to_live: Duration) {
        self.send(
            QueueName::Deliveries,
            render_delivery(&self.delivery(payloads, time_to_live)),
        )
        .await;
    }

    /// One delivery of these events, as a message that publish would send.
    pub fn message(&self, events: &[String], time_to_live: Duration) -> OutgoingMessage {
        let payloads = events
            .iter()
            .map(|json| EventPayload::Inline(Bytes::from(json.clone())));
        message(render_delivery(
            &self.delivery(payloads.collect(), time_to_live),
        ))
    }

    fn delivery(&self, payloads: Vec<EventPayload>, time_to_live: Duration) -> Delivery {
        let now = self.clock.now();
        let to = (topic_name(), subscription_name());
        let key = format!("k{}", now.as_millis());
        let mut delivery = Delivery {
            identity: Some(self.identity()),
            ..records::delivery(to, &key, payloads, now)
        };
        for entry in &mut delivery.events {
            entry.expires_at = now + time_to_live;
        }
        delivery
    }

    /// Puts a body into a queue as it is.
    pub async fn send(&self, queue: QueueName, body: Bytes) {
        let queue = self.local.queue(queue);
        let sent = self
            .calls
            .unnoted(queue.send_batch(vec![message(body)]))
            .await
            .expect("a batch");
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    }
}

fn message(body: Bytes) -> OutgoingMessage {
    let group = Some(message_group_id(&topic_name(), &subscription_name()));
    OutgoingMessage {
        body,
        group,
        delay: Duration::ZERO,
    }
}
