//! The mark that a subscription's endpoint answered 410 Gone, so that the subscription is to be
//! disabled. deliver parses the answers of strangers, and on AWS has no right to write topics.
//!
//! Key `gone_mark_key/{topic}.{subscription}`. Version 1; written by deliver; carried out and deleted by
//! wake or, embedded, by deliver at once. Fixture: `gone-mark-v1.json`.

use serde::{Deserialize, Serialize};

use super::format::versioned_object;
use super::keys::subscription_folder;
use crate::model::{Identity, Subscription, SubscriptionName, Timestamp, TopicName};

/// The prefix of the marks of subscriptions whose endpoints are gone.
pub const DISABLED: &str = "disabled/";

/// The key of the mark that the endpoint of a subscription is gone.
pub fn gone_mark_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    format!("{DISABLED}{}", subscription_folder(topic, subscription))
}

versioned_object!(GoneMark, 1, "a mark of an endpoint that is gone");

/// An endpoint that answered 410.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GoneMark {
    /// The topic of the subscription.
    pub topic: TopicName,
    /// The subscription's name.
    pub subscription: SubscriptionName,
    /// The creation of the subscription; `None` where its topic's record has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The URL that answered.
    pub url: String,
    /// The time of the answer.
    pub at: Timestamp,
}

impl GoneMark {
    /// The mark of a subscription whose endpoint answered 410 at this time.
    pub fn new(subscription: &Subscription, at: Timestamp) -> Self {
        Self {
            topic: subscription.topic.clone(),
            subscription: subscription.name.clone(),
            identity: subscription.created.identity(),
            url: subscription.endpoint.as_str().to_owned(),
            at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::FormatError;

    const FIXTURE: &str = include_str!("fixtures/gone-mark-v1.json");

    #[test]
    fn a_mark_is_written_as_it_always_was_and_read_back() {
        let mark = GoneMark::parse(FIXTURE.as_bytes()).unwrap();
        assert_eq!(mark.render(), FIXTURE.trim_end());
        let expected = GoneMark {
            topic: TopicName::parse("Orders").unwrap(),
            subscription: SubscriptionName::parse("billing").unwrap(),
            identity: Identity::parse("0102030405060708090a0b0c"),
            url: "https://billing.example.com/hooks?code=s3cret".to_owned(),
            at: Timestamp::from_millis(1_700_000_000_000),
        };
        assert_eq!(mark, expected);
        assert!(expected.identity.is_some());
    }

    #[test]
    fn unknown_members_are_ignored_and_newer_versions_told_apart() {
        let more = br#"{"v":1,"topic":"a","subscription":"b","url":"https://a.example/","at":5,"more":true}"#;
        assert_eq!(GoneMark::parse(more).unwrap().identity, None);
        assert!(matches!(
            GoneMark::parse(br#"{"v":2}"#),
            Err(FormatError::Newer(2))
        ));
        assert!(matches!(
            GoneMark::parse(b"{}"),
            Err(FormatError::Malformed(..))
        ));
    }
}
