use std::sync::Arc;

use super::*;
use crate::attempt::EntryVerdict;
use crate::delivery_log::{LogRecord, change_for_verdict, join_records, parse_records};
use crate::model::{
    CREATION_ID_BYTES, CreationId, DeadLetterReason, EventEnvelope, EventMarks, Hops, LastAttempt,
    OutcomeName, SubscriptionName, TopicName,
};

const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const EVENT: &str =
    r#"{ "specversion":"1.0","id":"e-1","source":"/shop","type":"paid","subject":"s" }"#;

fn entry(payload: EventPayload) -> DeliveryEntry {
    DeliveryEntry {
        key: "k-0".to_owned(),
        expires_at: AT + Duration::from_hours(24),
        traceparent: Some("00-1-2-01".to_owned()),
        marks: EventMarks::default(),
        envelope: None,
        payload,
    }
}

fn inline(text: &str) -> EventPayload {
    EventPayload::Inline(Bytes::from(text.to_owned()))
}

fn delivery(attempts: u16) -> Delivery {
    let id = CreationId::new([1; CREATION_ID_BYTES]);
    Delivery {
        topic: TopicName::parse("Orders").unwrap(),
        subscription: SubscriptionName::parse("Billing").unwrap(),
        schema: EventSchema::CloudEvents,
        published_at: AT,
        not_before: AT,
        attempts,
        last: None,
        timed_out: false,
        identity: Some(Identity {
            topic: id,
            subscription: id,
        }),
        hops: Hops::default(),
        events: Vec::new(),
    }
}

fn event<'a>(
    delivery: &'a Delivery,
    entry: &'a DeliveryEntry,
    text: Option<&'a Bytes>,
) -> RecordedEvent<'a> {
    RecordedEvent {
        message_id: "m",
        receive_count: 2,
        delivery,
        entry,
        text,
        keeps_payload: true,
        is_given_up: false,
    }
}

fn retry() -> EventChange {
    let last = LastAttempt {
        outcome: OutcomeName::Busy,
        status: Some(503),
        at: AT,
        name_was_unknown: false,
        was_unconnected: false,
        was_kept: false,
        was_connected: false,
    };
    change_for_verdict(
        EntryVerdict::Retry {
            not_before: AT + Duration::from_secs(10),
            last,
        },
        None,
    )
    .unwrap()
}

fn held() -> EventChange {
    change_for_verdict(EntryVerdict::Held, None).unwrap()
}

/// The record as it is read from its message.
fn read(text: &RecordText) -> LogRecord {
    let bodies = join_records(std::iter::once(text));
    let mut records = parse_records(&bodies[0]).unwrap();
    assert_eq!((bodies.len(), records.len()), (1, 1));
    records.remove(0)
}

fn record(event: RecordedEvent<'_>, change: &EventChange, details: RecordDetails<'_>) -> LogRecord {
    read(&event.render_record(change, details, AT).unwrap())
}

#[test]
fn an_attempt_is_recorded_with_all_that_is_known() {
    let delivery = delivery(0);
    let text = Bytes::from(EVENT);
    let entry = entry(inline(EVENT));
    let details = RecordDetails {
        webhook_id: Some("msg_k-0"),
        status: Some(503),
        failure: Some("timed out without an answer"),
        redirect: None,
        took: Some(Duration::from_micros(87_900)),
        answer: Some("later"),
        answer_type: Some("text/plain"),
        endpoint: Some("https://a.example/hook"),
        dead_letter_object: Some("ORDERS/x.json"),
    };
    let text_of = |text: &str| Some(text.to_owned());
    let expected = LogRecord {
        record_id: record_id("m", 2, "k-0", 1, RecordKind::Attempt, AT),
        time: AT,
        kind: RecordKind::Attempt,
        topic: "orders".to_owned(),
        subscription: "billing".to_owned(),
        identity: text_of("010101010101010101010101"),
        delivery_key: "k-0".to_owned(),
        event_id: text_of("e-1"),
        event_source: text_of("/shop"),
        event_type: text_of("paid"),
        event_subject: text_of("s"),
        schema: text_of("CloudEvents"),
        webhook_id: text_of("msg_k-0"),
        own_webhook_id: None,
        attempt: 1,
        origin: AttemptOrigin::First,
        run_id: None,
        result: LogResult::Retry,
        wait: WaitTransition::Begins,
        reason: text_of("Busy"),
        status: Some(503),
        error: text_of("timed out without an answer"),
        duration_ms: Some(87),
        answer: text_of("later"),
        answer_type: text_of("text/plain"),
        next_attempt_at: Some(AT + Duration::from_secs(10)),
        dead_letter_object: text_of("ORDERS/x.json"),
        endpoint: text_of("https://a.example/hook"),
        accepted_at: AT,
        released_at: None,
        expires_at: AT + Duration::from_hours(24),
        traceparent: text_of("00-1-2-01"),
        payload_reference: None,
        matched: None,
        payload: super::super::RecordPayload::parse(EVENT),
    };
    assert_eq!(
        record(event(&delivery, &entry, Some(&text)), &retry(), details),
        expected
    );
}

#[test]
fn record_says_whether_its_delivery_waited_and_waits() {
    let give_up = |last| EntryVerdict::GiveUp {
        reason: DeadLetterReason::TimeToLiveExceeded,
        last,
    };
    let ended = [
        change_for_verdict(EntryVerdict::Delivered, None).unwrap(),
        change_for_verdict(give_up(None), None).unwrap(),
        EventChange::answered_late(),
        EventChange::dead_lettered(DeadLetterReason::HandlerFailed),
        EventChange::dropped("TimeToLiveExceeded"),
    ];
    let waiting = [retry(), held(), EventChange::waiting_until(AT)];
    let wait = |attempts, counted, is_given_up, change: &EventChange| {
        let delivery = delivery(attempts);
        let mut entry = entry(inline(EVENT));
        entry.marks.counted = counted;
        let event = RecordedEvent {
            is_given_up,
            ..event(&delivery, &entry, None)
        };
        record(event, change, RecordDetails::default()).wait
    };
    for change in &ended {
        assert_eq!(wait(0, None, false, change), WaitTransition::None);
        assert_eq!(wait(0, Some(true), false, change), WaitTransition::Ends);
        assert_eq!(wait(2, None, false, change), WaitTransition::Ends);
        assert_eq!(wait(2, Some(false), false, change), WaitTransition::None);
        assert_eq!(wait(2, None, true, change), WaitTransition::None);
    }
    for change in &waiting {
        assert_eq!(wait(0, None, false, change), WaitTransition::Begins);
        assert_eq!(wait(0, Some(true), false, change), WaitTransition::Lasts);
        assert_eq!(wait(2, None, false, change), WaitTransition::Lasts);
        assert_eq!(wait(2, Some(false), false, change), WaitTransition::Begins);
    }
}

/// Record of an event without text leaves out what is unknown.
#[test]
fn unknown_members_are_left_out() {
    let delivery = delivery(2);
    let entry = entry(inline(EVENT));
    let event = RecordedEvent {
        keeps_payload: false,
        ..event(&delivery, &entry, None)
    };
    let record = record(event, &held(), RecordDetails::default());
    assert_eq!(
        (record.kind, record.result, record.attempt),
        (RecordKind::Held, LogResult::Held, 2)
    );
    assert_eq!(
        (record.origin, record.event_id, record.status),
        (AttemptOrigin::Retry, None, None)
    );
}

#[test]
fn a_replayed_event_is_the_replay_s_on_every_attempt() {
    for attempts in [0, 3] {
        let delivery = delivery(attempts);
        let mut entry = entry(inline(EVENT));
        entry.marks = EventMarks {
            replayed: true,
            run: Some("run-1".to_owned()),
            ..EventMarks::default()
        };
        let record = record(
            event(&delivery, &entry, None),
            &retry(),
            RecordDetails::default(),
        );
        assert_eq!(
            (record.origin, record.attempt),
            (AttemptOrigin::Replay, attempts + 1)
        );
        assert_eq!(record.run_id.as_deref(), Some("run-1"));
    }
}

#[test]
fn only_the_records_before_the_first_retry_have_the_payload() {
    let text = Bytes::from(EVENT);
    let entry = entry(inline(EVENT));
    let payload = |attempts, keeps_payload| {
        let delivery = delivery(attempts);
        let event = RecordedEvent {
            keeps_payload,
            ..event(&delivery, &entry, Some(&text))
        };
        record(event, &retry(), RecordDetails::default()).payload
    };
    assert_eq!(payload(0, true).unwrap().as_str(), EVENT);
    assert_eq!((payload(1, true), payload(0, false)), (None, None));
}

/// Log keeps the key of a payload that is too large for it.
#[test]
fn large_payload_is_kept_as_a_reference() {
    let stored = EventPayload::Stored {
        key: "payloads/a".to_owned(),
        bytes: 9,
        digest: None,
        names: None,
    };
    let check = |payload: &EventPayload, text: Option<String>, expected: (usize, Option<&str>)| {
        let delivery = delivery(0);
        let entry = entry(payload.clone());
        let text = text.map(Bytes::from);
        let record = record(
            event(&delivery, &entry, text.as_ref()),
            &held(),
            RecordDetails::default(),
        );
        let bytes = record.payload.map_or(0, |payload| payload.as_str().len());
        assert_eq!((bytes, record.payload_reference.as_deref()), expected);
    };
    let of = |bytes: usize| Some(format!("\"{}\"", "x".repeat(bytes - 2)));
    check(
        &stored,
        of(LOG_PAYLOAD_BYTES_MAX),
        (LOG_PAYLOAD_BYTES_MAX, None),
    );
    check(
        &stored,
        of(LOG_PAYLOAD_BYTES_MAX + 1),
        (0, Some("payloads/a")),
    );
    check(&stored, None, (0, Some("payloads/a")));
    check(&inline("{}"), of(LOG_PAYLOAD_BYTES_MAX + 1), (0, None));
}

#[test]
fn a_custom_event_lies_in_its_envelope() {
    let envelope = EventEnvelope {
        id: "1".into(),
        event_time: "2020-08-13T18:11:29Z".into(),
        event_type: "made".into(),
        data_version: "".into(),
        topic: "/topics/orders".into(),
        subject: "s".into(),
    };
    let text = Bytes::from_static(br#"{"order":7}"#);
    let delivery = delivery(0);
    let entry = DeliveryEntry {
        envelope: Some(Arc::new(envelope.clone())),
        ..entry(inline("{}"))
    };
    let record = record(
        event(&delivery, &entry, Some(&text)),
        &retry(),
        RecordDetails::default(),
    );
    assert_eq!(
        record.payload.unwrap().as_str().as_bytes(),
        envelope.wrap_event(&text, &[])
    );
    assert_eq!(
        (record.event_id.as_deref(), record.event_type.as_deref()),
        (Some("1"), Some("made"))
    );
}

#[test]
fn a_long_id_is_cut_as_a_search_cuts_it() {
    let long = "i".repeat(2_000);
    let text = Bytes::from(format!(r#"{{"id":"{long}","source":"/s","type":"t"}}"#));
    let delivery = delivery(0);
    let entry = entry(inline("{}"));
    let record = record(
        event(&delivery, &entry, Some(&text)),
        &retry(),
        RecordDetails::default(),
    );
    assert_eq!(record.event_id, Some(crate::delivery_log::log_text(&long)));
}

#[test]
fn a_payload_has_nothing_that_sqs_refuses() {
    let text = Bytes::from("{\"id\":\"\u{ffff}\"}");
    let delivery = delivery(0);
    let entry = entry(inline("{}"));
    let made = event(&delivery, &entry, Some(&text))
        .render_record(&retry(), RecordDetails::default(), AT)
        .unwrap();
    assert!(crate::model::fits_into_a_message(
        &join_records(std::iter::once(&made))[0]
    ));
    assert_eq!(
        read(&made).payload.unwrap().as_str(),
        "{\"id\":\"\\uffff\"}"
    );
}
