//! The requests of producers and operators, and what their answers say.

use serde_json::{Value, json};

use crate::course::{PAGER, Publication, Question, Schema, Subscriber, TOPICS, TYPES};
use crate::endpoint::VERSION;
use crate::history::{Found, State, name};

/// The name of a topic by its number.
pub(crate) fn topic_name(topic: u8) -> &'static str {
    TOPICS[usize::from(topic) % TOPICS.len()]
}

/// The path of a topic.
pub(crate) fn topic_path(topic: u8) -> String {
    format!("/topics/{}", topic_name(topic))
}

/// The path of a subscription of a topic.
pub(crate) fn path(topic: u8, of: u8) -> String {
    format!("{}/subscriptions/{}", topic_path(topic), name(of))
}

pub(crate) fn content_type(schema: Schema) -> &'static str {
    match schema {
        Schema::Cloud => "application/cloudevents-batch+json",
        Schema::Grid | Schema::Custom => "application/json",
    }
}

pub(crate) fn event(schema: Schema, id: &str, publication: &Publication, time: &str) -> Value {
    let kind = TYPES[usize::from(publication.kind) % TYPES.len()];
    let data = json!({ "text": "x".repeat(publication.bytes as usize) });
    match schema {
        Schema::Cloud => json!({
            "specversion": "1.0", "id": id, "source": "/campaign", "type": kind, "data": data,
        }),
        Schema::Grid => json!({
            "id": id, "eventType": kind, "subject": "campaign", "eventTime": time,
            "dataVersion": "1", "data": data,
        }),
        Schema::Custom => json!({ "id": id, "kind": kind, "data": data }),
    }
}

pub(crate) fn settings(subscriber: &Subscriber, place: &str, version: u32) -> Value {
    let host = subscriber.host;
    let mut settings = json!({
        "endpoint": { "url": format!("https://h{host}.example.com/{place}") },
        "deliveryHeaders": [{ "name": VERSION, "value": version.to_string() }],
        "deadLetter": {
            "enabled": !subscriber.drops,
            "onExpiry": !subscriber.drops_expired,
        },
    });
    if subscriber.has_fallback {
        let url = format!("https://spare{host}.example.com/{place}");
        settings["endpoint"]["fallbackUrl"] = json!(url);
    }
    match subscriber.question {
        Question::None => {}
        Question::Options => settings["endpoint"]["validation"] = json!("CloudEvents"),
        Question::Event => settings["endpoint"]["validation"] = json!("EventGrid"),
    }
    if subscriber.idle > 0 {
        settings["autoDeleteOnIdle"] = json!(format!("PT{}M", subscriber.idle));
    }
    if subscriber.rate > 0 {
        let rate = f64::from(subscriber.rate) / 60.0;
        settings["endpoint"]["maxRequestsPerSecond"] = json!(rate);
    }
    if subscriber.at_once > 0 {
        settings["endpoint"]["maxConcurrentRequests"] = json!(subscriber.at_once);
    }
    if subscriber.is_filtered {
        settings["filter"] = json!({ "includedEventTypes": [TYPES[0]] });
    }
    if subscriber.batch > 0 {
        settings["batching"] = json!({ "maxEventsPerBatch": subscriber.batch });
        if subscriber.reports {
            settings["batching"]["partialAcknowledgement"] = json!(true);
        }
    }
    if subscriber.is_binary {
        settings["contentMode"] = json!("binary");
    }
    if subscriber.buries_at_once {
        settings["deadLetter"]["delay"] = json!("PT0S");
    }
    let mut retry = json!({});
    if subscriber.attempts > 0 {
        retry["maxDeliveryAttempts"] = json!(subscriber.attempts);
    }
    if subscriber.life > 0 {
        retry["eventTimeToLiveInMinutes"] = json!(subscriber.life);
    }
    if subscriber.is_hasty {
        retry["schedule"] = json!(["PT1S", "PT5S", "PT30S", "PT5M"]);
        retry["waitFloors"] = json!({ "default": "PT1S" });
    }
    settings["retryPolicy"] = retry;
    settings
}

/// The settings of the subscription to notices.
pub(crate) fn pager() -> Value {
    json!({ "endpoint": { "url": format!("https://{PAGER}.example.com/{PAGER}/1/0/") } })
}

/// The version of the settings that the API shows.
pub(crate) fn version_of(shown: &Value) -> Option<u32> {
    shown["deliveryHeaders"][0]["value"].as_str()?.parse().ok()
}

/// The state that the API shows.
pub(crate) fn state_of(shown: &Value) -> Option<State> {
    match shown["status"]["state"].as_str()? {
        // Whether its endpoint has consented is looked at by itself.
        "Active" | "Pending" | "Failed" => Some(State::Active),
        "Paused" => Some(State::Paused),
        "Disabled" => Some(State::Disabled),
        _ => None,
    }
}

/// Reads the consent of an endpoint from what the API shows.
pub(crate) fn consent_of(shown: &Value) -> Found {
    let status = &shown["status"];
    match status["state"].as_str() {
        Some("Active") => Found::Active,
        Some("Pending") if status["handshake"]["askedAt"].is_string() => Found::Asked,
        Some("Pending" | "Failed") => Found::Without,
        _ => Found::Unclear,
    }
}
