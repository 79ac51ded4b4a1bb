//! The effect of applying a file, by comparing the server's views before and after.

use posthaste_core::api::{StatusView, TopicKeysView, TopicSettings};
use posthaste_core::model::TopicName;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Change of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Change {
    /// The entity is new.
    Created,
    /// The settings or the state are different.
    Changed,
    /// No change.
    Unchanged,
}

/// An entity and its change.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct AppliedEntity {
    pub topic: String,
    /// The subscription, or nothing for the topic itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    pub change: Change,
    /// A subscription's state, with its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusView>,
}

/// A key or secret that the server has made.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct NewSecret {
    /// Owner: a topic, or `topic/subscription`.
    pub of: String,
    pub kind: &'static str,
    /// The secret itself.
    pub value: String,
}

/// The effect of applying files.
#[derive(Debug, Default)]
pub struct Applied {
    /// Every entity the files declare.
    pub entities: Vec<AppliedEntity>,
    /// Keys and secrets that the server has made.
    pub secrets: Vec<NewSecret>,
}

impl Applied {
    /// Adds a topic: what was written, the server's view before (if it was there), and its answer.
    pub(super) fn add(
        &mut self,
        name: &TopicName,
        written: &TopicSettings,
        before: Option<&Value>,
        after: &Value,
    ) {
        let topic = name.to_string();
        let change = compare(before.map(topic_alone), &topic_alone(after));
        self.entities.push(AppliedEntity { topic: topic.clone(), subscription: None, change, status: None });
        for (subscription, settings) in &written.subscriptions {
            let before = before.and_then(|topic| subscription_of(topic, subscription.as_str()));
            let after = subscription_of(after, subscription.as_str()).unwrap_or(&Value::Null);
            let own = settings.signing.secrets.as_deref().unwrap_or_default();
            let change = compare(before.map(shown), &shown(after));
            self.entities.push(AppliedEntity {
                topic: topic.clone(),
                subscription: Some(subscription.to_string()),
                change,
                status: after.get("status").and_then(|status| StatusView::deserialize(status).ok()),
            });
            let of = format!("{topic}/{subscription}");
            let is_new = |secret: &&str| {
                secret.starts_with("whsec_") && !own.iter().any(|own| own.expose() == *secret)
            };
            for secret in secrets_of(after).filter(is_new) {
                self.add_secret(&of, "signing secret", secret);
            }
        }
    }

    /// Adds the keys of a topic that is new.
    pub(super) fn add_keys(&mut self, name: &TopicName, keys: &TopicKeysView) {
        for key in [&keys.key1, &keys.key2] {
            self.add_secret(name.as_str(), "publish key", key.expose());
        }
    }

    fn add_secret(&mut self, of: &str, kind: &'static str, value: &str) {
        self.secrets.push(NewSecret { of: of.to_owned(), kind, value: value.to_owned() });
    }
}

fn compare(before: Option<Value>, after: &Value) -> Change {
    match before {
        None => Change::Created,
        Some(before) if before == *after => Change::Unchanged,
        Some(_) => Change::Changed,
    }
}

fn topic_alone(topic: &Value) -> Value {
    let mut topic = topic.clone();
    if let Some(members) = topic.as_object_mut() {
        members.remove("subscriptions");
    }
    topic
}

/// A subscription as it is shown: its settings, with the masks that name its secrets, and its state with the
/// reason. The times at which it was asked and consented are left out: they are no change.
fn shown(subscription: &Value) -> Value {
    let mut subscription = subscription.clone();
    if let Some(status) = subscription.get_mut("status").and_then(Value::as_object_mut) {
        status.retain(|member, _| matches!(member.as_str(), "state" | "reason"));
    }
    subscription
}

fn subscription_of<'a>(topic: &'a Value, name: &str) -> Option<&'a Value> {
    let subscriptions = topic.get("subscriptions")?.as_object()?;
    subscriptions.iter().find_map(|(other, settings)| other.eq_ignore_ascii_case(name).then_some(settings))
}

fn secrets_of(subscription: &Value) -> impl Iterator<Item = &str> {
    let secrets = subscription.pointer("/signing/secrets").and_then(Value::as_array);
    secrets.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(secrets: &[&str], state: &str, since: &str) -> Value {
        let signing = json!({ "secrets": secrets });
        let status = json!({ "state": state, "since": since });
        let billing =
            json!({ "endpoint": { "url": "https://a.example/" }, "signing": signing, "status": status });
        json!({ "inputSchema": "CloudEvents", "subscriptions": { "billing": billing } })
    }

    fn check(after: &Value, expected: Change) {
        let written = json!({ "subscriptions": { "billing": {
            "endpoint": { "url": "https://a.example/" }, "signing": { "secrets": ["whsec_b25l"] },
        } } });
        let mut applied = Applied::default();
        let before = view(&["(masked:0a1b2c3d)"], "Active", "2026-11-21T10:00:00.000Z");
        let name = TopicName::parse("orders").unwrap();
        applied.add(&name, &serde_json::from_value(written).unwrap(), Some(&before), after);
        let changes: Vec<_> = applied.entities.iter().map(|entity| entity.change).collect();
        assert_eq!((changes, applied.secrets), (vec![Change::Unchanged, expected], vec![]), "{after}");
    }

    #[test]
    fn the_same_secrets_are_no_change_and_others_are() {
        let since = "2026-11-21T10:00:00.000Z";
        check(&view(&["(masked:0a1b2c3d)"], "Active", since), Change::Unchanged);
        check(&view(&["(masked:4e5f6071)"], "Active", since), Change::Changed);
        check(&view(&["(masked:4e5f6071)", "(masked:0a1b2c3d)"], "Active", since), Change::Changed);
    }

    #[test]
    fn another_state_is_a_change_and_another_time_is_none() {
        let later = "2026-11-21T11:00:00.000Z";
        check(&view(&["(masked:0a1b2c3d)"], "Failed", later), Change::Changed);
        check(&view(&["(masked:0a1b2c3d)"], "Active", later), Change::Unchanged);
    }
}
