//! The demo's plan: two topics, their subscriptions, the sample events, and the expected end of
//! each. Any user could write these settings; the server knows nothing of the demo.

use std::path::PathBuf;

use posthaste_cli::commands::CheckedFile;
use posthaste_core::api::ApplyFile;
use serde_json::{Value, json};

use super::subscriber::SubscriberBehavior;

/// A subscription of the demo and its expected end.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoSubscription {
    pub topic: &'static str,
    pub subscription: &'static str,
    /// Answers of its endpoint.
    pub part: SubscriberBehavior,
    /// Event types that it takes; all if there are none.
    pub event_types: &'static [&'static str],
    /// Number of published events for it.
    pub events: usize,
    /// Attempts of each event.
    pub attempts: u32,
    /// Reason for each dead letter, if there is one.
    pub dead_letter_reason: Option<&'static str>,
}

/// A file of events and its topic.
#[derive(Debug, Clone, Copy)]
pub(super) struct DemoSample {
    /// The file's path in the repository.
    pub path: &'static str,
    pub topic: &'static str,
    pub content_type: &'static str,
    pub bytes: &'static str,
}

/// Most attempts of an event, in this demo.
const ATTEMPTS_MAX: u32 = 3;

/// The subscriptions.
pub(super) const ROLES: [DemoSubscription; 6] = [
    demo_subscription("shop", "billing", SubscriberBehavior::Healthy, &[], 5),
    demo_subscription(
        "shop",
        "mailer",
        SubscriberBehavior::Recovers,
        &["com.example.order.paid"],
        2,
    ),
    demo_subscription(
        "shop",
        "deploy",
        SubscriberBehavior::Rejects,
        &["com.github.push"],
        1,
    ),
    demo_subscription(
        "shop",
        "warehouse",
        SubscriberBehavior::Down,
        &["com.example.order.shipped"],
        1,
    ),
    demo_subscription("storage", "index", SubscriberBehavior::Healthy, &[], 1),
    demo_subscription(
        "storage",
        "thumbnails",
        SubscriberBehavior::Recovers,
        &[],
        1,
    ),
];

/// A sample by its path in the repository. A published crate has the files below its own folder,
/// where links lead to them.
macro_rules! sample {
    ($topic:literal, $content_type:literal, $path:literal) => {
        DemoSample {
            path: $path,
            topic: $topic,
            content_type: $content_type,
            bytes: include_str!(concat!("../../", $path)),
        }
    };
}

/// The events.
pub(super) const SAMPLES: [DemoSample; 4] = [
    sample!(
        "shop",
        "application/cloudevents+json",
        "samples/cloudevents/order-paid.json"
    ),
    sample!(
        "shop",
        "application/cloudevents-batch+json",
        "samples/cloudevents/order-batch.json"
    ),
    sample!(
        "shop",
        "application/cloudevents+json",
        "samples/cloudevents/github-push.json"
    ),
    sample!(
        "storage",
        "application/json",
        "samples/eventgrid/blob-created.json"
    ),
];

const fn demo_subscription(
    topic: &'static str,
    subscription: &'static str,
    part: SubscriberBehavior,
    event_types: &'static [&'static str],
    events: usize,
) -> DemoSubscription {
    let (attempts, dead_letter_reason) = match part {
        SubscriberBehavior::Healthy => (1, None),
        SubscriberBehavior::Recovers => (3, None),
        SubscriberBehavior::Rejects => (1, Some("UndeliverableDueToClientError")),
        SubscriberBehavior::Down => (ATTEMPTS_MAX, Some("MaxDeliveryAttemptsExceeded")),
    };
    DemoSubscription {
        topic,
        subscription,
        part,
        event_types,
        events,
        attempts,
        dead_letter_reason,
    }
}

impl DemoSubscription {
    /// The behaviour of the role's endpoint, in words.
    pub(super) fn behavior_in_words(&self) -> &'static str {
        match self.part {
            SubscriberBehavior::Healthy => "answers 200",
            SubscriberBehavior::Recovers => "answers 503 twice, then 200",
            SubscriberBehavior::Rejects => "answers 400",
            SubscriberBehavior::Down => "answers 503, always",
        }
    }

    /// Number of requests that the role's endpoint gets.
    pub(super) fn request_count(&self) -> usize {
        self.events * self.attempts as usize
    }

    /// The subscription's settings, with short waits to keep the demo short.
    fn settings(&self, url: &str) -> Value {
        json!({
            "endpoint": { "url": url },
            "filter": { "includedEventTypes": self.event_types },
            "retryPolicy": {
                "maxDeliveryAttempts": ATTEMPTS_MAX,
                "schedule": ["PT0.2S"],
                "waitFloors": { "503": "PT0S", "default": "PT0S" },
            },
            "deadLetter": { "delay": "PT1S" },
        })
    }
}

/// Topics and subscriptions as `apply` takes them; `url_of` returns the URL of a subscription's
/// endpoint.
pub(super) fn topics_file(
    url_of: impl Fn(&str) -> String,
) -> Result<CheckedFile, serde_json::Error> {
    let mut topics = json!({
        "shop": { "inputSchema": "CloudEvents", "subscriptions": {} },
        "storage": { "inputSchema": "EventGrid", "subscriptions": {} },
    });
    for role in &ROLES {
        topics[role.topic]["subscriptions"][role.subscription] =
            role.settings(&url_of(role.subscription));
    }
    let contents: ApplyFile = serde_json::from_value(json!({ "topics": topics }))?;
    Ok(CheckedFile::with_whole_topics(
        PathBuf::from("demo"),
        contents,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::api::compile_topic;
    use posthaste_core::model::{Secret, TopicKeys};

    #[test]
    fn the_declaration_passes_the_rules_that_apply_to_everybody() {
        let file = topics_file(|name| format!("http://127.0.0.1:9000/{name}")).unwrap();
        for (name, settings) in &file.contents.topics {
            let keys = TopicKeys::new(Secret::new("1"), Secret::new("2"));
            compile_topic(name, settings, keys).unwrap();
        }
        assert_eq!(file.contents.topics.len(), 2);
    }

    #[test]
    fn every_role_gets_as_many_events_as_the_samples_hold_for_it() {
        for role in &ROLES {
            let samples = SAMPLES.iter().filter(|sample| sample.topic == role.topic);
            let events =
                samples.flat_map(|sample| match serde_json::from_str(sample.bytes).unwrap() {
                    Value::Array(events) => events,
                    event => vec![event],
                });
            let wanted = events.filter(|event| {
                let event_type = event
                    .get("type")
                    .or_else(|| event.get("eventType"))
                    .and_then(Value::as_str)
                    .unwrap();
                role.event_types.is_empty() || role.event_types.contains(&event_type)
            });
            assert_eq!(wanted.count(), role.events, "{}", role.subscription);
        }
    }
}
