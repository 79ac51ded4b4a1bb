//! Messages are written and read back: every version and its fixture.

use super::*;
use std::sync::Arc;

use crate::attempt::EventSize;
use crate::delivery_log::names_to_keep;
use crate::model::{
    AttemptOutcome, CarriedEvents, Delivery, DeliveryEntry, EarlierLife, EventEnvelope, EventMarks,
    EventPayload, EventSchema, Hops, Identity, LastAttempt, LetterPlace, OutcomeName,
    PayloadDigest, SendFailure, SubscriptionName, Timestamp, TopicName,
};

/// Version 1 as it was first written. Never edited.
const DELIVERY_V1: &str = include_str!("../fixtures/delivery-v1.json");
const DELIVERY_V1_NAMES: &str = include_str!("../fixtures/delivery-v1-names.json");
const DELIVERY_V1_DIGEST: &str = include_str!("../fixtures/delivery-v1-digest.json");
/// Version 2 as it was first written. Never edited.
const DELIVERY_V2_CUSTOM: &str = include_str!("../fixtures/delivery-v2-custom.json");
/// Version 3 as it was first written. Never edited.
const DELIVERY_V3: &str = include_str!("../fixtures/delivery-v3.json");
const DELIVERY_V1_MARKS: &str = include_str!("../fixtures/delivery-v1-marks.json");
const DELIVERY_V1_AGAIN: &str = include_str!("../fixtures/delivery-v1-again.json");
const DELIVERY_V1_LETTER: &str = include_str!("../fixtures/delivery-v1-letter.json");
const DELIVERY_V1_MATCHED: &str = include_str!("../fixtures/delivery-v1-matched.json");
const DELIVERY_V1_COUNTED: &str = include_str!("../fixtures/delivery-v1-counted.json");
const DELIVERY_V1_NUMBER: &str = include_str!("../fixtures/delivery-v1-number.json");

/// A body without the number of its two events, which 0.1.0 did not write yet.
pub(in crate::stored) fn as_of_0_1_0(body: &Bytes) -> String {
    let text = std::str::from_utf8(body).unwrap();
    assert_eq!(text.matches(",\"n\":2,\"topic\":").count(), 1);
    text.replacen(",\"n\":2,", ",", 1)
}

pub(in crate::stored) fn delivery() -> Delivery {
    Delivery {
        topic: TopicName::parse("orders").unwrap(),
        subscription: SubscriptionName::parse("billing").unwrap(),
        schema: EventSchema::CloudEvents,
        published_at: Timestamp::from_millis(1_700_000_000_000),
        not_before: Timestamp::from_millis(1_700_000_010_000),
        attempts: 1,
        last: Some(LastAttempt {
            outcome: OutcomeName::Busy,
            status: Some(503),
            at: Timestamp::from_millis(1_700_000_000_500),
            name_was_unknown: false,
            was_unconnected: false,
            was_kept: false,
            was_connected: false,
        }),
        timed_out: false,
        identity: None,
        hops: Hops::default(),
        events: vec![
            DeliveryEntry {
                key: "0b0e-0".to_owned(),
                expires_at: Timestamp::from_millis(1_700_086_400_000),
                traceparent: Some(
                    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned(),
                ),
                marks: EventMarks::default(),
                envelope: None,
                payload: EventPayload::Inline(Bytes::from_static(b"{ \"id\":\"1\", \"n\": 1.00 }")),
            },
            DeliveryEntry {
                key: "0b0e-1".to_owned(),
                expires_at: Timestamp::from_millis(1_700_086_400_000),
                traceparent: None,
                marks: EventMarks::default(),
                envelope: None,
                payload: stored(None),
            },
        ],
    }
}

#[test]
fn missing_connection_is_read_back() {
    let outcome = AttemptOutcome::Failed(SendFailure::ConnectTimedOut);
    let last = LastAttempt::from_outcome(outcome, Timestamp::from_millis(1_700_000_000_500));
    let unconnected = Delivery { last, ..delivery() };
    let body = render_delivery(&unconnected);
    assert!(
        std::str::from_utf8(&body)
            .unwrap()
            .contains(r#""wasUnconnected":true"#)
    );
    assert_eq!(parse_delivery(&body).unwrap(), unconnected);
}

#[test]
fn connection_that_was_closed_is_read_back() {
    let outcome = AttemptOutcome::Failed(SendFailure::Closed);
    let last = LastAttempt::from_outcome(outcome, Timestamp::from_millis(1_700_000_000_500));
    let closed = Delivery { last, ..delivery() };
    let body = render_delivery(&closed);
    assert!(
        std::str::from_utf8(&body)
            .unwrap()
            .contains(r#""wasConnected":true"#)
    );
    assert_eq!(parse_delivery(&body).unwrap(), closed);
}

fn both_marks() -> EventMarks {
    EventMarks {
        notice: true,
        replayed: true,
        ..EventMarks::default()
    }
}

fn stored(digest: Option<PayloadDigest>) -> EventPayload {
    EventPayload::Stored {
        key: "payloads/20231114/x".to_owned(),
        bytes: 900_000,
        digest,
        names: None,
    }
}

/// The names of the event that is stored, where a message cannot hold one of them as it is.
fn named() -> Delivery {
    let mut delivery = delivery();
    let text = r#"{"id":"1","source":"/s","type":"made","subject":"a\uffff"}"#;
    delivery.events[1].payload = EventPayload::Stored {
        key: "payloads/20231114/x".to_owned(),
        bytes: 900_000,
        digest: None,
        names: names_to_keep(EventSchema::CloudEvents, &Bytes::from(text)),
    };
    delivery
}

#[test]
fn stored_event_names_round_trip_as_their_fixture() {
    assert_eq!(render_delivery(&named()), DELIVERY_V1_NAMES.trim_end());
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V1_NAMES.as_bytes()));
    assert_eq!(read.unwrap(), named());
}

#[test]
fn message_has_room_for_the_names_of_its_stored_events() {
    let entry = |delivery: Delivery| delivery.events[1].clone();
    let [without, with] = [delivery(), named()].map(entry);
    let of = |entry: &DeliveryEntry| EventSize::measure(&entry.payload, None).message;
    let written = |it: Delivery| render_delivery(&it).len();
    assert_eq!(
        of(&with) - of(&without),
        written(named()) - written(delivery())
    );
}

#[test]
fn a_delivery_is_written_as_its_fixture_and_read_back() {
    assert_eq!(
        as_of_0_1_0(&render_delivery(&delivery())),
        DELIVERY_V1.trim_end()
    );
    assert_eq!(
        parse_delivery(&Bytes::from_static(DELIVERY_V1.as_bytes())).unwrap(),
        delivery()
    );
}

#[test]
fn delivery_with_its_number_round_trips_as_its_fixture() {
    assert_eq!(render_delivery(&delivery()), DELIVERY_V1_NUMBER.trim_end());
    assert_eq!(
        parse_delivery(&Bytes::from_static(DELIVERY_V1_NUMBER.as_bytes())).unwrap(),
        delivery()
    );
}

#[test]
fn carried_events_are_known_with_and_without_their_number() {
    let expected = Some(CarriedEvents::from_delivery(&delivery()));
    assert_eq!(
        expected,
        Some(CarriedEvents::new(
            2,
            Timestamp::from_millis(1_700_000_000_000)
        ))
    );
    for body in [
        DELIVERY_V1,
        DELIVERY_V1_DIGEST,
        DELIVERY_V1_MARKS,
        DELIVERY_V1_AGAIN,
        DELIVERY_V1_LETTER,
        DELIVERY_V1_NUMBER,
        DELIVERY_V2_CUSTOM,
        DELIVERY_V3,
    ] {
        assert_eq!(carried_by_message(body.as_bytes()), expected, "{body}");
    }
    // Its beginning is enough: the events are not read.
    let head = render_delivery(&delivery());
    assert_eq!(carried_by_message(&head[..120]), expected);
    assert_eq!(carried_by_head(DELIVERY_V1.as_bytes()), None);
}

#[test]
fn text_that_is_no_delivery_carries_nothing() {
    for body in [
        "",
        "{}",
        "hello",
        r#"{"v":1,"n":0,"topic":"a","subscription":"b","schema":"c","publishedAt":1,"events":[]}"#,
        r#"{"v":1,"n":99999999999999999999,"topic":"a"}"#,
        r#"{"v":1,"n":2,"topic":"a"#,
    ] {
        assert_eq!(carried_by_message(body.as_bytes()), None, "{body}");
    }
}

#[test]
fn delivery_with_a_digest_round_trips_as_its_fixture() {
    let mut delivery = delivery();
    delivery.events[1].payload = stored(Some(PayloadDigest::for_json(b"abc")));
    assert_eq!(
        as_of_0_1_0(&render_delivery(&delivery)),
        DELIVERY_V1_DIGEST.trim_end()
    );
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V1_DIGEST.as_bytes()));
    assert_eq!(read.unwrap(), delivery);
    let broken = Bytes::from(DELIVERY_V1_DIGEST.replace("ba7816bf", "BA7816BF"));
    assert!(matches!(
        parse_delivery(&broken),
        Err(FormatError::Malformed(..))
    ));
}

pub(in crate::stored) fn identified() -> Delivery {
    let identity = Identity::parse("a1b2c3d4e5f60102030405ff");
    Delivery {
        identity,
        hops: Hops::new(2),
        ..delivery()
    }
}

#[test]
fn delivery_with_identity_and_hops_round_trips_as_its_fixture() {
    assert_eq!(
        as_of_0_1_0(&render_delivery(&identified())),
        DELIVERY_V3.trim_end()
    );
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V3.as_bytes()));
    assert_eq!(read.unwrap(), identified());
    let broken = Bytes::from(DELIVERY_V3.replace("a1b2", "A1B2"));
    assert!(matches!(
        parse_delivery(&broken),
        Err(FormatError::Malformed(..))
    ));
}

/// Content that an older program would pass over has a version that it gives back.
#[test]
fn content_unknown_to_an_older_program_raises_the_version() {
    let version = |delivery: &Delivery| {
        serde_json::from_slice::<DeliveryWire<'_>>(&render_delivery(delivery))
            .unwrap()
            .v
    };
    let hops_alone = Delivery {
        hops: Hops::new(1),
        ..delivery()
    };
    let identity_alone = Delivery {
        identity: identified().identity,
        ..custom()
    };
    assert_eq!(
        [delivery(), custom(), hops_alone, identity_alone].map(|it| version(&it)),
        [1, 2, 3, 3]
    );
}

#[test]
fn a_marked_delivery_is_written_as_its_fixture_and_read_back() {
    let mut delivery = delivery();
    delivery.timed_out = true;
    delivery.events[0].marks = both_marks();
    assert_eq!(
        as_of_0_1_0(&render_delivery(&delivery)),
        DELIVERY_V1_MARKS.trim_end()
    );
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V1_MARKS.as_bytes()));
    assert_eq!(read.unwrap(), delivery);
}

/// A mark only where the number of attempts does not say it.
#[test]
fn a_counted_event_is_written_as_its_fixture_and_read_back() {
    let mut held = delivery();
    held.attempts = 0;
    held.last = None;
    held.events[0].marks.set_counted(0, true);
    held.events[1].marks.set_counted(0, false);
    assert_eq!(
        as_of_0_1_0(&render_delivery(&held)),
        DELIVERY_V1_COUNTED.trim_end()
    );
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V1_COUNTED.as_bytes()));
    assert_eq!(read.unwrap(), held);
    let counted = held.events.iter().map(|it| it.marks.is_counted(0));
    assert_eq!(counted.collect::<Vec<_>>(), [true, false]);
    let mut marks = EventMarks::default();
    assert!(marks.is_counted(1) && !marks.is_counted(0));
    marks.set_counted(1, false);
    assert!(!marks.is_counted(1));
    marks.set_counted(1, true);
    assert_eq!(marks, EventMarks::default());
}

/// An event of a replay, and one that was sent again by its id.
fn sent_again() -> Delivery {
    let mut delivery = delivery();
    let again = EventMarks {
        replayed: true,
        ..EventMarks::default()
    };
    let run = Some("20231114T221320Z-0b8b9c5e".to_owned());
    delivery.events[0].marks = EventMarks {
        run,
        ..again.clone()
    };
    let webhook_id = Some("msg_7a1f-3".to_owned());
    delivery.events[1].marks = EventMarks {
        resent: true,
        webhook_id,
        ..again
    };
    delivery
}

#[test]
fn events_sent_again_round_trip_as_their_fixture() {
    assert_eq!(
        as_of_0_1_0(&render_delivery(&sent_again())),
        DELIVERY_V1_AGAIN.trim_end()
    );
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V1_AGAIN.as_bytes()));
    assert_eq!(read.unwrap(), sent_again());
}

#[test]
fn event_made_of_a_dead_letter_round_trips_as_its_fixture() {
    let mut made = sent_again();
    let object = "ORDERS/BILLING/2023/11/14/22/x.json".to_owned();
    made.events[0].marks.letter = Some(LetterPlace { object, index: 7 });
    assert_eq!(
        as_of_0_1_0(&render_delivery(&made)),
        DELIVERY_V1_LETTER.trim_end()
    );
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V1_LETTER.as_bytes()));
    assert_eq!(read.unwrap(), made);
}

#[test]
fn event_that_is_sent_again_keeps_its_earlier_life() {
    let mut made = sent_again();
    made.events[0].marks.earlier = Some(EarlierLife {
        accepted_at: Timestamp::from_millis(1_699_000_000_000),
        recoveries: 2,
    });
    made.events[0].marks.outage_since = Some(Timestamp::from_millis(1_700_000_000_000));
    let body = render_delivery(&made);
    let text = std::str::from_utf8(&body).unwrap();
    let expected = concat!(
        r#""earlier":{"acceptedAt":1699000000000,"recoveries":2},"#,
        r#""outageSince":1700000000000"#
    );
    assert!(text.contains(expected), "{text}");
    assert_eq!(parse_delivery(&body).unwrap(), made);
}

/// Four events: two that are meant for the same subscriptions, one for this alone, one for others.
fn matched() -> Delivery {
    let event = |(index, matched): (usize, Option<&str>)| DeliveryEntry {
        key: format!("0b0e-{index}"),
        expires_at: Timestamp::from_millis(1_700_086_400_000),
        traceparent: None,
        marks: EventMarks {
            matched: matched.map(Arc::from),
            ..EventMarks::default()
        },
        envelope: None,
        payload: EventPayload::Inline(Bytes::from(format!(r#"{{"id":"{}"}}"#, index + 1))),
    };
    let names = [
        Some("billing,shipping"),
        Some("billing,shipping"),
        None,
        Some("audit,billing"),
    ];
    Delivery {
        not_before: Timestamp::from_millis(1_700_000_000_000),
        attempts: 0,
        last: None,
        events: names.into_iter().enumerate().map(event).collect(),
        ..delivery()
    }
}

#[test]
fn matched_subscriptions_are_written_where_they_change() {
    let written = DELIVERY_V1_MATCHED
        .trim_end()
        .replacen("{\"v\":1,", "{\"v\":1,\"n\":4,", 1);
    assert_eq!(render_delivery(&matched()), written);
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V1_MATCHED.as_bytes()));
    assert_eq!(read.unwrap(), matched());
}

/// A record has them then.
#[test]
fn matched_subscriptions_leave_with_the_first_attempt() {
    let tried = Delivery {
        attempts: 1,
        ..matched()
    };
    let read = parse_delivery(&render_delivery(&tried)).unwrap();
    let names = read.events.iter().map(|event| event.marks.matched.clone());
    assert_eq!(names.collect::<Vec<_>>(), [None, None, None, None]);
}

/// Custom events: one with its text, one that is stored.
fn custom() -> Delivery {
    let envelope = EventEnvelope {
        id: "9f3c".into(),
        event_time: "2023-11-14T22:13:20.0000000Z".into(),
        event_type: "created".into(),
        data_version: "1.0".into(),
        topic: "/topics/orders".into(),
        subject: "a\"\u{ffff}".into(),
    };
    let mut delivery = delivery();
    delivery.schema = EventSchema::Custom;
    for entry in &mut delivery.events {
        entry.envelope = Some(Arc::new(envelope.clone()));
    }
    delivery
}

#[test]
fn delivery_of_custom_events_round_trips_as_its_fixture() {
    assert_eq!(
        as_of_0_1_0(&render_delivery(&custom())),
        DELIVERY_V2_CUSTOM.trim_end()
    );
    let read = parse_delivery(&Bytes::from_static(DELIVERY_V2_CUSTOM.as_bytes()));
    assert_eq!(read.unwrap(), custom());
}

#[test]
fn a_custom_event_without_its_envelope_is_malformed() {
    for (from, to) in [
        ("\"envelope\"", "\"other\""),
        ("\"Custom\"", "\"EventGrid\""),
    ] {
        let body = Bytes::from(DELIVERY_V2_CUSTOM.replacen(from, to, 1));
        assert!(
            matches!(parse_delivery(&body), Err(FormatError::Malformed(..))),
            "{body:?}"
        );
    }
}

#[test]
fn entry_takes_no_more_than_is_reckoned_with() {
    let mut delivery = delivery();
    let key = "f".repeat(32) + "-999999";
    let payload = stored(Some(PayloadDigest::for_json(b"abc")));
    let envelope = custom().events[0].envelope.clone();
    delivery.events = vec![DeliveryEntry {
        key,
        traceparent: None,
        marks: both_marks(),
        envelope,
        payload,
        ..delivery.events[0].clone()
    }];
    let one = render_delivery(&delivery).len();
    delivery.events.push(delivery.events[0].clone());
    let more = render_delivery(&delivery).len() - one;
    let DeliveryEntry {
        payload, envelope, ..
    } = &delivery.events[0];
    assert!(
        more <= EventSize::measure(payload, envelope.as_deref()).message,
        "{more}"
    );
}

#[test]
fn a_newer_version_is_not_malformed() {
    let newer = Bytes::from(DELIVERY_V1.replace("\"v\":1", "\"v\":4"));
    assert!(matches!(parse_delivery(&newer), Err(FormatError::Newer(4))));
    assert!(matches!(
        parse_delivery(&Bytes::from_static(b"{\"v\":7}")),
        Err(FormatError::Newer(7))
    ));
}

#[test]
fn foreign_messages_are_malformed() {
    for body in ["", "hello", "{}", "[]", "{\"v\":1}", "{\"v\":-1}", "null"] {
        let body = Bytes::from_static(body.as_bytes());
        assert!(
            matches!(parse_delivery(&body), Err(FormatError::Malformed(..))),
            "{body:?}"
        );
    }
    let empty =
        Bytes::from(DELIVERY_V1.split("\"events\"").next().unwrap().to_owned() + "\"events\":[]}");
    assert!(matches!(
        parse_delivery(&empty),
        Err(FormatError::Malformed(..))
    ));
}

#[test]
fn an_event_is_a_slice_of_the_message() {
    let body = render_delivery(&delivery());
    let EventPayload::Inline(event) = &parse_delivery(&body).unwrap().events[0].payload else {
        panic!("expected the event itself");
    };
    assert!(body.as_ptr_range().contains(&event.as_ptr()));
}

proptest::proptest! {
    #[test]
    fn no_bytes_make_it_panic(body: Vec<u8>) {
        let body = Bytes::from(body);
        let _ = parse_delivery(&body).is_ok();
        let _ = carried_by_message(&body);
    }
}
