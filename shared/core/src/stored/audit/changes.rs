//! The differences between two records of a topic, without secrets: its settings, its publish keys
//! and its subscriptions.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::{
    DeliveryHeaderSettings, MASKED, MemberChange, TopicKeysView, subscription_differences,
    topic_differences,
};
use crate::model::{SubscriptionName, Timestamp};
use crate::stored::TopicRecord;

/// The member in which a topic has its subscriptions.
const SUBSCRIPTIONS: &str = "subscriptions";

/// The member in which an entry names publish keys. They are no settings.
const KEYS: &str = "keys";

/// The members that differ between two records, `None` before the topic was created or after it was
/// deleted. The values are as they are shown at this time.
pub fn record_changes(
    before: Option<&TopicRecord>,
    after: Option<&TopicRecord>,
    now: Timestamp,
) -> Vec<MemberChange> {
    let shown = [before, after].map(|record| shown_topic(record, now));
    let mut changes = topic_differences(&shown[0], &shown[1]);
    changes.extend(key_changes(before, after));
    let names: BTreeSet<_> = [before, after]
        .into_iter()
        .flatten()
        .flat_map(|record| record.settings.subscriptions.keys())
        .collect();
    for name in names {
        let [old, new] = [&shown[0], &shown[1]].map(|topic| shown_subscription(topic, name));
        let mut own = subscription_differences(&old, &new);
        own.extend(hidden_change(before, after, name));
        changes.extend(
            own.into_iter()
                .map(|change| change_of_subscription(name, change)),
        );
    }
    changes
}

/// A topic as it is shown. One that is not there has no members.
fn shown_topic(record: Option<&TopicRecord>, now: Timestamp) -> Value {
    record.map_or_else(
        || json!({}),
        |record| json!(record.settings.to_view(&record.name, now)),
    )
}

/// A subscription of a topic that is shown. One that is not there has no members.
fn shown_subscription(topic: &Value, name: &SubscriptionName) -> Value {
    match &topic[SUBSCRIPTIONS][name.as_str()] {
        Value::Null => json!({}),
        found => found.clone(),
    }
}

fn change_of_subscription(name: &SubscriptionName, change: MemberChange) -> MemberChange {
    MemberChange {
        member: format!("{SUBSCRIPTIONS}.{name}.{}", change.member),
        ..change
    }
}

/// The publish keys that differ, each named by its mask.
fn key_changes(before: Option<&TopicRecord>, after: Option<&TopicRecord>) -> Vec<MemberChange> {
    topic_differences(&masked_keys(before), &masked_keys(after))
        .into_iter()
        .map(|change| MemberChange {
            member: format!("{KEYS}.{}", change.member),
            ..change
        })
        .collect()
}

fn masked_keys(record: Option<&TopicRecord>) -> Value {
    let keys = record.map(TopicRecord::shown_keys);
    let masks = keys.iter().flat_map(TopicKeysView::present_keys);
    masks
        .map(|(name, key)| (name.to_string(), json!(key.masked_as_one_of_several())))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// The change of a header whose value is secret and therefore looks the same.
fn hidden_change(
    before: Option<&TopicRecord>,
    after: Option<&TopicRecord>,
    name: &SubscriptionName,
) -> Option<MemberChange> {
    let before = &before?.settings.subscriptions.get(name)?.delivery_headers;
    let after = &after?.settings.subscriptions.get(name)?.delivery_headers;
    let [shown_before, shown_after] = [before, after].map(|headers| {
        headers
            .iter()
            .map(DeliveryHeaderSettings::masked)
            .collect::<Vec<_>>()
    });
    let looks_the_same = shown_before == shown_after;
    (before != after && looks_the_same).then(|| MemberChange {
        member: "deliveryHeaders".to_owned(),
        before: Some(json!(MASKED)),
        after: Some(json!(MASKED)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn record(keys: [&str; 2], settings: &Value) -> TopicRecord {
        let json = json!({
            "v": 1, "name": "Orders", "key1": keys[0], "key2": keys[1],
            "createdAt": NOW, "updatedAt": NOW, "settings": settings,
        });
        TopicRecord::parse(json.to_string().as_bytes()).unwrap()
    }

    fn lines(before: Option<&TopicRecord>, after: Option<&TopicRecord>) -> Vec<String> {
        let changes = record_changes(before, after, NOW);
        changes.iter().map(ToString::to_string).collect()
    }

    fn billing(settings: &Value) -> TopicRecord {
        record(
            ["a", "b"],
            &json!({ "subscriptions": { "Billing": settings } }),
        )
    }

    #[test]
    fn same_record_has_no_change() {
        let one = billing(&json!({ "endpoint": { "url": "https://a.example/" } }));
        assert_eq!(lines(Some(&one), Some(&one)), [""; 0]);
    }

    #[test]
    fn settings_keys_and_subscriptions_are_compared() {
        let url = |url: &str| json!({ "endpoint": { "url": url } });
        let before = record(
            ["one", "two"],
            &json!({ "subscriptions": { "Billing": url("https://a.example/?t=1") } }),
        );
        let after = record(
            ["three", "two"],
            &json!({ "defaultTimeToLive": "PT1H",
                "subscriptions": { "Billing": url("https://b.example/?t=2") } }),
        );
        let found = lines(Some(&before), Some(&after));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("defaultTimeToLive: "), "{found:?}");
        assert!(found[1].starts_with("keys.key1: (masked:"), "{found:?}");
        assert_eq!(
            found[2],
            "subscriptions.Billing.endpoint.url: https://a.example/?… → https://b.example/?…"
        );
    }

    #[test]
    fn creation_and_deletion_name_every_member() {
        let record = billing(&json!({ "endpoint": { "url": "https://a.example/" } }));
        let url = |changes: Vec<MemberChange>| {
            changes
                .into_iter()
                .find(|change| change.member == "subscriptions.Billing.endpoint.url")
                .map(|change| (change.before, change.after))
        };
        let value = || Some(json!("https://a.example/"));
        let created = url(record_changes(None, Some(&record), NOW));
        assert_eq!(created, Some((None, value())));
        let deleted = url(record_changes(Some(&record), None, NOW));
        assert_eq!(deleted, Some((value(), None)));
    }

    #[test]
    fn changes_contain_no_secret() {
        let signed = |secret: &str, token: &str| {
            billing(&json!({
                "endpoint": { "url": "https://a.example/?key=in-the-query" },
                "signing": { "secrets": [secret] },
                "deliveryHeaders": [{ "name": "x-key", "value": token, "isSecret": true }],
            }))
        };
        let secrets = [
            "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3",
            "whsec_enp6enp6enp6enp6enp6enp6enp6enp6",
        ];
        let before = signed(secrets[0], "first");
        let after = signed(secrets[1], "second");
        for (before, after) in [
            (None, Some(&after)),
            (Some(&before), Some(&after)),
            (Some(&before), None),
        ] {
            let text = serde_json::to_string(&record_changes(before, after, NOW)).unwrap();
            for secret in ["whsec_", "first", "second", "in-the-query"] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
        }
        let same_secret = signed(secrets[0], "second");
        assert_eq!(
            lines(Some(&before), Some(&same_secret)),
            ["subscriptions.Billing.deliveryHeaders: another secret"]
        );
    }
}
