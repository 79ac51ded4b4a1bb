//! Records and deliveries, as manage and publish write them.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::api::{SecretText, TierKeys, TopicSettings};
use posthaste_core::model::{
    Delivery, DeliveryEntry, EventMarks, EventPayload, EventSchema, Hops, SubscriptionName,
    Timestamp, TopicCreations, TopicName,
};
use posthaste_core::stored::{RECORD_VERSION, TopicRecord};
use serde_json::Value;

/// The first key of every topic that [`topic_record`] makes.
pub const TOPIC_KEY: &str = "k1";

/// Time that an event of [`delivery`] lives.
pub const TIME_TO_LIVE: Duration = Duration::from_hours(24);

/// A name of a topic.
pub fn topic_name(name: &str) -> TopicName {
    TopicName::parse(name).expect("a name of a topic")
}

/// A name of a subscription.
pub fn subscription_name(name: &str) -> SubscriptionName {
    SubscriptionName::parse(name).expect("a name of a subscription")
}

/// Settings of a topic from JSON.
pub fn topic_settings(settings: Value) -> TopicSettings {
    serde_json::from_value(settings).expect("settings of a topic")
}

/// The record of a topic with these settings, written at `now` and without creations, as older
/// releases wrote it.
pub fn topic_record(name: TopicName, settings: TopicSettings, now: Timestamp) -> TopicRecord {
    TopicRecord {
        v: RECORD_VERSION,
        name,
        key1: SecretText::new(TOPIC_KEY),
        key2: SecretText::new("k2"),
        tier_keys: TierKeys::default(),
        created_at: now,
        updated_at: now,
        deleted_at: None,
        creations: TopicCreations::default(),
        delivery_log: None,
        record_unmatched: false,
        not_before_attribute: None,
        sender_headers: None,
        delivery_failed_notices: None,
        while_disabled: BTreeMap::new(),
        recovery: BTreeMap::new(),
        max_concurrent_requests: BTreeMap::new(),
        last_changes: Vec::new(),
        settings,
    }
}

/// A first delivery of these CloudEvents to a subscription, due at `now`. The key of each event is
/// `key` and its place.
pub fn delivery(
    (topic, subscription): (TopicName, SubscriptionName),
    key: &str,
    payloads: impl IntoIterator<Item = EventPayload>,
    now: Timestamp,
) -> Delivery {
    let entry = |(index, payload)| DeliveryEntry {
        key: format!("{key}-{index}"),
        expires_at: now + TIME_TO_LIVE,
        traceparent: None,
        marks: EventMarks::default(),
        envelope: None,
        payload,
    };
    Delivery {
        topic,
        subscription,
        schema: EventSchema::CloudEvents,
        published_at: now,
        not_before: now,
        attempts: 0,
        last: None,
        timed_out: false,
        identity: None,
        hops: Hops::default(),
        events: payloads.into_iter().enumerate().map(entry).collect(),
    }
}
