use super::super::record::tests::full;
use super::*;
use crate::delivery_log::{LogResult, RecordKind, RecordPayload, WaitTransition};
use crate::model::RECORDS_MESSAGE_BYTES_MAX;
use proptest::prelude::*;

/// Version 1 as it was first written. Never edited.
const RECORDS_V1: &str = include_str!("../fixtures/records-v1.json");

/// Version 2 as it was first written. Never edited.
const RECORDS_V2: &str = include_str!("../fixtures/records-v2.json");

fn short() -> LogRecord {
    let kind = RecordKind::Held;
    let result = LogResult::Held;
    let record_id = "0".repeat(32);
    LogRecord {
        record_id,
        kind,
        result,
        topic: "orders".to_owned(),
        ..LogRecord::default()
    }
}

#[test]
fn records_are_written_as_their_fixture_and_read_back() {
    let first = LogRecord {
        matched: None,
        own_webhook_id: None,
        ..full()
    };
    let records = vec![first, short()];
    let bodies = render_records(&records);
    assert_eq!(bodies, [RECORDS_V1.trim_end()]);
    assert_eq!(parse_records(RECORDS_V1.as_bytes()).unwrap(), records);
}

/// Members that came later: the version stays, and an older reader passes them over.
#[test]
fn members_that_came_later_raise_no_version() {
    let bodies = render_records(&[full()]);
    assert!(bodies[0].starts_with(b"{\"v\":1,"));
    assert_eq!(parse_records(&bodies[0]).unwrap(), [full()]);
}

/// Release 0.1.0 writes nothing of the wait, and passes over what this program writes of it.
#[test]
fn wait_of_a_delivery_raises_no_version() {
    let waiting = LogRecord {
        wait: WaitTransition::Begins,
        ..full()
    };
    let bodies = render_records(std::slice::from_ref(&waiting));
    let text = std::str::from_utf8(&bodies[0]).unwrap();
    assert!(text.starts_with("{\"v\":1,") && text.contains(r#","wait":"begins","#));
    assert_eq!(parse_records(&bodies[0]).unwrap(), [waiting]);
    let former = parse_records(RECORDS_V1.as_bytes()).unwrap();
    assert!(
        former
            .iter()
            .all(|record| record.wait == WaitTransition::Unknown)
    );
}

/// A record as deliver makes it: its payload apart, and without the names in that.
fn text(record_id: &str, schema: &str, payload: &str) -> RecordText {
    let record = LogRecord {
        record_id: record_id.to_owned(),
        schema: Some(schema.to_owned()),
        ..short()
    };
    RecordText::new(&record, Some(Bytes::copy_from_slice(payload.as_bytes()))).unwrap()
}

/// Message does not repeat what a payload says, nor a payload that an earlier record has.
#[test]
fn names_and_payloads_are_written_once() {
    let one =
        r#"{"id":"1","source":"/s","type":"made","subject":"x","topic":"/t","eventType":"paid"}"#;
    let two = r#"{"id":"2"}"#;
    let texts = [
        text("a", "CloudEvents", one),
        text("b", "CloudEvents", two),
        text("c", "CloudEvents", one),
        text("d", "EventGrid", one),
        text("e", "CloudEvents", two),
        text("f", "Newer", one),
    ];
    let bodies = join_records(texts.iter());
    assert_eq!(bodies, [RECORDS_V2.trim_end()]);
    let records = parse_records(&bodies[0]).unwrap();
    let names = records.iter().map(|it| {
        [
            &it.event_id,
            &it.event_source,
            &it.event_type,
            &it.event_subject,
        ]
    });
    let names: Vec<_> = names
        .map(|names| names.map(|name| name.as_deref().unwrap_or_default()))
        .collect();
    let of_cloud_event = ["1", "/s", "made", "x"];
    let of_event_grid = ["1", "/t", "paid", "x"];
    let of_two = ["2", "", "", ""];
    let none = [""; 4];
    assert_eq!(
        names,
        [
            of_cloud_event,
            of_two,
            of_cloud_event,
            of_event_grid,
            of_two,
            none
        ]
    );
    let payloads: Vec<_> = records
        .iter()
        .map(|it| it.payload.as_ref().unwrap().as_str())
        .collect();
    assert_eq!(payloads, [one, two, one, one, two, one]);
}

/// Records with the same payload take messages of a bounded size, also unshared.
#[test]
fn shared_payload_records_fill_messages_of_bounded_size() {
    let check = |payload_bytes: usize, records: usize, messages: usize| {
        let payload = format!("\"{}\"", "x".repeat(payload_bytes));
        let texts: Vec<_> = (0..records)
            .map(|n| text(&n.to_string(), "CloudEvents", &payload))
            .collect();
        let bodies = join_records(texts.iter());
        assert_eq!(bodies.len(), messages, "{payload_bytes}");
        assert!(
            bodies
                .iter()
                .all(|body| body.len() <= RECORDS_MESSAGE_BYTES_MAX)
        );
        let records: Vec<_> = bodies
            .iter()
            .map(|body| parse_records(body).unwrap())
            .collect();
        let unshared = |records: &Vec<LogRecord>| records.len() * (texts[0].byte_len() - 1);
        assert!(
            records
                .iter()
                .all(|records| unshared(records) <= 2 * RECORDS_MESSAGE_BYTES_MAX)
        );
        assert_eq!(records.concat().len(), texts.len());
        assert!(
            records
                .concat()
                .iter()
                .all(|it| it.payload.as_ref().unwrap().as_str() == payload)
        );
    };
    check(60_000, 60, 3);
    check(100, 8_000, 2);
}

#[test]
fn a_payload_is_found_again_among_the_latest_different_ones() {
    let with = |others: usize| {
        let others = (0..others).map(|n| text(&n.to_string(), "CloudEvents", &n.to_string()));
        let texts: Vec<_> = others.chain([text("a", "CloudEvents", "0")]).collect();
        join_records(texts.iter()).remove(0)
    };
    let is_shared = |body: Bytes| body.ends_with(b",\"samePayloads\":[[16,0]]}");
    assert!(is_shared(with(16)) && !is_shared(with(17)));
    assert_eq!(
        parse_records(&with(17)).unwrap()[17].payload,
        RecordPayload::parse("0")
    );
}

#[test]
fn empty_list_of_records_makes_no_message() {
    assert_eq!(render_records(&[]), Vec::<Bytes>::new());
}

#[test]
fn as_few_messages_as_fit_hold_all_records_in_order() {
    let payload = RecordPayload::parse(&format!("\"{}\"", "x".repeat(60_000)));
    let records: Vec<_> = (0..40)
        .map(|n| LogRecord {
            record_id: n.to_string(),
            payload: payload.clone(),
            ..full()
        })
        .collect();
    let bodies = render_records(&records);
    assert_eq!(bodies.len(), 3);
    assert!(
        bodies
            .iter()
            .all(|body| body.len() <= RECORDS_MESSAGE_BYTES_MAX)
    );
    let read: Vec<_> = bodies
        .iter()
        .flat_map(|body| parse_records(body).unwrap())
        .collect();
    assert_eq!(read, records);
}

/// Member of a newer program is passed over, and a missing one has its default.
#[test]
fn newer_member_is_ignored_and_missing_member_defaults() {
    let newer =
        r#"{"v":1,"extra":1,"records":[{"recordId":"a","colour":{"x":[]},"result":"teleported"}]}"#;
    let expected = LogRecord {
        record_id: "a".to_owned(),
        ..LogRecord::default()
    };
    assert_eq!(parse_records(newer.as_bytes()).unwrap(), [expected]);
}

/// Error tells a message that is not ours from one of a newer version.
#[test]
fn foreign_message_differs_from_newer_message() {
    let same =
        |pair| format!(r#"{{"v":2,"records":[{{"recordId":"a"}}],"samePayloads":[{pair}]}}"#);
    let same = ["[0,0]", "[0,1]", "[1,0]", "[0]", "[-1,0]"].map(same);
    let without = r#"{"v":2,"records":[{"recordId":"a"},{"recordId":"b"}],"samePayloads":[[1,0]]}"#;
    let later = r#"{"v":2,"records":[{"recordId":"a"},{"recordId":"b","payload":1}],"samePayloads":[[0,1]]}"#;
    let others = [
        "",
        "{}",
        "[]",
        r#"{"v":1}"#,
        r#"{"v":1,"records":[{}]}"#,
        without,
        later,
    ];
    for body in others.into_iter().chain(same.iter().map(String::as_str)) {
        assert!(
            matches!(
                parse_records(body.as_bytes()),
                Err(FormatError::Malformed(..))
            ),
            "{body}"
        );
    }
    for body in [r#"{"v":3,"records":[]}"#, r#"{"v":7}"#] {
        assert!(
            matches!(parse_records(body.as_bytes()), Err(FormatError::Newer(_))),
            "{body}"
        );
    }
}

#[test]
fn records_of_what_is_not_taken_are_counted() {
    let check =
        |body: &str, expected| assert_eq!(count_records(body.as_bytes()), expected, "{body}");
    check(r#"{"v":1,"records":[{},{"x":[1]},7]}"#, 3);
    check(r#"{"records":[]}"#, 0);
    for unknown in ["", "{", "[]", r#"{"v":1}"#, r#"{"records":7}"#] {
        check(unknown, 0);
    }
}

#[test]
fn every_message_is_one_that_sqs_takes() {
    let answer = Some("\u{ffff}\u{fffe}\u{1}\"".to_owned());
    let records = [LogRecord { answer, ..full() }];
    let body = &render_records(&records)[0];
    assert!(fits_into_a_message(body) && !body.contains(&1));
    assert_eq!(parse_records(body).unwrap(), records);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(body: Vec<u8>) {
        let _ = parse_records(&body).is_ok();
    }

    #[test]
    fn any_text_is_read_back(event_id: String, answer: Option<String>, status: Option<u16>) {
        let record = LogRecord { event_id: Some(event_id), answer, status, ..full() };
        let bodies = render_records(std::slice::from_ref(&record));
        prop_assert_eq!(parse_records(&bodies[0]).unwrap(), [record]);
    }
}
