//! The fate of events, from the delivery log: one event by its id, and lists of records.

mod gap;
mod id_in_url;
mod list_time;
mod note;
mod query;
mod record;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{IsoTimestamp, RecoveredOutage};
use crate::delivery_log::{
    AttemptOrigin, DeliveryHistory, DeliveryState, LogRecord, LogResult, RecordPayload,
};
use crate::model::{PAYLOAD_KEPT, Timestamp};

pub use self::gap::{LogGapCause, LogGapView};
pub use self::id_in_url::{EncodedId, EncodedIdError, IdInUrl, is_plain_path};
pub use self::list_time::ListTime;
pub use self::note::LogNote;
pub use self::query::{EventQuery, RecordQuery};
pub use self::record::{RecordPage, RecordView};

/// The word for an attempt that the endpoint accepted, beside the names of outcomes.
const DELIVERED: &str = "Delivered";

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventView {
    /// The event's id.
    #[schema(example = "order-1001")]
    pub id: String,
    /// Where the event is: the least of the states of its deliveries, so that it is `delivered` only
    /// when all of them are. `unmatched` where it matched no subscription. Left out where the log
    /// has no record of the event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<DeliveryState>,
    /// The deliveries of the event, the last accepted first: one for each subscription and, since
    /// ids are the producers' and may repeat, for each event of this id. A replay is a
    /// delivery of its own.
    pub deliveries: Vec<DeliveryView>,
    /// The time up to which the log is complete: records of what happened later may be missing.
    pub complete_until: IsoTimestamp,
    /// Earlier times of which the log may lack records, the oldest first. Left out where there are
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<LogGapView>,
    /// What this answer may lack, and why. Left out where there is nothing to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// An event towards one subscription.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeliveryView {
    /// The key of the delivery, the same over all attempts.
    #[schema(example = "018bcfe568007abc8def0123456789ab-0")]
    pub key: String,
    /// The subscription.
    #[schema(example = "billing")]
    pub subscription: String,
    /// Where the event is: `pending` before the first record of this delivery, `waiting` for its
    /// next attempt, `held` until its endpoint recovers or an operator acts, `delivered`,
    /// `dead-lettered`, or `dropped`. `unknown` is a word of a newer version.
    pub state: DeliveryState,
    /// The reason for which the event was given up. Left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "EndpointGone")]
    pub reason: Option<String>,
    /// The event's source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The event's type.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(example = "com.example.order.paid")]
    pub event_type: Option<String>,
    /// The event's subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The time at which the event was accepted.
    pub accepted_at: IsoTimestamp,
    /// The time at which the event expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<IsoTimestamp>,
    /// The earliest next attempt: its own time, or that of the next probe where requests to the
    /// endpoint pause. Only of an event that waits or is held, and not while the subscription is
    /// not active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<IsoTimestamp>,
    /// The key of the dead-letter object that has the event, for `GET /dead-letters/{key}`. Left
    /// out until the object is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "ORDERS/BILLING/2026/11/21/10/0b8b9c5e-6a0c-4a57-9d0c-3c2a7d1f6f1e.json")]
    pub dead_letter_object: Option<String>,
    /// The time until which the log has the event itself at the longest, so that it can be sent
    /// again. Left out where the log does not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resendable_until: Option<IsoTimestamp>,
    /// The event itself, as its producer wrote it; a custom event in its envelope. Only where it
    /// was asked for and the log has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub payload: Option<RecordPayload>,
    /// The attempts, the oldest first.
    pub attempts: Vec<AttemptView>,
}

/// An attempt to deliver an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptView {
    /// The number of the attempt, from 1.
    pub number: u16,
    /// The end of the attempt.
    pub at: IsoTimestamp,
    /// The time from the beginning of the request to the answer's head, or to the failure, in
    /// milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 87)]
    pub duration_ms: Option<u32>,
    /// The status of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 503)]
    pub status: Option<u16>,
    /// `Delivered`, the name of the failure if the event is tried again, or the reason for which
    /// it was given up.
    #[schema(example = "Busy")]
    pub outcome: String,
    /// The failure in words, where there was no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The first bytes of the answer as text, without secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "try later")]
    pub answer: Option<String>,
    /// The media type of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "text/plain")]
    pub answer_type: Option<String>,
    /// The header `webhook-id` of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<String>,
    /// The origin of the attempt: `first`, `retry`, `replay`, or `resend`. `unknown` is a word of
    /// a newer version.
    pub origin: AttemptOrigin,
    /// The replay that the event came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The outage that this replay recovers from, where it began by itself. Only in the answer about
    /// one event, and as long as the replay's record is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveredOutage>,
    /// The endpoint, without its query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://billing.example.com/hooks")]
    pub endpoint: Option<String>,
}

impl DeliveryView {
    /// A delivery as the log knows it. The log keeps records for `retention`, if that is known.
    pub fn from_history(
        history: &DeliveryHistory,
        retention: Option<Duration>,
        with_payload: bool,
    ) -> Self {
        let first = history.first().clone();
        let was_given_up = matches!(
            history.state,
            DeliveryState::DeadLettered | DeliveryState::Dropped
        );
        let reason = history
            .records()
            .iter()
            .rev()
            .find_map(|record| record.reason.clone());
        Self {
            key: history.key.clone(),
            subscription: history.subscription.clone(),
            state: history.state,
            reason: reason.filter(|_| was_given_up),
            source: first.event_source,
            event_type: first.event_type,
            subject: first.event_subject,
            accepted_at: IsoTimestamp(first.accepted_at),
            expires_at: (first.expires_at > Timestamp::EPOCH)
                .then_some(IsoTimestamp(first.expires_at)),
            next_attempt_at: history.next_attempt_at.map(IsoTimestamp),
            dead_letter_object: history.dead_letter_object.clone(),
            resendable_until: retention
                .and_then(|it| resendable_until(history, it))
                .map(IsoTimestamp),
            payload: history.payload.clone().filter(|_| with_payload),
            attempts: history.attempts().map(AttemptView::from).collect(),
        }
    }
}

/// The time until which the log has a payload or its reference, and what is referenced is kept.
fn resendable_until(history: &DeliveryHistory, retention: Duration) -> Option<Timestamp> {
    let mut records = history.records().iter();
    let record =
        records.find(|record| record.payload.is_some() || record.payload_reference.is_some())?;
    let logged = record.time + retention;
    let is_referenced = record.payload.is_none();
    Some(if is_referenced {
        logged.min(record.accepted_at + PAYLOAD_KEPT)
    } else {
        logged
    })
}

impl From<&LogRecord> for AttemptView {
    fn from(record: &LogRecord) -> Self {
        let LogRecord {
            attempt,
            time,
            duration_ms,
            status,
            origin,
            ..
        } = *record;
        let record = record.clone();
        let is_delivered = record.result == LogResult::Delivered;
        let outcome = record.reason.filter(|_| !is_delivered);
        let otherwise = if is_delivered {
            DELIVERED
        } else {
            record.result.as_str()
        };
        Self {
            number: attempt,
            at: IsoTimestamp(time),
            duration_ms,
            status,
            outcome: outcome.unwrap_or_else(|| otherwise.to_owned()),
            error: record.error,
            answer: record.answer,
            answer_type: record.answer_type,
            webhook_id: record.webhook_id,
            origin,
            run_id: record.run_id,
            recovery: None,
            endpoint: record.endpoint,
        }
    }
}

#[cfg(test)]
mod tests;
