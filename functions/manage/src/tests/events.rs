//! The outcomes of events, asked by id and by lists, over files that the real writer made.

mod found;
mod gaps;
mod lists;
mod one;
mod origins;
mod request;

use posthaste_core::delivery_log::{
    AttemptOrigin, FileKey, FileName, LogHour, LogRecord, LogResult, RecordKind, record_id,
};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{RowGroups, write_file};

use super::Api;
use super::memory::MODIFIED_AT;

/// The time so many minutes before the moment of these tests.
pub(super) fn before(minutes: u64) -> Timestamp {
    let now = Timestamp::parse(MODIFIED_AT).unwrap();
    Timestamp::from_millis(now.as_millis() - minutes * 60_000)
}

/// The first attempt of event `id`, so many minutes ago. It was delivered.
pub(super) fn delivered(id: &str, minutes: u64) -> LogRecord {
    let key = format!("key-of-{id}");
    LogRecord {
        record_id: record_id(id, 1, &key, 1, RecordKind::Attempt, before(minutes)),
        time: before(minutes),
        kind: RecordKind::Attempt,
        topic: "orders".to_owned(),
        subscription: "billing".to_owned(),
        webhook_id: Some(format!("msg_{key}")),
        delivery_key: key,
        event_id: Some(id.to_owned()),
        event_type: Some("order.paid".to_owned()),
        attempt: 1,
        origin: AttemptOrigin::First,
        result: LogResult::Delivered,
        status: Some(200),
        duration_ms: Some(12),
        answer: Some("thanks".to_owned()),
        answer_type: Some("text/plain".to_owned()),
        accepted_at: before(minutes),
        expires_at: before(minutes) + std::time::Duration::from_hours(24),
        ..LogRecord::default()
    }
}

/// The same event, refused with 503 and to be tried again.
pub(super) fn refused(id: &str, minutes: u64) -> LogRecord {
    let record = delivered(id, minutes);
    let next_attempt_at = Some(record.time + std::time::Duration::from_secs(10));
    let reason = Some("Busy".to_owned());
    LogRecord {
        result: LogResult::Retry,
        status: Some(503),
        reason,
        next_attempt_at,
        ..record
    }
}

/// The same as another record.
pub(super) fn another(record: LogRecord, attempt: u16) -> LogRecord {
    let record_id = record_id(
        "another",
        1,
        &record.delivery_key,
        attempt,
        record.kind,
        record.time,
    );
    LogRecord {
        record_id,
        attempt,
        origin: AttemptOrigin::Retry,
        ..record
    }
}

fn key(hour: LogHour, name: &str) -> String {
    FileKey {
        hour,
        name: FileName::Fresh {
            minute: 0,
            id: name.to_owned(),
        },
    }
    .render()
}

/// Writes records into a file of each of their hours. Answers the keys.
pub(super) fn write(api: &Api, name: &str, records: &[LogRecord]) -> Vec<String> {
    let hours: std::collections::BTreeSet<_> = records
        .iter()
        .map(|it| LogHour::containing(it.time))
        .collect();
    let write_hour = |hour: LogHour| {
        let of_hour: Vec<_> = records
            .iter()
            .filter(|it| LogHour::containing(it.time) == hour)
            .cloned()
            .collect();
        api.log.write(
            &key(hour, name),
            write_file(&of_hour, RowGroups::default()).unwrap(),
        );
        key(hour, name)
    };
    hours.into_iter().map(write_hour).collect()
}
