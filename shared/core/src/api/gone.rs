//! The steps after an endpoint answered 410 Gone.

use crate::api::notice::DisabledNotice;
use crate::api::{StatusState, StatusView, SubscriptionSettings};
use crate::model::{EndpointUrl, KeepingMissed, Timestamp};
use crate::stored::{GoneMark, TopicRecord};

/// The reason in the status and in the notice.
const REASON: &str = "the endpoint answered 410 Gone";

impl SubscriptionSettings {
    /// The time at which an answer of its endpoint disabled it. `None` if that did not happen, or
    /// an operator did.
    pub(crate) fn gone_at(&self) -> Option<Timestamp> {
        let status = self.status.as_ref();
        let is_gone = |status: &&StatusView| {
            status.state == StatusState::Disabled && status.reason.as_deref() == Some(REASON)
        };
        status.filter(is_gone).map(|status| status.since.0)
    }

    /// For how long its new events become dead letters; `None` if it is not disabled.
    pub fn keeping_missed(&self) -> Option<KeepingMissed> {
        let status = self.status.as_ref()?;
        (status.state == StatusState::Disabled).then(|| {
            let wants_letters = self.dead_letter.enabled.unwrap_or(true);
            KeepingMissed::from_choice(self.while_disabled, wants_letters, self.gone_at())
        })
    }
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
    /// The step that this mark asks for, by the topic's record as it is now. The subscription is
    /// disabled only if it still is the creation whose endpoint answered, has that URL, and is to
    /// be disabled by a 410. One that was activated since is left alone: the operator may know
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
                let is_by_this = is_by_this && status.reason.as_deref() == Some(REASON);
                if is_by_this {
                    GoneStep::Announce
                } else {
                    GoneStep::Drop
                }
            }
            Some(status) if status.since.0 > self.at => GoneStep::Drop,
            _ => {
                let reason = Some(REASON.to_owned());
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
            reason: REASON,
            since: self.at,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::model::{Identity, Timestamp};

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const URL: &str = "https://billing.example.com/hooks";

    fn record(name: &str, settings: &Value) -> TopicRecord {
        let record = json!({
            "v": 1, "name": "Orders", "key1": "a", "key2": "b",
            "createdAt": AT, "updatedAt": AT,
            "creations": {
                "topic": { "id": "010203040506", "at": AT },
                "subscriptions": { name: { "id": "0708090a0b0c", "at": AT } },
            },
            "settings": { "subscriptions": { name: settings } },
        });
        TopicRecord::parse(record.to_string().as_bytes()).unwrap()
    }

    fn endpoint() -> Value {
        json!({ "endpoint": { "url": URL } })
    }

    fn with_status(state: &str, since: Timestamp, reason: Option<&str>) -> Value {
        let status = json!({ "state": state, "since": since.to_string(), "reason": reason });
        json!({ "endpoint": { "url": URL }, "status": status })
    }

    fn mark() -> GoneMark {
        GoneMark {
            topic: crate::model::TopicName::parse("orders").unwrap(),
            subscription: crate::model::SubscriptionName::parse("billing").unwrap(),
            identity: Identity::parse("0102030405060708090a0b0c"),
            url: URL.to_owned(),
            at: AT,
        }
    }

    fn status_after(record: TopicRecord) -> Option<StatusView> {
        match mark().next_step(record) {
            GoneStep::Disable(record) => {
                let settings = record.settings.subscriptions.into_values().next();
                settings.unwrap().status
            }
            GoneStep::Announce | GoneStep::Drop => None,
        }
    }

    #[test]
    fn subscription_is_disabled_whatever_the_case_of_its_name() {
        let expected = StatusView::new(StatusState::Disabled, Some(REASON.to_owned()), AT);
        for name in ["billing", "Billing"] {
            assert_eq!(
                status_after(record(name, &endpoint())),
                Some(expected.clone())
            );
        }
        for state in ["Active", "Paused"] {
            let settings = with_status(state, AT, None);
            assert_eq!(
                status_after(record("billing", &settings)),
                Some(expected.clone())
            );
        }
    }

    #[test]
    fn mark_whose_subscription_does_not_stand_is_dropped() {
        let later = AT + Duration::from_millis(1);
        for settings in [
            json!({ "endpoint": { "url": "https://billing.example.com/elsewhere" } }),
            json!({ "endpoint": { "url": URL }, "retryPolicy": { "disableOnGone": false } }),
            with_status("Active", later, None),
            with_status("Disabled", AT, Some("disabled by an operator")),
            with_status("Disabled", later, Some(REASON)),
        ] {
            assert_eq!(
                mark().next_step(record("billing", &settings)),
                GoneStep::Drop
            );
        }
        assert_eq!(
            mark().next_step(record("other", &endpoint())),
            GoneStep::Drop
        );
        let other = GoneMark {
            identity: Identity::parse("010203040506ffffffffffff"),
            ..mark()
        };
        assert_eq!(
            other.next_step(record("billing", &endpoint())),
            GoneStep::Drop
        );
    }

    #[test]
    fn mark_that_was_written_into_the_record_is_announced() {
        let GoneStep::Disable(disabled) = mark().next_step(record("billing", &endpoint())) else {
            panic!("it is to be disabled")
        };
        assert_eq!(mark().next_step(*disabled), GoneStep::Announce);
    }
}
