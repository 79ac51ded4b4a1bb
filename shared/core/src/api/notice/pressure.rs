//! The notice about a change of back pressure: one for each resource whose level changed, or on
//! whose account producers began to be refused, of all producers or of one topic's own.

use std::time::Duration;

use serde::Serialize;

use super::envelope::{NoticeEnvelope, subscription_path};
use crate::events::{Event, EventError};
use crate::model::time::format_duration;
use crate::model::{EventSchema, ProducerTier, SubscriptionName, TopicName};
use crate::pressure::{LevelThresholds, PressureChange, PressureLevel, Resource, ResourceState};

/// The type of a notice about a change of back pressure.
pub const PRESSURE_CHANGED: &str = "dev.posthaste.pressure.changed";

/// The path of `GET /pressure`, which is the `source` of its notices.
const SOURCE: &str = "/pressure";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PressureNoticeData<'a> {
    #[serde(flatten)]
    topic: Option<ChangedTopicData<'a>>,
    resource: Resource,
    previous_level: PressureLevel,
    level: PressureLevel,
    overall_level: PressureLevel,
    refusal_began: bool,
    #[serde(flatten)]
    seen: Option<ShownReading>,
    tarpit: String,
    refused_tiers: &'a [ProducerTier],
}

/// The topic whose own producers it is about.
#[derive(Serialize)]
struct ChangedTopicData<'a> {
    topic: &'a TopicName,
    subscription: &'a SubscriptionName,
    due: u64,
}

/// The last reading of the resource; left out where nothing can be read any more.
#[derive(Serialize)]
struct ShownReading {
    reading: u64,
    unit: &'static str,
    thresholds: LevelThresholds,
    since: String,
}

impl PressureChange {
    pub(super) fn render_event(&self, schema: EventSchema) -> Result<Event, EventError> {
        let resource = self.resource;
        let topic = self.topic.as_ref();
        let name = topic.map_or_else(String::new, |topic| format!(".{}", topic.name.folded()));
        let path = topic.map(|topic| subscription_path(&topic.name, &topic.subscription));
        let envelope = NoticeEnvelope {
            // A resource, or that of a topic, changes once in a poll.
            id: format!("pressure.{resource}{name}.{}", self.at.as_millis()),
            event_type: PRESSURE_CHANGED,
            source: SOURCE.to_owned(),
            subject: format!("{SOURCE}/{resource}{}", path.unwrap_or_default()),
            at: self.at,
            traceparent: None,
            text: format!(
                "{resource}{} went from {} to {}.",
                topic.map_or_else(String::new, |topic| format!(" of {}", topic.name)),
                self.previous,
                self.current
            ),
        };
        let data = PressureNoticeData {
            topic: topic.map(|topic| ChangedTopicData {
                topic: &topic.name,
                subscription: &topic.subscription,
                due: topic.due,
            }),
            resource,
            previous_level: self.previous,
            level: self.current,
            overall_level: self.overall,
            refusal_began: self.refusal_began,
            seen: self.seen.as_ref().map(ShownReading::from_state),
            tarpit: format_duration(Duration::from_millis(self.tarpit_ms)),
            refused_tiers: &self.refused_tiers,
        };
        envelope.with_data(&data, schema)
    }
}

impl ShownReading {
    fn from_state(state: &ResourceState) -> Self {
        Self {
            reading: state.reading,
            unit: state.unit(),
            thresholds: state.thresholds,
            since: state.since.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::notice::Notice;
    use crate::model::Timestamp;
    use crate::pressure::ChangedTopic;
    use serde_json::{Value, json};

    fn change() -> PressureChange {
        let at = Timestamp::from_millis(1_700_000_000_000);
        PressureChange {
            at,
            topic: None,
            resource: Resource::DrainTime,
            previous: PressureLevel::Normal,
            current: PressureLevel::Medium,
            refusal_began: false,
            overall: PressureLevel::High,
            tarpit_ms: 15_000,
            refused_tiers: vec![ProducerTier::Bulk],
            seen: Some(ResourceState {
                resource: Resource::DrainTime,
                level: PressureLevel::Medium,
                since: at,
                reading: 70,
                read_at: at,
                thresholds: LevelThresholds::new(30, 60, 300),
                acts: true,
                watched_only: false,
                tarpits: true,
                polls: 1,
                history_depth: Some(30),
                in_flight: false,
                refused_from: None,
                measures: std::collections::BTreeSet::default(),
            }),
        }
    }

    fn shown(change: &PressureChange, schema: EventSchema) -> Value {
        serde_json::from_slice(
            Notice::Pressure(change)
                .render_event(schema)
                .unwrap()
                .json(),
        )
        .unwrap()
    }

    fn data() -> Value {
        json!({
            "text": "drain-time went from normal to medium.",
            "resource": "drain-time", "previousLevel": "normal", "level": "medium", "overallLevel": "high",
            "refusalBegan": false, "reading": 70, "unit": "seconds",
            "thresholds": { "normal": 30, "medium": 60, "high": 300 }, "since": "2023-11-14T22:13:20.000Z",
            "tarpit": "PT15S", "refusedTiers": ["bulk"],
        })
    }

    /// Notice says what changed and what producers get because of it.
    #[test]
    fn pressure_notice_shows_the_change_and_its_effect() {
        let expected = json!({
            "specversion": "1.0", "id": "pressure.drain-time.1700000000000", "source": "/pressure",
            "type": "dev.posthaste.pressure.changed", "subject": "/pressure/drain-time",
            "time": "2023-11-14T22:13:20.000Z", "datacontenttype": "application/json", "data": data(),
        });
        assert_eq!(shown(&change(), EventSchema::CloudEvents), expected);
    }

    /// Notice comes in the schema of the topic that gets it.
    #[test]
    fn pressure_notice_has_the_schema_of_the_topic_told() {
        let expected = json!({
            "id": "pressure.drain-time.1700000000000",
            "topic": "/pressure", "subject": "/pressure/drain-time",
            "eventType": "dev.posthaste.pressure.changed", "eventTime": "2023-11-14T22:13:20.0000000Z",
            "dataVersion": "1", "metadataVersion": "1", "data": data(),
        });
        assert_eq!(shown(&change(), EventSchema::EventGrid), expected);
        assert_eq!(shown(&change(), EventSchema::Custom), data());
        let custom = Notice::Pressure(&change())
            .render_event(EventSchema::Custom)
            .unwrap();
        assert_eq!(
            (custom.id(), custom.subject()),
            (
                "pressure.drain-time.1700000000000",
                Some("/pressure/drain-time")
            )
        );
    }

    /// Notice about the pressure of one topic names the topic and its subscription.
    #[test]
    fn topic_pressure_notice_names_topic_and_subscription() {
        let topic = ChangedTopic {
            name: TopicName::parse("Orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            due: 470,
        };
        let change = PressureChange {
            topic: Some(topic),
            ..change()
        };
        let told = shown(&change, EventSchema::CloudEvents);
        assert_eq!(told["id"], "pressure.drain-time.orders.1700000000000");
        assert_eq!(
            told["subject"],
            "/pressure/drain-time/topics/Orders/subscriptions/billing"
        );
        let mut expected = data();
        let own = json!({
            "text": "drain-time of Orders went from normal to medium.",
            "topic": "Orders", "subscription": "billing", "due": 470,
        });
        let members = expected.as_object_mut().unwrap();
        members.extend(own.as_object().unwrap().clone());
        assert_eq!(told["data"], expected);
    }

    /// Notice about a resource that cannot be read any more has its level but no reading.
    #[test]
    fn unreadable_resource_notice_shows_only_the_level() {
        let told = shown(
            &PressureChange {
                seen: None,
                ..change()
            },
            EventSchema::Custom,
        );
        let expected = json!({
            "text": "drain-time went from normal to medium.",
            "resource": "drain-time", "previousLevel": "normal", "level": "medium", "overallLevel": "high",
            "refusalBegan": false, "tarpit": "PT15S", "refusedTiers": ["bulk"],
        });
        assert_eq!(told, expected);
    }
}
