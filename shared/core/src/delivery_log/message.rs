//! The message of records, in the queue of records.
//!
//! Version 2; written by deliver, read by record. Messages live until record has written their records, and
//! at most for the queue's retention. Fixtures: `records-v1.json` and `records-v2.json`; they are never
//! edited. A new member of a record raises no version: an older reader passes it over, and the log has no
//! value for it.
//!
//! Deliveries of one event to several subscriptions have the same payload. Version 2 writes it once in a
//! message. A message without such records is still of version 1, so that an older reader takes it.

use std::collections::VecDeque;
use std::mem::take;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::Record;
use crate::events::{escape_refused, fits_into_a_message};
use crate::model::RECORDS_MESSAGE_BYTES_MAX;
use crate::stored::{Format, FormatError};

/// The newest version that this program reads.
pub const RECORDS_VERSION: u32 = 2;

const FORMAT: Format = Format { name: "a message of records", newest: RECORDS_VERSION };

const OPENING: &[u8] = b"{\"v\":1,\"records\":[";
const OPENING_SHARED: &[u8] = b"{\"v\":2,\"records\":[";
const SEPARATOR: &[u8] = b",";
const SAME_PAYLOADS: &[u8] = b"],\"samePayloads\":";
const CLOSING: &[u8] = b"]}";

/// Most bytes of the records in a message, each with a separator; the first needs none.
const RECORDS_BYTES_MAX: usize =
    RECORDS_MESSAGE_BYTES_MAX - OPENING.len() - SAME_PAYLOADS.len() - CLOSING.len() + SEPARATOR.len();

const CLOSING_BRACE: &[u8] = b"}";
const PAYLOAD_NAME: &[u8] = b",\"payload\":";

/// Most bytes of a pair in `samePayloads`, with its separator: a message has less than 100,000 records.
const PAIR_BYTES_MAX: usize = "[12345,12345],".len();

/// The number of different payloads that a record's payload is compared with, from the newest on. The copies
/// of an event arrive close together.
const COMPARED_PAYLOADS_MAX: usize = 16;

/// Room for the members of a usual record, in bytes.
const MEMBERS_BYTES_USUAL: usize = 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordsWire {
    v: u32,
    records: Vec<Record>,
    #[serde(default)]
    same_payloads: Vec<SamePayload>,
}

/// The position of a record that comes without its payload, and of an earlier one with the same payload.
#[derive(Serialize, Deserialize)]
struct SamePayload(usize, usize);

#[derive(Deserialize)]
struct CountedWire {
    records: Vec<IgnoredAny>,
}

/// A record as JSON, on its way into a message.
#[derive(Debug, Clone)]
pub struct RecordText {
    /// The object without its closing brace.
    members: Vec<u8>,
    /// One more member, which comes last.
    payload: Option<Bytes>,
}

impl RecordText {
    /// Renders the members of a record. `payload` is valid JSON and not among them.
    pub(super) fn new(members: &impl Serialize, payload: Option<Bytes>) -> Result<Self, serde_json::Error> {
        let mut json = Vec::with_capacity(MEMBERS_BYTES_USUAL);
        serde_json::to_writer(&mut json, members)?;
        json.pop();
        Ok(Self { members: fit(json), payload: payload.map(fit) })
    }

    /// The bytes that it takes in a message with its payload.
    pub fn bytes(&self) -> usize {
        self.members.len() + self.payload.as_deref().map_or(0, payload_bytes) + CLOSING_BRACE.len()
    }
}

fn payload_bytes(payload: &[u8]) -> usize {
    PAYLOAD_NAME.len() + payload.len()
}

/// Renders records as the bodies of as few messages as fit, each at most [`RECORDS_MESSAGE_BYTES_MAX`] long,
/// in order. A record that is larger alone, which none of ours is, makes a message of its own.
pub fn render_records(records: &[Record]) -> Vec<Bytes> {
    let texts: Vec<_> = records.iter().filter_map(|record| RecordText::new(record, None).ok()).collect();
    join_records(texts.iter())
}

/// The same of records that are rendered already. A payload that several of them have is in a message once.
pub fn join_records<'a>(records: impl Iterator<Item = &'a RecordText>) -> Vec<Bytes> {
    let (mut bodies, mut message) = (Vec::new(), Message::default());
    for record in records {
        if !message.add(record) {
            bodies.push(take(&mut message).render());
            message.add(record);
        }
    }
    if !message.records.is_empty() {
        bodies.push(message.render());
    }
    bodies
}

/// A message that is being filled.
#[derive(Default)]
struct Message<'a> {
    /// The members of each record, and its payload where no earlier record has it.
    records: Vec<(&'a [u8], Option<&'a [u8]>)>,
    same_payloads: Vec<SamePayload>,
    /// The latest different payloads, and the positions of their records.
    payloads: VecDeque<(&'a [u8], usize)>,
    /// The bytes of the records with their separators, and of the pairs.
    bytes: usize,
}

impl<'a> Message<'a> {
    /// Adds a record. `false` if there is no room for it; the first has room in any case.
    fn add(&mut self, record: &'a RecordText) -> bool {
        let (position, payload) = (self.records.len(), record.payload.as_deref());
        let earlier = payload.and_then(|payload| self.earlier(payload));
        let for_payload = if earlier.is_some() { PAIR_BYTES_MAX } else { payload.map_or(0, payload_bytes) };
        let bytes = record.members.len() + for_payload + CLOSING_BRACE.len() + SEPARATOR.len();
        if position > 0 && self.bytes + bytes > RECORDS_BYTES_MAX {
            return false;
        }
        if let Some(earlier) = earlier {
            self.same_payloads.push(SamePayload(position, earlier));
        } else if let Some(payload) = payload {
            self.remember(payload, position);
        }
        self.records.push((&record.members, payload.filter(|_| earlier.is_none())));
        self.bytes += bytes;
        true
    }

    /// The position of an earlier record with this payload.
    fn earlier(&self, payload: &[u8]) -> Option<usize> {
        let same = self.payloads.iter().rev().find(|(other, _)| *other == payload);
        same.map(|(_, position)| *position)
    }

    fn remember(&mut self, payload: &'a [u8], position: usize) {
        if self.payloads.len() == COMPARED_PAYLOADS_MAX {
            self.payloads.pop_front();
        }
        self.payloads.push_back((payload, position));
    }

    fn render(self) -> Bytes {
        let is_shared = !self.same_payloads.is_empty();
        let mut body = Vec::with_capacity(RECORDS_MESSAGE_BYTES_MAX - RECORDS_BYTES_MAX + self.bytes);
        let opening = if is_shared { OPENING_SHARED } else { OPENING };
        for (index, (members, payload)) in self.records.into_iter().enumerate() {
            body.extend_from_slice(if index == 0 { opening } else { SEPARATOR });
            body.extend_from_slice(members);
            if let Some(payload) = payload {
                body.extend_from_slice(PAYLOAD_NAME);
                body.extend_from_slice(payload);
            }
            body.extend_from_slice(CLOSING_BRACE);
        }
        if is_shared {
            body.extend_from_slice(SAME_PAYLOADS);
            // Numbers always have a JSON text, and memory takes every byte.
            let _ = serde_json::to_writer(&mut body, &self.same_payloads);
            body.extend_from_slice(CLOSING_BRACE);
        } else {
            body.extend_from_slice(CLOSING);
        }
        body.into()
    }
}

/// Reads the records of a message.
pub fn parse_records(body: &[u8]) -> Result<Vec<Record>, FormatError> {
    let RecordsWire { mut records, same_payloads, .. } = FORMAT.parse(body, |wire: &RecordsWire| wire.v)?;
    for SamePayload(position, earlier) in same_payloads {
        let payload = records.get(earlier).and_then(|record| record.payload.clone());
        match (records.get_mut(position), payload) {
            (Some(record), Some(payload)) => record.payload = Some(payload),
            _ => return Err(FORMAT.malformed("expected in samePayloads a record, and one with a payload")),
        }
    }
    if records.iter().any(|record| record.record_id.is_empty()) {
        return Err(FORMAT.malformed("expected a record id in every record"));
    }
    Ok(records)
}

/// The number of records that a message has which [`parse_records`] does not take, as far as it shows.
pub fn count_records(body: &[u8]) -> usize {
    serde_json::from_slice(body).map_or(0, |wire: CountedWire| wire.records.len())
}

/// JSON without any character that SQS refuses.
fn fit<T: AsRef<[u8]> + From<String>>(json: T) -> T {
    if fits_into_a_message(json.as_ref()) {
        return json;
    }
    let escaped = std::str::from_utf8(json.as_ref()).map(|text| escape_refused(text).into_owned());
    escaped.map_or(json, T::from)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::full;
    use super::*;
    use crate::delivery_log::{Kind, LogResult, Payload};
    use proptest::prelude::*;

    /// Version 1 as it was first written. Never edited.
    const RECORDS_V1: &str = include_str!("fixtures/records-v1.json");

    /// Version 2 as it was first written. Never edited.
    const RECORDS_V2: &str = include_str!("fixtures/records-v2.json");

    fn short() -> Record {
        let (kind, result) = (Kind::Held, LogResult::Held);
        let record_id = "0".repeat(32);
        Record { record_id, kind, result, topic: "orders".to_owned(), ..Record::default() }
    }

    #[test]
    fn records_are_written_as_their_fixture_and_read_back() {
        let records = vec![full(), short()];
        let bodies = render_records(&records);
        assert_eq!(bodies, [RECORDS_V1.trim_end()]);
        assert_eq!(parse_records(RECORDS_V1.as_bytes()).unwrap(), records);
    }

    /// A record as deliver makes it, with its payload apart.
    fn text(record_id: &str, payload: &str) -> RecordText {
        let record = Record { record_id: record_id.to_owned(), ..short() };
        RecordText::new(&record, Some(Bytes::copy_from_slice(payload.as_bytes()))).unwrap()
    }

    fn read(bodies: &[Bytes]) -> Vec<(String, String)> {
        let records = bodies.iter().flat_map(|body| parse_records(body).unwrap());
        records.map(|it| (it.record_id, it.payload.unwrap().as_str().to_owned())).collect()
    }

    #[test]
    fn a_payload_that_records_share_is_written_once() {
        let of = [("a", "{\"n\":1}"), ("b", "{\"n\":2}"), ("c", "{\"n\":1}"), ("d", "{\"n\":2}"), ("e", "3")];
        let texts: Vec<_> = of.iter().map(|(id, payload)| text(id, payload)).collect();
        let bodies = join_records(texts.iter());
        assert_eq!(bodies, [RECORDS_V2.trim_end()]);
        assert_eq!(read(&bodies), of.map(|(id, payload)| (id.to_owned(), payload.to_owned())));
        assert!(join_records(texts[..2].iter())[0].starts_with(OPENING), "an older reader takes it");
    }

    #[test]
    fn records_with_the_same_payload_fill_a_message_to_its_limit() {
        let payload = format!("\"{}\"", "x".repeat(60_000));
        let texts: Vec<_> = (0..8_000).map(|n| text(&n.to_string(), &payload)).collect();
        let bodies = join_records(texts.iter());
        assert!(bodies.iter().all(|body| body.len() <= RECORDS_MESSAGE_BYTES_MAX));
        assert!(bodies[0].len() > RECORDS_MESSAGE_BYTES_MAX - 30_000 && bodies.len() < 4, "{}", bodies.len());
        assert_eq!(read(&bodies).len(), 8_000);
        assert!(read(&bodies).iter().all(|(_, read)| *read == payload));
    }

    #[test]
    fn no_records_make_no_message() {
        assert_eq!(render_records(&[]), Vec::<Bytes>::new());
    }

    #[test]
    fn as_few_messages_as_fit_hold_all_records_in_order() {
        let payload = Payload::parse(&format!("\"{}\"", "x".repeat(60_000)));
        let records: Vec<_> = (0..40)
            .map(|n| Record { record_id: n.to_string(), payload: payload.clone(), ..full() })
            .collect();
        let bodies = render_records(&records);
        assert_eq!(bodies.len(), 3);
        assert!(bodies.iter().all(|body| body.len() <= RECORDS_MESSAGE_BYTES_MAX));
        let read: Vec<_> = bodies.iter().flat_map(|body| parse_records(body).unwrap()).collect();
        assert_eq!(read, records);
    }

    #[test]
    fn a_member_of_a_newer_program_is_passed_over_and_a_missing_one_has_its_default() {
        let newer =
            r#"{"v":1,"extra":1,"records":[{"recordId":"a","colour":{"x":[]},"result":"teleported"}]}"#;
        let expected = Record { record_id: "a".to_owned(), ..Record::default() };
        assert_eq!(parse_records(newer.as_bytes()).unwrap(), [expected]);
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_newer() {
        let same = |pair| format!(r#"{{"v":2,"records":[{{"recordId":"a"}}],"samePayloads":[{pair}]}}"#);
        let same = ["[0,0]", "[0,1]", "[1,0]", "[0]", "[-1,0]"].map(same);
        let others = ["", "{}", "[]", r#"{"v":1}"#, r#"{"v":1,"records":[{}]}"#];
        for body in others.into_iter().chain(same.iter().map(String::as_str)) {
            assert!(matches!(parse_records(body.as_bytes()), Err(FormatError::Malformed(..))), "{body}");
        }
        for body in [r#"{"v":3,"records":[]}"#, r#"{"v":7}"#] {
            assert!(matches!(parse_records(body.as_bytes()), Err(FormatError::Newer(_))), "{body}");
        }
    }

    #[test]
    fn records_of_what_is_not_taken_are_counted() {
        let check = |body: &str, expected| assert_eq!(count_records(body.as_bytes()), expected, "{body}");
        check(r#"{"v":1,"records":[{},{"x":[1]},7]}"#, 3);
        check(r#"{"records":[]}"#, 0);
        for unknown in ["", "{", "[]", r#"{"v":1}"#, r#"{"records":7}"#] {
            check(unknown, 0);
        }
    }

    #[test]
    fn every_message_is_one_that_sqs_takes() {
        let answer = Some("\u{ffff}\u{fffe}\u{1}\"".to_owned());
        let records = [Record { answer, ..full() }];
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
            let record = Record { event_id: Some(event_id), answer, status, ..full() };
            let bodies = render_records(std::slice::from_ref(&record));
            prop_assert_eq!(parse_records(&bodies[0]).unwrap(), [record]);
        }
    }
}
