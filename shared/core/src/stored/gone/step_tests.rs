//! The steps that a mark asks for.

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
        topic: TopicName::parse("orders").unwrap(),
        subscription: SubscriptionName::parse("billing").unwrap(),
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
    let expected = StatusView::new(StatusState::Disabled, Some(GONE_REASON.to_owned()), AT);
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
        with_status("Disabled", later, Some(GONE_REASON)),
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
