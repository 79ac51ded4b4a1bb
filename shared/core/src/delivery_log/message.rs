//! The message of records, in the queue of records.
//!
//! Version 1; written by deliver, read by record. Messages live until record has written their records, and
//! at most for the queue's retention. Fixture: `records-v1.json`; it is never edited. A new member of a
//! record raises no version: an older reader passes it over, and the log has no value for it.

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::Record;
use crate::events::{escape_refused, fits_into_a_message};
use crate::model::RECORDS_MESSAGE_BYTES_MAX;
use crate::stored::{Format, FormatError};

/// The newest version that this program reads.
pub const RECORDS_VERSION: u32 = 1;

const FORMAT: Format = Format { name: "a message of records", newest: RECORDS_VERSION };

const OPENING: &[u8] = b"{\"v\":1,\"records\":[";
const SEPARATOR: &[u8] = b",";
const CLOSING: &[u8] = b"]}";

/// Most bytes of the records in a message, each with a separator; the first needs none.
const RECORDS_BYTES_MAX: usize = RECORDS_MESSAGE_BYTES_MAX - OPENING.len() - CLOSING.len() + SEPARATOR.len();

const PAYLOAD_NAME: &[u8] = b",\"payload\":";

/// Room for the members of a usual record, in bytes.
const MEMBERS_BYTES_USUAL: usize = 1024;

#[derive(Deserialize)]
struct RecordsWire {
    v: u32,
    records: Vec<Record>,
}

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

    /// The bytes that it takes in a message.
    pub fn bytes(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum::<usize>() + 1
    }

    fn parts(&self) -> [&[u8]; 4] {
        let payload = self.payload.as_deref();
        [&self.members, payload.map_or(b"", |_| PAYLOAD_NAME), payload.unwrap_or_default(), b"}"]
    }
}

/// Renders records as the bodies of as few messages as fit, each at most [`RECORDS_MESSAGE_BYTES_MAX`] long,
/// in order. A record that is larger alone, which none of ours is, makes a message of its own.
pub fn render_records(records: &[Record]) -> Vec<Bytes> {
    let texts: Vec<_> = records.iter().filter_map(|record| RecordText::new(record, None).ok()).collect();
    join_records(texts.iter())
}

/// The same of records that are rendered already.
pub fn join_records<'a>(records: impl Iterator<Item = &'a RecordText>) -> Vec<Bytes> {
    let (mut bodies, mut some, mut bytes) = (Vec::new(), Vec::new(), 0);
    for record in records {
        let more = record.bytes() + SEPARATOR.len();
        if !some.is_empty() && bytes + more > RECORDS_BYTES_MAX {
            bodies.push(join(&some, bytes));
            (some, bytes) = (Vec::new(), 0);
        }
        some.push(record);
        bytes += more;
    }
    if !some.is_empty() {
        bodies.push(join(&some, bytes));
    }
    bodies
}

/// One message of records, which take so many bytes with their separators.
fn join(records: &[&RecordText], bytes: usize) -> Bytes {
    let mut body = Vec::with_capacity(OPENING.len() + bytes + CLOSING.len());
    for (index, record) in records.iter().enumerate() {
        body.extend_from_slice(if index == 0 { OPENING } else { SEPARATOR });
        record.parts().into_iter().for_each(|part| body.extend_from_slice(part));
    }
    body.extend_from_slice(CLOSING);
    body.into()
}

/// Reads the records of a message.
pub fn parse_records(body: &[u8]) -> Result<Vec<Record>, FormatError> {
    let records = FORMAT.parse(body, |wire: &RecordsWire| wire.v)?.records;
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
        for body in ["", "{}", "[]", r#"{"v":1}"#, r#"{"v":1,"records":[{}]}"#] {
            assert!(matches!(parse_records(body.as_bytes()), Err(FormatError::Malformed(..))), "{body}");
        }
        for body in [r#"{"v":2,"records":[]}"#, r#"{"v":7}"#] {
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
