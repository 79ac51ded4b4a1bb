//! The mark that a subscription's endpoint answered 410 Gone, so that the subscription is to be
//! disabled. deliver parses the answers of strangers, and on AWS has no right to write topics.
//!
//! Key `disabled/{topic}.{subscription}`. Version 1; written by deliver; carried out and deleted by
//! wake or, embedded, by deliver at once. Fixture: `gone-mark-v1.json`.

use serde::{Deserialize, Serialize};

use super::format::versioned_object;
use super::keys::subscription_folder;
use super::topic::TopicRecord;
use crate::api::notice::DisabledNotice;
use crate::api::{GONE_REASON, StatusState, StatusView};
use crate::model::{EndpointUrl, Identity, Subscription, SubscriptionName, Timestamp, TopicName};

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

/// The step that a mark asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum GoneStep {
    /// The record is to be written like this, and then the notice sent.
    Disable(Box<TopicRecord>),
    /// The record says it already, by this mark: the notice may be missing.
    Announce,
    /// The mark is about nothing that still stands.
    Drop,
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

    /// The step that this mark asks for, by the topic's record as it is now. The subscription is
    /// disabled only if it still is the creation whose endpoint answered, has that URL, and is to
    /// be disabled by a 410. One that was activated since is left alone: whoever did it may know
    /// more.
    pub fn next_step(&self, mut record: TopicRecord) -> GoneStep {
        let folded = self.subscription.folded();
        let names = record.settings.subscriptions.keys();
        let Some(name) = { names }.find(|name| name.folded() == folded).cloned() else {
            return GoneStep::Drop;
        };
        let is_same = record
            .identities_of(&name)
            .has_accepted(self.identity, self.at);
        let Some(settings) = record.settings.subscriptions.get_mut(&name) else {
            return GoneStep::Drop;
        };
        let disables = settings.retry_policy.disable_on_gone != Some(false);
        let has_url = EndpointUrl::parse(&settings.endpoint.url)
            .is_ok_and(|endpoint| endpoint.as_str() == self.url);
        if !is_same || !disables || !has_url {
            return GoneStep::Drop;
        }
        match &settings.status {
            Some(status) if status.state == StatusState::Disabled => {
                let is_by_this = status.since.0 == self.at;
                let is_by_this = is_by_this && status.reason.as_deref() == Some(GONE_REASON);
                if is_by_this {
                    GoneStep::Announce
                } else {
                    GoneStep::Drop
                }
            }
            Some(status) if status.since.0 > self.at => GoneStep::Drop,
            _ => {
                let reason = Some(GONE_REASON.to_owned());
                let status = StatusView::new(StatusState::Disabled, reason, self.at);
                settings.status = Some(status);
                GoneStep::Disable(Box::new(record))
            }
        }
    }

    /// The notice that it asks for.
    pub fn to_notice(&self) -> DisabledNotice<'_> {
        DisabledNotice {
            topic: &self.topic,
            subscription: &self.subscription,
            reason: GONE_REASON,
            since: self.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FormatError;

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

#[cfg(test)]
mod step_tests;
