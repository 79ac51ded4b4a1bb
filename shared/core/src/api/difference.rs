//! The difference between two views of a topic or subscription, as the API shows them, member by
//! member and without secrets.

mod members;

use std::collections::BTreeSet;

use serde_json::{Value, json};

pub use self::members::MemberChange;
use self::members::changed_members;
use super::{MASKED, SecretText};

/// The members of a topic's own settings that differ. Its subscriptions, its name and its publish
/// URL are not among them.
pub fn topic_differences(before: &Value, after: &Value) -> Vec<MemberChange> {
    changed_members(
        &topic_without_subscriptions(before),
        &topic_without_subscriptions(after),
    )
}

/// The members of a subscription's settings that differ, and its state. A header that is secret in
/// one of the views shows its value in neither: the value may be the same.
pub fn subscription_differences(before: &Value, after: &Value) -> Vec<MemberChange> {
    let secret: BTreeSet<_> = [before, after]
        .into_iter()
        .flat_map(secret_headers)
        .collect();
    changed_members(
        &comparable_subscription(before, &secret),
        &comparable_subscription(after, &secret),
    )
}

fn topic_without_subscriptions(topic: &Value) -> Value {
    let mut topic = topic.clone();
    if let Some(members) = topic.as_object_mut() {
        members
            .retain(|member, _| !matches!(member.as_str(), "subscriptions" | "name" | "endpoint"));
    }
    topic
}

/// A subscription as it is shown: its settings, with the masks that name its secrets and those of
/// secret headers, and its state with the reason. The times at which it was asked and consented are
/// left out: they are no change.
fn comparable_subscription(subscription: &Value, secret_headers: &BTreeSet<String>) -> Value {
    let mut subscription = subscription.clone();
    if let Some(members) = subscription.as_object_mut() {
        members.remove("name");
    }
    if let Some(status) = subscription
        .get_mut("status")
        .and_then(Value::as_object_mut)
    {
        status.retain(|member, _| matches!(member.as_str(), "state" | "reason"));
    }
    let secrets = subscription
        .pointer_mut("/signing/secrets")
        .and_then(Value::as_array_mut);
    for secret in secrets.into_iter().flatten() {
        let masked = secret
            .as_str()
            .map(|text| SecretText::new(text).masked_as_one_of_several());
        *secret = json!(masked);
    }
    mask_headers(&mut subscription, secret_headers);
    subscription
}

/// The names of the headers whose values are secret, in lower case.
fn secret_headers(subscription: &Value) -> impl Iterator<Item = String> {
    let headers = subscription
        .get("deliveryHeaders")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    headers
        .filter(|header| header["isSecret"] == true)
        .filter_map(folded_name)
}

/// Masks the values of the headers with these names.
fn mask_headers(subscription: &mut Value, secret: &BTreeSet<String>) {
    let headers = subscription
        .get_mut("deliveryHeaders")
        .and_then(Value::as_array_mut);
    for header in headers.into_iter().flatten() {
        let is_secret = folded_name(header).is_some_and(|name| secret.contains(&name));
        if is_secret && let Some(value) = header.get_mut("value") {
            *value = json!(MASKED);
        }
    }
}

fn folded_name(header: &Value) -> Option<String> {
    header["name"].as_str().map(str::to_ascii_lowercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(before: &Value, after: &Value) -> Vec<String> {
        subscription_differences(before, after)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn a_secret_is_never_among_the_members() {
        let view = |secrets: &[&str]| json!({ "signing": { "secrets": secrets } });
        let found = lines(
            &view(&["(masked:0a1b2c3d)"]),
            &view(&["whsec_b25l", "whsk_dHdv"]),
        )
        .concat();
        assert!(
            found.starts_with("signing.secrets: [(masked:0a1b2c3d)] → [(masked:"),
            "{found}"
        );
        assert!(!found.contains("whs"), "{found}");
    }

    #[test]
    fn a_header_that_is_secret_on_one_side_shows_its_value_on_none() {
        let headers = |headers: Value| json!({ "deliveryHeaders": headers });
        let open =
            headers(json!([{ "name": "x-key", "value": "s3cret" }, { "name": "a", "value": "b" }]));
        let secret = headers(json!([{ "name": "X-Key", "value": "(masked)", "isSecret": true }]));
        let line = |what: &str, header: &str| format!("deliveryHeaders: {what} {header}");
        let plain = "{name: x-key, value: (masked)}";
        let masked = "{isSecret: true, name: X-Key, value: (masked)}";
        let removed = [
            line("removed", plain),
            line("removed", "{name: a, value: b}"),
            line("added", masked),
        ];
        assert_eq!(lines(&open, &secret), removed);
        let added = [
            line("removed", masked),
            line("added", plain),
            line("added", "{name: a, value: b}"),
        ];
        assert_eq!(lines(&secret, &open), added);
    }

    #[test]
    fn another_state_is_a_change_and_another_time_is_none() {
        let view =
            |state: &str, since: &str| json!({ "status": { "state": state, "since": since } });
        assert_eq!(
            lines(&view("Active", "1"), &view("Failed", "1")),
            ["status.state: Active → Failed"]
        );
        assert!(lines(&view("Active", "1"), &view("Active", "2")).is_empty());
    }

    #[test]
    fn a_topic_is_compared_without_its_subscriptions() {
        let before =
            json!({ "name": "a", "inputSchema": "CloudEvents", "subscriptions": { "b": {} } });
        let after = json!({ "inputSchema": "EventGrid", "endpoint": "https://a.example/" });
        let found: Vec<_> = topic_differences(&before, &after)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, ["inputSchema: CloudEvents → EventGrid"]);
    }
}
