//! The world's topics and subscriptions.

use bytes::Bytes;
use posthaste_core::api::{SubscriptionSettings, TopicSettings};
use posthaste_core::model::{
    CreationRecord, DeliveryLogMode, Identity, SubscriptionName, Timestamp, TopicCreations,
    TopicName,
};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, ObjectStore, PutCondition};
use posthaste_testkit::records;
use serde_json::Value;

use super::{Created, World};
use crate::names::{creation_id, subscription_name, topic_name};

impl World {
    /// Writes the topic `orders` with one subscription, `billing`, of these settings (an endpoint
    /// is added).
    pub async fn subscribe(&self, settings: Value) {
        let mut subscription =
            serde_json::json!({ "endpoint": { "url": "https://billing.example.com/hooks" } });
        let members = subscription.as_object_mut().expect("an object");
        members.extend(settings.as_object().expect("an object").clone());
        let subscription: SubscriptionSettings =
            serde_json::from_value(subscription).expect("settings of a subscription");
        let mut topic = TopicSettings::default();
        topic
            .subscriptions
            .insert(subscription_name(), subscription);
        self.write_topic(topic).await;
    }

    /// Sets how much the delivery log keeps of the topic.
    pub async fn log(&self, mode: DeliveryLogMode) {
        let mut record = self.record().await;
        record.settings.delivery_log = Some(mode);
        self.write_record(record.render()).await;
    }

    /// Has notices about `orders` go to the topic `ops`, whose one subscription, `pager`, has these
    /// settings (an endpoint is added).
    pub async fn tell_ops(&self, pager: Value) {
        let orders = TopicRecord {
            settings: TopicSettings::default(),
            ..self.record().await
        };
        let ops = TopicName::parse("ops").expect("a name");
        let mut told = self.record().await;
        told.settings.notices_topic = Some(ops.clone());
        self.write_record(told.render()).await;
        let mut subscription =
            serde_json::json!({ "endpoint": { "url": "https://pager.example.com/" } });
        let members = subscription.as_object_mut().expect("an object");
        members.extend(pager.as_object().expect("an object").clone());
        let subscription =
            serde_json::from_value(subscription).expect("settings of a subscription");
        let mut record = TopicRecord {
            name: ops.clone(),
            ..orders
        };
        record.settings.subscriptions.insert(
            SubscriptionName::parse("pager").expect("a name"),
            subscription,
        );
        let key = layout::topic_record_key(&ops);
        self.local
            .state_store()
            .put(&key, record.render(), PutCondition::Always)
            .await
            .expect("a write");
    }

    /// Deletes the subscription and creates it again with these settings.
    pub async fn subscribe_again(&self, settings: Value) {
        self.created.lock().expect("no panic").subscription += 1;
        self.subscribe(settings).await;
    }

    /// Deletes the topic and creates it again, with a subscription of these settings.
    pub async fn create_topic_again(&self, settings: Value) {
        self.created.lock().expect("no panic").topic += 1;
        self.subscribe_again(settings).await;
    }

    /// The identity of the subscription as it is now.
    pub fn identity(&self) -> Identity {
        let Created {
            topic,
            subscription,
        } = *self.created.lock().expect("no panic");
        Identity {
            topic: creation_id(topic),
            subscription: creation_id(subscription),
        }
    }

    /// The creations in a record that was written at this time.
    fn creations(&self, at: Timestamp) -> TopicCreations {
        let Identity {
            topic,
            subscription,
        } = self.identity();
        let [topic, subscription] =
            [topic, subscription].map(|id| CreationRecord { id, at: Some(at) });
        TopicCreations {
            topic: Some(topic),
            subscriptions: [(subscription_name(), subscription)].into(),
        }
    }

    /// Deletes the subscription.
    pub async fn unsubscribe(&self) {
        self.write_topic(TopicSettings::default()).await;
    }

    /// The topic's record, as it is stored.
    pub async fn record(&self) -> TopicRecord {
        let object = self
            .local
            .state_store()
            .get(&layout::topic_record_key(&topic_name()))
            .await
            .expect("a read");
        TopicRecord::parse(&object.expect("the topic").bytes).expect("a record")
    }

    /// Writes these bytes where the topic's record is.
    pub async fn write_record(&self, bytes: Bytes) {
        let key = layout::topic_record_key(&topic_name());
        self.local
            .state_store()
            .put(&key, bytes, PutCondition::Always)
            .await
            .expect("a write");
    }

    async fn write_topic(&self, settings: TopicSettings) {
        let now = self.clock.now();
        let record = records::topic_record(topic_name(), settings, now);
        self.write_record(
            TopicRecord {
                creations: self.creations(now),
                ..record
            }
            .render(),
        )
        .await;
    }
}
