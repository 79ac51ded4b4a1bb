//! The effect of applying a file, by comparing the server's views before and after.

use posthaste_core::api::{
    MemberChange, StatusState, StatusView, SubscriptionSettings, TopicKeysView, TopicSettings,
    subscription_differences, topic_differences,
};
use posthaste_core::model::{SubscriptionName, TopicName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Change of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EntityChange {
    /// The entity is new.
    Created,
    /// The settings or the state are different.
    Changed,
    /// No change.
    Unchanged,
    /// No file declares the entity.
    Deleted,
}

/// An entity and its change.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppliedEntity {
    pub topic: String,
    /// The subscription, or nothing for the topic itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    pub change: EntityChange,
    /// The members that differ, where it was there before.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberChange>,
    /// Secret members that were written and cannot be compared, because the server does not show
    /// them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<String>,
    /// A subscription's state, with its reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<StatusView>,
}

impl AppliedEntity {
    /// An entity that no file declares.
    pub(super) fn for_deletion(topic: &TopicName, subscription: Option<&SubscriptionName>) -> Self {
        Self {
            topic: topic.to_string(),
            subscription: subscription.map(ToString::to_string),
            change: EntityChange::Deleted,
            members: Vec::new(),
            not_compared: Vec::new(),
            status: None,
        }
    }

    /// Whether nothing differs that is shown.
    pub(super) fn is_unchanged(&self) -> bool {
        self.change == EntityChange::Unchanged
    }

    /// Whether nothing differs, and nothing is under way: an endpoint that has yet to consent is
    /// asked again when its subscription is written.
    pub(super) fn is_settled(&self) -> bool {
        let status = self.status.as_ref();
        self.is_unchanged()
            && self.not_compared.is_empty()
            && status.is_none_or(|status| status.state == StatusState::Active)
    }
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
pub struct ApplyResult {
    /// Every entity the files declare.
    pub entities: Vec<AppliedEntity>,
    /// Keys and secrets that the server has made.
    pub secrets: Vec<NewSecret>,
}

impl ApplyResult {
    /// Adds a topic: what was written, the server's view before (if it was there), and the view
    /// after.
    pub(super) fn add_topic(
        &mut self,
        name: &TopicName,
        written: &TopicSettings,
        before: Option<&Value>,
        after: &Value,
    ) {
        let topic = name.to_string();
        let (change, members) = compare_views(before, after, topic_differences);
        self.entities.push(AppliedEntity {
            topic: topic.clone(),
            subscription: None,
            change,
            members,
            not_compared: Vec::new(),
            status: None,
        });
        for (subscription, settings) in &written.subscriptions {
            let before = before.and_then(|topic| subscription_of(topic, subscription.as_str()));
            let after = subscription_of(after, subscription.as_str()).unwrap_or(&Value::Null);
            let (change, members) = compare_views(before, after, subscription_differences);
            self.entities.push(AppliedEntity {
                topic: topic.clone(),
                subscription: Some(subscription.to_string()),
                change,
                members,
                not_compared: not_compared(before, settings),
                status: after
                    .get("status")
                    .and_then(|status| StatusView::deserialize(status).ok()),
            });
            self.add_made_secrets(&format!("{topic}/{subscription}"), settings, after);
        }
    }

    /// Notes whether the topic's version changed. If it did not, the secrets that cannot be
    /// compared are the same. If it did, and no member shows why, they are the change.
    pub(super) fn note_version_change(&mut self, name: &TopicName, is_same_version: bool) {
        let is_explained = self.entities.iter().any(|entity| {
            entity.topic == name.as_str() && entity.change != EntityChange::Unchanged
        });
        for entity in self
            .entities
            .iter_mut()
            .filter(|entity| entity.topic == name.as_str())
        {
            if is_same_version {
                entity.not_compared.clear();
            } else if !is_explained && !entity.not_compared.is_empty() {
                entity.change = EntityChange::Changed;
            }
        }
    }

    fn add_made_secrets(&mut self, of: &str, written: &SubscriptionSettings, after: &Value) {
        let own = written.signing.secrets.as_deref().unwrap_or_default();
        for secret in secrets_of(after) {
            let is_written = own.iter().any(|own| own.expose() == secret);
            if is_clear_secret(secret) && !is_written {
                self.add_secret(of, "signing secret", secret);
            }
        }
    }

    /// Adds the keys that were made with a topic that is new. Those that were written are known.
    pub(super) fn add_keys(
        &mut self,
        name: &TopicName,
        written: &TopicSettings,
        keys: &TopicKeysView,
    ) {
        for (key_name, key) in keys.present_keys() {
            let own = written.keys.as_ref().and_then(|keys| keys.key(key_name));
            if own.is_none() {
                self.add_secret(name.as_str(), "publish key", key.expose());
            }
        }
    }

    /// Adds the publish keys that differ to the members of their topic, which was added.
    pub(super) fn add_key_changes(&mut self, name: &TopicName, changes: &[MemberChange]) {
        let mut entities = self.entities.iter_mut();
        let topic = entities.find(|it| it.subscription.is_none() && it.topic == name.as_str());
        if let Some(topic) = topic
            && !changes.is_empty()
        {
            topic.change = EntityChange::Changed;
            topic.members.extend_from_slice(changes);
        }
    }

    fn add_secret(&mut self, of: &str, kind: &'static str, value: &str) {
        self.secrets.push(NewSecret {
            of: of.to_owned(),
            kind,
            value: value.to_owned(),
        });
    }
}

/// The change, and the members that differ. Those of something new are what was written.
fn compare_views(
    before: Option<&Value>,
    after: &Value,
    differences: fn(&Value, &Value) -> Vec<MemberChange>,
) -> (EntityChange, Vec<MemberChange>) {
    let Some(before) = before else {
        return (EntityChange::Created, Vec::new());
    };
    match differences(before, after) {
        members if members.is_empty() => (EntityChange::Unchanged, members),
        members => (EntityChange::Changed, members),
    }
}

/// The secret headers that are written in clear and were there before. Their masks do not tell them
/// apart.
fn not_compared(before: Option<&Value>, written: &SubscriptionSettings) -> Vec<String> {
    let headers = written.delivery_headers.iter().filter(|header| {
        let value = header.value.as_ref();
        let is_clear = value.is_some_and(|value| !value.is_masked());
        header.is_secret && is_clear && has_secret_header(before, &header.name)
    });
    headers
        .map(|header| format!("deliveryHeaders[{}].value", header.name))
        .collect()
}

/// Whether a subscription as it was has a secret header of this name.
fn has_secret_header(before: Option<&Value>, name: &str) -> bool {
    let headers = before.and_then(|before| before.get("deliveryHeaders")?.as_array());
    headers.into_iter().flatten().any(|header| {
        let other = header["name"].as_str();
        other.is_some_and(|other| other.eq_ignore_ascii_case(name)) && header["isSecret"] == true
    })
}

/// Whether this is a signing secret, and no mask of one.
fn is_clear_secret(secret: &str) -> bool {
    secret.starts_with("whsec_") || secret.starts_with("whsk_")
}

fn subscription_of<'a>(topic: &'a Value, name: &str) -> Option<&'a Value> {
    let subscriptions = topic.get("subscriptions")?.as_object()?;
    subscriptions
        .iter()
        .find_map(|(other, settings)| other.eq_ignore_ascii_case(name).then_some(settings))
}

fn secrets_of(subscription: &Value) -> impl Iterator<Item = &str> {
    let secrets = subscription
        .pointer("/signing/secrets")
        .and_then(Value::as_array);
    secrets.into_iter().flatten().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(secrets: &[&str], state: &str, since: &str) -> Value {
        let signing = json!({ "secrets": secrets });
        let status = json!({ "state": state, "since": since });
        let billing = json!({ "endpoint": { "url": "https://a.example/" }, "signing": signing, "status": status });
        json!({ "inputSchema": "CloudEvents", "subscriptions": { "billing": billing } })
    }

    fn check(after: &Value, expected: EntityChange) {
        let written = json!({ "subscriptions": { "billing": {
            "endpoint": { "url": "https://a.example/" }, "signing": { "secrets": ["whsec_b25l"] },
        } } });
        let mut applied = ApplyResult::default();
        let before = view(&["(masked:0a1b2c3d)"], "Active", "2026-11-21T10:00:00.000Z");
        let name = TopicName::parse("orders").unwrap();
        applied.add_topic(
            &name,
            &serde_json::from_value(written).unwrap(),
            Some(&before),
            after,
        );
        let changes: Vec<_> = applied
            .entities
            .iter()
            .map(|entity| entity.change)
            .collect();
        assert_eq!(
            (changes, applied.secrets),
            (vec![EntityChange::Unchanged, expected], vec![]),
            "{after}"
        );
    }

    #[test]
    fn the_same_secrets_are_no_change_and_others_are() {
        let since = "2026-11-21T10:00:00.000Z";
        check(
            &view(&["(masked:0a1b2c3d)"], "Active", since),
            EntityChange::Unchanged,
        );
        check(
            &view(&["(masked:4e5f6071)"], "Active", since),
            EntityChange::Changed,
        );
        check(
            &view(&["(masked:4e5f6071)", "(masked:0a1b2c3d)"], "Active", since),
            EntityChange::Changed,
        );
    }

    #[test]
    fn another_state_is_a_change_and_another_time_is_none() {
        let later = "2026-11-21T11:00:00.000Z";
        check(
            &view(&["(masked:0a1b2c3d)"], "Failed", later),
            EntityChange::Changed,
        );
        check(
            &view(&["(masked:0a1b2c3d)"], "Active", later),
            EntityChange::Unchanged,
        );
    }

    /// A secret header that is written in clear, by the versions of the topic before and after.
    fn check_secret_header(is_same_version: bool, expected: EntityChange, not_compared: &[&str]) {
        let headers = |value| json!([{ "name": "X-Key", "value": value, "isSecret": true }]);
        let billing = |value| {
            let billing = json!({ "endpoint": { "url": "https://a.example/" }, "deliveryHeaders": headers(value) });
            json!({ "subscriptions": { "billing": billing } })
        };
        let before = billing("(masked)");
        let name = TopicName::parse("orders").unwrap();
        let written = serde_json::from_value(billing("s3cret")).unwrap();
        let mut applied = ApplyResult::default();
        applied.add_topic(&name, &written, Some(&before), &before);
        applied.note_version_change(&name, is_same_version);
        let billing = &applied.entities[1];
        assert_eq!(billing.change, expected);
        assert_eq!(billing.not_compared, not_compared);
    }

    #[test]
    fn a_secret_header_is_compared_by_the_version_alone() {
        check_secret_header(true, EntityChange::Unchanged, &[]);
        check_secret_header(
            false,
            EntityChange::Changed,
            &["deliveryHeaders[X-Key].value"],
        );
    }
}
