//! The message of records, in the queue of records.
//!
//! Version 2; written by deliver and deadletter, read by record. Messages live until record has
//! written their records. Fixtures: `records-v1.json` and `records-v2.json`; they are never edited.
//! A new member of a record raises no version: an older reader passes it over, and the log has no
//! value for it. A new schema of events does, because a reader that does not know it finds no names
//! in a payload.
//!
//! Version 2 does not say twice what a payload says. A record with its payload may lack the event's
//! names, which are read from it. Deliveries of one event to several subscriptions have the same
//! payload, and a message mostly has it once. A message without payloads is still of version 1, so
//! that an older reader takes it.

mod body;

use std::mem::take;

use bytes::Bytes;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use self::body::{MessageBody, SamePayload};
use super::LogRecord;
use crate::model::{FormatError, StoredFormat, escape_refused, fits_into_a_message};

/// The newest version that this program reads.
pub const RECORDS_VERSION: u32 = 2;

const FORMAT: StoredFormat = StoredFormat {
    name: "a message of records",
    newest: RECORDS_VERSION,
};

/// Room for the members of a usual record, in bytes.
const MEMBERS_BYTES_USUAL: usize = 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RecordsWire {
    v: u32,
    records: Vec<LogRecord>,
    #[serde(default)]
    same_payloads: Vec<SamePayload>,
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
    pub(super) fn new(
        members: &impl Serialize,
        payload: Option<Bytes>,
    ) -> Result<Self, serde_json::Error> {
        let mut json = Vec::with_capacity(MEMBERS_BYTES_USUAL);
        serde_json::to_writer(&mut json, members)?;
        json.pop();
        Ok(Self {
            members: escape_for_sqs(json),
            payload: payload.map(escape_for_sqs),
        })
    }

    /// The bytes that it takes in a message with its payload.
    pub fn byte_len(&self) -> usize {
        let (members, payload) = self.members_and_payload();
        body::record_bytes(members, payload)
    }

    fn members_and_payload(&self) -> (&[u8], Option<&[u8]>) {
        (&self.members, self.payload.as_deref())
    }
}

/// Renders records as the bodies of as few messages as fit, in order, each at most
/// [`RECORDS_MESSAGE_BYTES_MAX`](crate::model::RECORDS_MESSAGE_BYTES_MAX) long. A record that is
/// larger alone, which none of ours is, makes a message of its own.
pub fn render_records(records: &[LogRecord]) -> Vec<Bytes> {
    let texts: Vec<_> = records
        .iter()
        .filter_map(|record| RecordText::new(record, None).ok())
        .collect();
    join_records(texts.iter())
}

/// The same of records that are rendered already. A payload that several of them have is in a
/// message once.
pub fn join_records<'a>(records: impl Iterator<Item = &'a RecordText>) -> Vec<Bytes> {
    let mut bodies = Vec::new();
    let mut body = MessageBody::default();
    for (members, payload) in records.map(RecordText::members_and_payload) {
        if !body.add_record(members, payload) {
            bodies.push(take(&mut body).render());
            body.add_record(members, payload);
        }
    }
    if !body.is_empty() {
        bodies.push(body.render());
    }
    bodies
}

/// Reads the records of a message.
pub fn parse_records(body: &[u8]) -> Result<Vec<LogRecord>, FormatError> {
    let RecordsWire {
        mut records,
        same_payloads,
        ..
    } = FORMAT.parse(body, |wire: &RecordsWire| wire.v)?;
    records.iter_mut().for_each(LogRecord::read_names);
    for SamePayload(position, earlier) in same_payloads {
        match records.get_disjoint_mut([position, earlier]) {
            Ok([record, other]) if earlier < position && other.payload.is_some() => {
                record.take_payload_of(other);
            }
            _ => {
                return Err(FORMAT
                    .malformed_error("expected in samePayloads a record, and one with a payload"));
            }
        }
    }
    if records.iter().any(|record| record.record_id.is_empty()) {
        return Err(FORMAT.malformed_error("expected a record id in every record"));
    }
    Ok(records)
}

/// The number of records that a message has which [`parse_records`] does not take, as far as it
/// shows.
pub fn count_records(body: &[u8]) -> usize {
    serde_json::from_slice(body).map_or(0, |wire: CountedWire| wire.records.len())
}

/// JSON without any character that SQS refuses.
fn escape_for_sqs<T: AsRef<[u8]> + From<String>>(json: T) -> T {
    if fits_into_a_message(json.as_ref()) {
        return json;
    }
    let escaped = std::str::from_utf8(json.as_ref()).map(|text| escape_refused(text).into_owned());
    escaped.map_or(json, T::from)
}

#[cfg(test)]
mod tests;
