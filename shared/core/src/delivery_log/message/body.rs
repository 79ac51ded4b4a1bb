//! The body of a message while records are added to it.

use std::collections::VecDeque;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::RECORDS_MESSAGE_BYTES_MAX;

const OPENING_V1: &[u8] = b"{\"v\":1,\"records\":[";
const OPENING_V2: &[u8] = b"{\"v\":2,\"records\":[";
const SEPARATOR: &[u8] = b",";
const PAYLOAD_NAME: &[u8] = b",\"payload\":";
const SAME_PAYLOADS: &[u8] = b"],\"samePayloads\":";
const CLOSING_BRACE: &[u8] = b"}";
const CLOSING: &[u8] = b"]}";

/// Bytes around the records of a message, at most. The first record needs no separator.
const FRAME_BYTES: usize = OPENING_V2.len() + SAME_PAYLOADS.len() + CLOSING.len() - SEPARATOR.len();

/// Most bytes of a pair in `samePayloads`, with its separator: a message has fewer than 100,000
/// records.
const PAIR_BYTES_MAX: usize = "[12345,12345],".len();

/// Most bytes of the records of a message, if each had its payload: record holds them all, and
/// writes them into one file.
const UNSHARED_BYTES_MAX: usize = 2 * RECORDS_MESSAGE_BYTES_MAX;

/// The number of different payloads that a record's payload is compared with, from the newest on.
/// The copies of an event arrive close together.
const COMPARED_PAYLOADS_MAX: usize = 16;

/// The position of a record that comes without its payload, and of an earlier one with the same
/// payload.
#[derive(Serialize, Deserialize)]
pub(super) struct SamePayload(pub(super) usize, pub(super) usize);

/// Records that fit into one message.
#[derive(Default)]
pub(super) struct MessageBody<'a> {
    /// The members of each record, and its payload where no earlier record has it.
    records: Vec<(&'a [u8], Option<&'a [u8]>)>,
    same_payloads: Vec<SamePayload>,
    /// The latest different payloads, and the positions of their records.
    payloads: VecDeque<(&'a [u8], usize)>,
    /// The bytes of the records with their separators, and of the pairs.
    bytes: usize,
    /// The bytes of the records if each had its payload.
    unshared_bytes: usize,
}

impl<'a> MessageBody<'a> {
    /// Adds a record. `false` if there is no room for it; the first has room in any case.
    pub(super) fn add_record(&mut self, members: &'a [u8], payload: Option<&'a [u8]>) -> bool {
        let position = self.records.len();
        let earlier = payload.and_then(|payload| self.earlier_position(payload));
        let written = payload.filter(|_| earlier.is_none());
        let pair_bytes = earlier.map_or(0, |_| PAIR_BYTES_MAX);
        let bytes = record_bytes(members, written) + SEPARATOR.len() + pair_bytes;
        let unshared_bytes = self.unshared_bytes + record_bytes(members, payload);
        let is_too_long = FRAME_BYTES + self.bytes + bytes > RECORDS_MESSAGE_BYTES_MAX;
        if position > 0 && (is_too_long || unshared_bytes > UNSHARED_BYTES_MAX) {
            return false;
        }
        self.same_payloads
            .extend(earlier.map(|earlier| SamePayload(position, earlier)));
        if let Some(payload) = written {
            self.remember_payload(payload, position);
        }
        self.records.push((members, written));
        self.bytes += bytes;
        self.unshared_bytes = unshared_bytes;
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The position of an earlier record with this payload.
    fn earlier_position(&self, payload: &[u8]) -> Option<usize> {
        let same = self
            .payloads
            .iter()
            .rev()
            .find(|(other, _)| *other == payload);
        same.map(|(_, position)| *position)
    }

    fn remember_payload(&mut self, payload: &'a [u8], position: usize) {
        if self.payloads.len() == COMPARED_PAYLOADS_MAX {
            self.payloads.pop_front();
        }
        self.payloads.push_back((payload, position));
    }

    pub(super) fn render(self) -> Bytes {
        let mut body = Vec::with_capacity(FRAME_BYTES + self.bytes);
        let opening = if self.payloads.is_empty() {
            OPENING_V1
        } else {
            OPENING_V2
        };
        for (index, (members, payload)) in self.records.into_iter().enumerate() {
            body.extend_from_slice(if index == 0 { opening } else { SEPARATOR });
            body.extend_from_slice(members);
            if let Some(payload) = payload {
                body.extend_from_slice(PAYLOAD_NAME);
                body.extend_from_slice(payload);
            }
            body.extend_from_slice(CLOSING_BRACE);
        }
        if self.same_payloads.is_empty() {
            body.extend_from_slice(CLOSING);
        } else {
            body.extend_from_slice(SAME_PAYLOADS);
            // Numbers always have a JSON text, and memory takes every byte.
            let _ = serde_json::to_writer(&mut body, &self.same_payloads);
            body.extend_from_slice(CLOSING_BRACE);
        }
        body.into()
    }
}

/// The bytes of a record in a message, with its payload if that is written there.
pub(super) fn record_bytes(members: &[u8], payload: Option<&[u8]>) -> usize {
    let payload = payload.map_or(0, |payload| PAYLOAD_NAME.len() + payload.len());
    members.len() + payload + CLOSING_BRACE.len()
}
