//! The publish keys that are written with a topic.

use super::problem::{SettingsError, SettingsProblem, settings_error};
use crate::api::{KeyName, SecretText, TopicKeySettings, TopicKeysView};
use crate::model::{PUBLISH_KEY_CHARS_MAX, PUBLISH_KEY_CHARS_MIN};

/// Checks the keys of a topic that has `present` ones, `None` where these are not known. A key is
/// never shown in the error.
pub fn check_topic_keys(
    written: &TopicKeySettings,
    present: Option<&TopicKeysView>,
) -> Result<(), SettingsError> {
    let mut seen: Vec<(KeyName, &SecretText)> = Vec::new();
    for (name, key) in written.written_keys() {
        if !is_publish_key(key.expose()) {
            return Err(settings_error(
                key_member(name),
                SettingsProblem::PublishKey,
            ));
        }
        if let Some((other, _)) = seen.iter().find(|(_, it)| *it == key) {
            return Err(settings_error(
                key_member(name),
                SettingsProblem::SameKey(other.as_str()),
            ));
        }
        seen.push((name, key));
    }
    for (other, kept) in present.into_iter().flat_map(TopicKeysView::present_keys) {
        let is_replaced = seen.iter().any(|(name, _)| *name == other);
        if is_replaced {
            continue;
        }
        if let Some((name, _)) = seen.iter().find(|(_, key)| *key == kept) {
            return Err(settings_error(
                key_member(*name),
                SettingsProblem::SameKey(other.as_str()),
            ));
        }
    }
    Ok(())
}

fn key_member(name: KeyName) -> String {
    format!("keys.{name}")
}

fn is_publish_key(text: &str) -> bool {
    (PUBLISH_KEY_CHARS_MIN..=PUBLISH_KEY_CHARS_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    const ONE: &str = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const TWO: &str = "T3RoZXJPdGhlck90aGVyT3RoZXJPdGhl";

    fn check(written: Value, expected: Option<(&str, SettingsProblem)>) {
        let keys = serde_json::from_value(written).unwrap();
        let present = json!({ "key1": "kept", "key2": TWO });
        let present = serde_json::from_value(present).unwrap();
        let found = check_topic_keys(&keys, Some(&present)).err();
        let expected = expected.map(|(member, problem)| settings_error(member, problem));
        assert_eq!(found, expected);
    }

    #[test]
    fn short_masked_or_invisible_key_is_refused_by_its_name() {
        let bad = |key: &str| {
            let expected = Some(("keys.bulkKey1", SettingsProblem::PublishKey));
            check(json!({ "bulkKey1": key }), expected);
        };
        check(json!({ "bulkKey1": ONE }), None);
        check(json!({ "bulkKey1": ONE.repeat(8) }), None);
        bad(&ONE[1..]);
        bad(&ONE.repeat(9));
        bad(&ONE.replace('M', " "));
        bad(&ONE.replace('M', "ü"));
        bad("(masked:0a1b2c3d)");
    }

    #[test]
    fn key_that_the_topic_has_under_another_name_is_refused() {
        check(json!({ "key2": TWO }), None);
        check(json!({ "key1": TWO, "key2": ONE }), None);
        check(
            json!({ "key1": TWO }),
            Some(("keys.key1", SettingsProblem::SameKey("key2"))),
        );
        check(
            json!({ "internalKey1": ONE, "bulkKey2": ONE }),
            Some(("keys.bulkKey2", SettingsProblem::SameKey("internalKey1"))),
        );
    }
}
