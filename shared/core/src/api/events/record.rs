//! Records of the log as rows of a list.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::gap::LogGapView;
use crate::api::IsoTimestamp;
use crate::delivery_log::{AttemptOrigin, LogRecord, LogResult, RecordKind};

/// One page of records of the delivery log, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordPage {
    /// The records.
    pub records: Vec<RecordView>,
    /// The time up to which the log is complete: records of what happened later may be missing.
    pub complete_until: IsoTimestamp,
    /// Earlier times of which the log may lack records, the oldest first. Left out where there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<LogGapView>,
    /// What this page may lack, and why. Left out where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The beginning of the next page: send it as `cursor`. Left out on the last page. A page may
    /// be short or empty and still have one, because a request reads a bounded part of the
    /// log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The time back to which was searched. Left out on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_back_to: Option<IsoTimestamp>,
}

/// A record of the delivery log: an attempt, or a change of an event without one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordView {
    /// The id of the record.
    #[schema(example = "5b1f6f6a0c2d4e8f9a7b3c1d2e4f6a8b")]
    pub record_id: String,
    /// The end of the attempt, or the time of the change.
    pub time: IsoTimestamp,
    /// An attempt, or which change: `accepted`, `waiting`, `held`, `answered-late`, `expired`,
    /// `given-up`, `dead-lettered`, `dropped`. `unknown` is a word of a newer version.
    pub kind: RecordKind,
    /// The event's id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "order-1001")]
    pub id: Option<String>,
    /// The subscription. Empty where an event was `accepted`, for all subscriptions that it matches.
    #[schema(example = "billing")]
    pub subscription: String,
    /// The event's type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(example = "com.example.order.paid")]
    pub event_type: Option<String>,
    /// Where the event is after it: `delivered`, `pending` for the subscriptions that it matches,
    /// `unmatched`, to be tried again (`retry`), `held`, `dead-lettered`, or `dropped`. `unknown` is
    /// a word of a newer version.
    pub result: LogResult,
    /// The name of the failure if the event is tried again, or the reason for which it was given
    /// up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "Busy")]
    pub reason: Option<String>,
    /// The status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 503)]
    pub status: Option<u16>,
    /// The failure in words, where there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The time from the beginning of the request to the answer's head, or to the failure, in
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 87)]
    pub duration_ms: Option<u32>,
    /// The number of the attempt, from 1. For a change, the number of attempts before it.
    pub attempt: u16,
    /// The origin of the attempt: `first`, `retry`, `replay`, or `resend`. `unknown` is a word of
    /// a newer version.
    pub origin: AttemptOrigin,
    /// The replay that the event came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The header `webhook-id` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// The earliest next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<IsoTimestamp>,
    /// The key of the delivery, the same over all attempts.
    #[schema(example = "018bcfe568007abc8def0123456789ab-0")]
    pub key: String,
    /// The time at which the event was accepted.
    pub accepted_at: IsoTimestamp,
    /// The key of the dead-letter object that has the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_object: Option<String>,
    /// The endpoint, without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://billing.example.com/hooks")]
    pub endpoint: Option<String>,
    /// The first bytes of the answer as text, without secrets. Only in lists of attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "try later")]
    pub answer: Option<String>,
    /// The media type of the answer. Only in lists of attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "text/plain")]
    pub answer_type: Option<String>,
}

impl From<LogRecord> for RecordView {
    fn from(record: LogRecord) -> Self {
        Self {
            record_id: record.record_id,
            time: IsoTimestamp(record.time),
            kind: record.kind,
            id: record.event_id,
            subscription: record.subscription,
            event_type: record.event_type,
            result: record.result,
            reason: record.reason,
            status: record.status,
            error: record.error,
            duration_ms: record.duration_ms,
            attempt: record.attempt,
            origin: record.origin,
            run_id: record.run_id,
            webhook_id: record.webhook_id,
            next_attempt_at: record.next_attempt_at.map(IsoTimestamp),
            key: record.delivery_key,
            accepted_at: IsoTimestamp(record.accepted_at),
            dead_letter_object: record.dead_letter_object,
            endpoint: record.endpoint,
            answer: record.answer,
            answer_type: record.answer_type,
        }
    }
}

impl RecordView {
    /// The same without the answer.
    #[must_use]
    pub fn without_answer(self) -> Self {
        Self {
            answer: None,
            answer_type: None,
            ..self
        }
    }
}
