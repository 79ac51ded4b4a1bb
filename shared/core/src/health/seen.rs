//! Tries as deliver sees them, and as the delivery log has them.

use std::time::Duration;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

use crate::attempt::EntryVerdict;
use crate::delivery_log::{LogRecord, LogResult, RecordKind};
use crate::model::{DeadLetterReason, Delivery, OutcomeName, Timestamp};

/// The result of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryResult {
    /// The event arrived.
    Arrived,
    /// The endpoint did not take it.
    Failed {
        /// The failure's name, where it is known.
        outcome: Option<OutcomeName>,
        /// The status, where there was one.
        status: Option<u16>,
        /// Whether the event was given up.
        is_last: bool,
    },
    /// The event was not tried, and waits.
    Waits,
    /// The event was given up for a reason of its own, such as a subscription that was deleted.
    Ended,
}

/// A try of an event.
#[derive(Debug, Clone, Copy)]
pub struct SeenTry<'a> {
    /// The key of the delivery: one event towards one subscription.
    pub key: &'a str,
    /// The time at which the event was accepted, or released if it was published for later.
    pub accepted_at: Timestamp,
    /// The time of the try.
    pub at: Timestamp,
    /// Whether the event was neither tried nor handed back before.
    pub is_first: bool,
    /// The result of the try.
    pub result: TryResult,
}

impl<'a> SeenTry<'a> {
    /// The try of an event of a delivery. `None` if nothing became of it, and it is not older than
    /// `delayed_after`.
    pub fn from_verdict(
        delivery: &'a Delivery,
        key: &'a str,
        verdict: EntryVerdict,
        now: Timestamp,
        delayed_after: Duration,
    ) -> Option<Self> {
        let accepted_at = delivery.begins_at();
        let is_late = now >= accepted_at + delayed_after;
        let result = match verdict {
            EntryVerdict::Delivered => TryResult::Arrived,
            EntryVerdict::Retry { last, .. } => TryResult::Failed {
                outcome: Some(last.outcome),
                status: last.status,
                is_last: false,
            },
            EntryVerdict::GiveUp { reason, last: None }
                if reason != DeadLetterReason::TimeToLiveExceeded =>
            {
                TryResult::Ended
            }
            EntryVerdict::GiveUp { last, .. } => TryResult::Failed {
                outcome: last.map(|last| last.outcome),
                status: last.and_then(|last| last.status),
                is_last: true,
            },
            EntryVerdict::Cancelled => TryResult::Ended,
            EntryVerdict::NotStarted | EntryVerdict::Postponed { .. } | EntryVerdict::Held => {
                is_late.then_some(TryResult::Waits)?
            }
        };
        Some(Self {
            key,
            accepted_at,
            at: now,
            is_first: delivery.attempts == 0 && !is_late,
            result,
        })
    }

    /// The try that a record of the delivery log is about; `None` if it is about none. A record
    /// without an attempt has the number of those before it.
    pub fn from_record(record: &'a LogRecord, delayed_after: Duration) -> Option<Self> {
        let accepted_at = record.released_at.unwrap_or(record.accepted_at);
        let is_late = record.time >= accepted_at + delayed_after;
        let result = match (record.kind, record.result) {
            (RecordKind::Attempt | RecordKind::AnsweredLate, LogResult::Delivered) => {
                TryResult::Arrived
            }
            (RecordKind::Attempt, LogResult::Retry) => TryResult::Failed {
                outcome: record.reason.as_deref().and_then(parse_outcome),
                status: record.status,
                is_last: false,
            },
            (
                RecordKind::Attempt | RecordKind::Expired,
                LogResult::DeadLettered | LogResult::Dropped,
            ) => TryResult::Failed {
                outcome: record.reason.as_deref().and_then(parse_outcome),
                status: record.status,
                is_last: true,
            },
            (RecordKind::GivenUp, _) => TryResult::Ended,
            (RecordKind::Held, _) if is_late => TryResult::Waits,
            _ => return None,
        };
        Some(Self {
            key: &record.delivery_key,
            accepted_at,
            at: record.time,
            is_first: record.attempt <= u16::from(record.kind == RecordKind::Attempt) && !is_late,
            result,
        })
    }
}

/// The outcome of this name. A dead letter's reason is none.
fn parse_outcome(name: &str) -> Option<OutcomeName> {
    let name: StrDeserializer<'_, Error> = name.into_deserializer();
    OutcomeName::deserialize(name).ok()
}
