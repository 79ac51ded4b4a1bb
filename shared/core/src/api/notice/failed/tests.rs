//! Notices about events, word by word and at the bounds of their size.

use super::*;
use crate::api::notice::Notice;
use crate::model::{Delivery, EventEnvelope, EventMarks, EventPayload, LastAttempt};
use serde_json::{Value, json};

fn entry() -> DeliveryEntry {
    DeliveryEntry {
        key: "0b0e-3".to_owned(),
        expires_at: Timestamp::EPOCH,
        traceparent: None,
        marks: EventMarks::default(),
        envelope: None,
        payload: EventPayload::Inline(Bytes::new()),
    }
}

fn letter(schema: EventSchema) -> DeadLetter {
    let delivery = Delivery {
        topic: TopicName::parse("Orders").unwrap(),
        subscription: SubscriptionName::parse("billing").unwrap(),
        schema,
        published_at: Timestamp::from_millis(1_700_000_000_000),
        not_before: Timestamp::EPOCH,
        attempts: 3,
        last: Some(LastAttempt {
            outcome: OutcomeName::Busy,
            status: Some(503),
            at: Timestamp::from_millis(1_700_000_001_000),
            name_was_unknown: false,
            was_unconnected: false,
            was_kept: false,
            was_connected: false,
        }),
        timed_out: false,
        identity: None,
        hops: crate::model::Hops::default(),
        events: vec![entry()],
    };
    DeadLetter::new(DeadLetterReason::MaxDeliveryAttemptsExceeded, delivery)
}

fn notice(from: EventSchema, text: Option<&str>, to: EventSchema) -> Event {
    let letter = letter(from);
    let entry = entry();
    let text = text.map(|text| Bytes::from(text.to_owned()));
    let failed = DeliveryFailedNotice {
        letter: &letter,
        entry: &entry,
        text: text.as_ref(),
        object: Some("ORDERS/BILLING/2023/11/14/22/x.json"),
        at: Timestamp::from_millis(1_700_000_300_000),
    };
    Notice::Failed(failed).render_event(to).unwrap()
}

fn data(event: &Event) -> Value {
    serde_json::from_slice::<Value>(event.json()).unwrap()["data"].take()
}

/// A CloudEvent with so many bytes of data and of its attribute `source`.
fn sized(data: usize, source: usize) -> String {
    format!(
        r#"{{"specversion":"1.0","id":"1","source":"{}","type":"t","data":"{}"}}"#,
        "s".repeat(source),
        "d".repeat(data)
    )
}

#[test]
fn a_notice_tells_what_became_of_a_cloud_event() {
    let text = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"a/b","x":7,"data":{ "n": 1.00 }}"#;
    assert_eq!(
        notice(
            EventSchema::CloudEvents,
            Some(text),
            EventSchema::CloudEvents
        )
        .json(),
        r#"{"specversion":"1.0","id":"orders.billing.0b0e-3","source":"/topics/Orders/subscriptions/billing","type":"dev.posthaste.delivery.failed","subject":"/topics/Orders/subscriptions/billing","time":"2023-11-14T22:18:20.000Z","datacontenttype":"application/json","data":{"text":"An event of Orders/billing was given up after 3 attempts: MaxDeliveryAttemptsExceeded.","topic":"Orders","subscription":"billing","id":"1","source":"/s","type":"t","subject":"a/b","deadLetterReason":"MaxDeliveryAttemptsExceeded","deliveryAttempts":3,"lastDeliveryOutcome":"Busy","lastHttpStatusCode":503,"publishTime":"2023-11-14T22:13:20.0000000Z","lastDeliveryAttemptTime":"2023-11-14T22:13:21.0000000Z","deadLetterObject":"ORDERS/BILLING/2023/11/14/22/x.json","schema":"CloudEvents","event":{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":"a/b","x":7,"data":{ "n": 1.00 }}}}"#
    );
}

#[test]
fn a_notice_can_be_an_event_grid_event_about_one() {
    let text =
        r#"{"id":"1","eventType":"t","subject":"a","eventTime":"2023-11-14T22:13:20Z","data":[]}"#;
    let made = notice(EventSchema::EventGrid, Some(text), EventSchema::EventGrid);
    assert_eq!(
        made.json(),
        &format!(
            r#"{{"id":"orders.billing.0b0e-3","topic":"/topics/Orders/subscriptions/billing","subject":"/topics/Orders/subscriptions/billing","eventType":"dev.posthaste.delivery.failed","eventTime":"2023-11-14T22:18:20.0000000Z","dataVersion":"1","metadataVersion":"1","data":{{"text":"An event of Orders/billing was given up after 3 attempts: MaxDeliveryAttemptsExceeded.","topic":"Orders","subscription":"billing","id":"1","type":"t","subject":"a","deadLetterReason":"MaxDeliveryAttemptsExceeded","deliveryAttempts":3,"lastDeliveryOutcome":"Busy","lastHttpStatusCode":503,"publishTime":"2023-11-14T22:13:20.0000000Z","lastDeliveryAttemptTime":"2023-11-14T22:13:21.0000000Z","deadLetterObject":"ORDERS/BILLING/2023/11/14/22/x.json","schema":"EventGrid","event":{text}}}}}"#
        )
    );
}

/// Notice about an event that was dropped untried names no object and no outcome.
#[test]
fn untried_dropped_event_has_no_object_and_no_outcome() {
    let mut letter = letter(EventSchema::CloudEvents);
    let entry = entry();
    letter.delivery.attempts = 0;
    letter.delivery.last = None;
    let failed = DeliveryFailedNotice {
        letter: &letter,
        entry: &entry,
        text: None,
        object: None,
        at: Timestamp::EPOCH,
    };
    let event = failed.render_event(EventSchema::CloudEvents).unwrap();
    let expected = json!({
        "text": "An event of Orders/billing was given up after 0 attempts: MaxDeliveryAttemptsExceeded.",
        "topic": "Orders", "subscription": "billing", "deadLetterReason": "MaxDeliveryAttemptsExceeded",
        "deliveryAttempts": 0, "publishTime": "2023-11-14T22:13:20.0000000Z", "schema": "CloudEvents",
        "dataOmitted": true, "attributesOmitted": true,
    });
    assert_eq!(data(&event), expected);
}

#[test]
fn the_bound_of_the_data_is_exact() {
    let check = |bytes, is_whole| {
        let event = notice(
            EventSchema::CloudEvents,
            Some(&sized(bytes, 1)),
            EventSchema::CloudEvents,
        );
        let data = data(&event);
        assert_eq!(data["event"].get("data").is_some(), is_whole, "{bytes}");
        assert_eq!(data.get("dataOmitted").is_none(), is_whole, "{bytes}");
        assert_eq!(data["event"]["source"], "s");
        event.json().len()
    };
    let fits = NOTICE_BYTES_MAX - check(0, true);
    assert_eq!(check(fits, true), NOTICE_BYTES_MAX);
    assert!(check(fits + 1, false) < 1_000);
    check(999_000, false);
}

#[test]
fn the_bound_of_the_attributes_is_exact() {
    let check = |bytes, is_whole| {
        let event = notice(
            EventSchema::CloudEvents,
            Some(&sized(9_000, bytes)),
            EventSchema::CloudEvents,
        );
        let data = data(&event);
        assert_eq!(data["dataOmitted"], true);
        assert_eq!(data.get("attributesOmitted").is_none(), is_whole, "{bytes}");
        assert_eq!(data.get("event").is_some(), is_whole, "{bytes}");
        let shown = data["source"].as_str().unwrap().chars().count();
        assert_eq!(
            shown,
            if is_whole {
                bytes
            } else {
                NOTICE_TEXT_CHARS_MAX + 1
            }
        );
        event.json().len()
    };
    // The source is in the notice twice: as its own member, and in the event.
    let odd = check(126_000, true) % 2;
    let fits = 126_000 + (NOTICE_BYTES_MAX - check(126_000, true)) / 2;
    assert_eq!(check(fits, true), NOTICE_BYTES_MAX - odd);
    assert!(check(fits + 1, false) < 3_000);
}

#[test]
fn binary_data_is_left_out_too() {
    let text = sized(300_000, 1).replace(r#""data":"#, r#""data_base64":"#);
    let data = data(&notice(
        EventSchema::CloudEvents,
        Some(&text),
        EventSchema::CloudEvents,
    ));
    assert_eq!(
        data["event"],
        json!({ "specversion": "1.0", "id": "1", "source": "s", "type": "t" })
    );
}

#[test]
fn characters_that_sqs_refuses_are_escaped() {
    let text = sized(1, 1).replace(r#""id":"1""#, r#""id":"\uffff""#);
    let event = notice(
        EventSchema::CloudEvents,
        Some(&text),
        EventSchema::CloudEvents,
    );
    assert!(
        !event
            .json()
            .windows(3)
            .any(|bytes| bytes == "\u{ffff}".as_bytes())
    );
    assert_eq!(data(&event)["id"], "\u{ffff}");
}

#[test]
fn the_trace_goes_on() {
    let letter = letter(EventSchema::CloudEvents);
    let mut entry = entry();
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    entry.traceparent = Some(trace.to_owned());
    let failed = DeliveryFailedNotice {
        letter: &letter,
        entry: &entry,
        text: None,
        object: None,
        at: Timestamp::EPOCH,
    };
    assert_eq!(
        failed
            .render_event(EventSchema::CloudEvents)
            .unwrap()
            .traceparent(),
        Some(trace)
    );
}

fn envelope() -> EventEnvelope {
    EventEnvelope {
        id: "7".into(),
        event_time: "2023-11-14T22:13:20Z".into(),
        event_type: "tick".into(),
        data_version: "".into(),
        topic: "/topics/Orders".into(),
        subject: "a".into(),
    }
}

/// Custom event is shown as it is with what was mapped, or its text is left out whole.
#[test]
fn custom_event_is_shown_whole_with_mapped_names_or_omitted() {
    let check = |bytes, is_whole| {
        let letter = letter(EventSchema::Custom);
        let mut entry = entry();
        entry.envelope = Some(Arc::new(envelope()));
        let text = Bytes::from(format!(r#"{{"any": "{}"}}"#, "x".repeat(bytes)));
        let failed = DeliveryFailedNotice {
            letter: &letter,
            entry: &entry,
            text: Some(&text),
            object: None,
            at: Timestamp::EPOCH,
        };
        let data = data(&failed.render_event(EventSchema::CloudEvents).unwrap());
        assert_eq!(
            [&data["id"], &data["type"], &data["subject"]],
            ["7", "tick", "a"]
        );
        assert_eq!(
            (
                data.get("event").is_some(),
                data.get("dataOmitted").is_none()
            ),
            (is_whole, is_whole)
        );
        assert_eq!(data.get("attributesOmitted"), None);
    };
    check(1, true);
    check(NOTICE_BYTES_MAX, false);
}

#[test]
fn on_a_topic_of_custom_events_a_notice_is_its_data() {
    let text = sized(1, 1);
    let custom = notice(EventSchema::CloudEvents, Some(&text), EventSchema::Custom);
    let cloud = notice(
        EventSchema::CloudEvents,
        Some(&text),
        EventSchema::CloudEvents,
    );
    assert_eq!(
        serde_json::from_slice::<Value>(custom.json()).unwrap(),
        data(&cloud)
    );
    assert_eq!(
        (custom.id(), custom.event_type()),
        (cloud.id(), cloud.event_type())
    );
    assert_eq!(custom.subject(), cloud.subject());
}
