//! The rules that hold for settings by themselves, for a client that has no secrets: a masked one
//! is taken for a secret that compiles.

use std::collections::BTreeMap;

use super::preview::with_placeholder_secrets;
use crate::api::{
    SettingsError, SubscriptionSettings, TopicSettings, check_topic_keys, compile_topic,
};
use crate::model::{Secret, SubscriptionName, TopicKeys, TopicName};

/// Checks the settings of a topic, with the subscriptions in them.
pub fn check_topic(name: &TopicName, settings: &TopicSettings) -> Result<(), SettingsError> {
    if let Some(written) = &settings.keys {
        check_topic_keys(written, None)?;
    }
    // The present keys do not matter here.
    let keys = TopicKeys::new(Secret::new(""), Secret::new(""));
    compile_topic(name, &with_placeholder_secrets(settings), keys).map(drop)
}

/// Checks the settings of a subscription of this topic.
pub fn check_subscription(
    topic: &TopicName,
    settings: &TopicSettings,
    name: &SubscriptionName,
    written: &SubscriptionSettings,
) -> Result<(), SettingsError> {
    let subscriptions = BTreeMap::from([(name.clone(), written.clone())]);
    let alone = TopicSettings {
        subscriptions,
        ..settings.clone()
    };
    check_topic(topic, &alone).map_err(|error| {
        let member = error
            .member
            .strip_prefix(&format!("subscriptions.{name}."))
            .unwrap_or(&error.member);
        SettingsError {
            member: member.to_owned(),
            ..error
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn check(subscription: Value, member: Option<&str>) {
        let topic: TopicSettings =
            serde_json::from_value(json!({ "inputSchema": "CloudEvents" })).unwrap();
        let orders = TopicName::parse("orders").unwrap();
        let billing = SubscriptionName::parse("billing").unwrap();
        let written = serde_json::from_value(subscription).unwrap();
        let found =
            check_subscription(&orders, &topic, &billing, &written).map_err(|error| error.member);
        assert_eq!(found.err().as_deref(), member);
    }

    #[test]
    fn a_subscription_s_mistake_is_named_by_its_own_member() {
        let endpoint = json!({ "url": "https://a.example/" });
        check(json!({ "endpoint": endpoint }), None);
        check(
            json!({ "endpoint": endpoint, "signing": { "secrets": ["(masked:0a1b2c3d)"] } }),
            None,
        );
        check(json!({ "endpoint": { "url": "a" } }), Some("endpoint.url"));
        check(
            json!({ "endpoint": endpoint, "deliverySchema": "EventGrid" }),
            Some("deliverySchema"),
        );
    }
}
