//! Publish keys of a file beside those that a topic has. The server shows these by themselves, and
//! the version of a topic says nothing of them.

use posthaste_core::api::{
    MemberChange, SecretText, TopicKeySettings, TopicKeysView, TopicSettings,
};
use posthaste_core::model::TopicName;
use serde_json::{Value, json};
use ureq::http::Method;

use crate::client::ClientError;
use crate::commands::session::AdminSession;

/// The keys that a write of the topic, which is there, would change. Keys appear as their masks.
pub(super) fn pending_changes(
    session: &AdminSession,
    name: &TopicName,
    written: &TopicSettings,
) -> Result<Vec<MemberChange>, ClientError> {
    match &written.keys {
        Some(keys) => Ok(key_differences(&of_topic(session, name)?, keys)),
        None => Ok(Vec::new()),
    }
}

/// The keys of a topic.
pub(super) fn of_topic(
    session: &AdminSession,
    name: &TopicName,
) -> Result<TopicKeysView, ClientError> {
    session.request_json(Method::GET, &["topics", name.as_str(), "keys"])
}

fn key_differences(present: &TopicKeysView, written: &TopicKeySettings) -> Vec<MemberChange> {
    let changed = written
        .written_keys()
        .filter(|(name, key)| present.key(*name) != Some(*key));
    changed
        .map(|(name, key)| MemberChange {
            member: format!("keys.{name}"),
            before: present.key(name).map(masked_key),
            after: Some(masked_key(key)),
        })
        .collect()
}

fn masked_key(key: &SecretText) -> Value {
    json!(key.masked_as_one_of_several())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_are_written_and_differ_are_changes() {
        let present = json!({ "key1": "one", "key2": "two", "bulkKey1": "three" });
        let present = serde_json::from_value(present).unwrap();
        let written = json!({ "key1": "one", "key2": "other", "internalKey1": "four" });
        let found = key_differences(&present, &serde_json::from_value(written).unwrap());
        let lines: Vec<_> = found.iter().map(ToString::to_string).collect();
        let mask = |key: &str| SecretText::new(key).masked_as_one_of_several();
        let expected = [
            format!(
                "keys.key2: {} → {}",
                mask("two").expose(),
                mask("other").expose()
            ),
            format!("keys.internalKey1: (default) → {}", mask("four").expose()),
        ];
        assert_eq!(lines, expected);
    }
}
