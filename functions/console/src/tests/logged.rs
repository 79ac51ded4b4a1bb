//! A topic with a subscription, and records of its deliveries, written by the real writer of the
//! log.

use std::time::Duration;

use posthaste_core::delivery_log::{
    AttemptOrigin, FileKey, FileName, LogHour, LogRecord, LogResult, RecordKind, RecordPayload,
    record_id,
};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{RowGroups, write_file};
use posthaste_ports::Clock;
use serde_json::json;

use super::World;

/// Texts of a producer or an endpoint that would do harm where they are not shown as text.
pub(crate) const HOSTILE: [&str; 4] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "\u{202e}gnp.exe",
    "javascript:alert(1)",
];

impl World {
    /// A visitor who is signed in, and the topic Orders with its subscription Billing.
    pub(crate) async fn with_billing() -> Self {
        let world = Self::signed_in().await;
        world.put(&["topics", "Orders"], json!({})).await;
        let billing = json!({
            "endpoint": { "url": "https://billing.example.com/" },
            "deliveryHeaders": [{ "name": "X-Tenant", "value": "s3cret", "isSecret": true }],
        });
        world
            .put(&["topics", "Orders", "subscriptions", "Billing"], billing)
            .await;
        world
    }

    /// The time so many seconds ago.
    pub(crate) fn ago(&self, secs: u64) -> Timestamp {
        Timestamp::from_millis(self.clock.now().as_millis() - secs * 1000)
    }

    /// Writes records into the log.
    pub(crate) fn log_records(&self, records: &[LogRecord]) {
        let hours: std::collections::BTreeSet<_> = records
            .iter()
            .map(|it| LogHour::containing(it.time))
            .collect();
        for hour in hours {
            let of_hour: Vec<_> = records
                .iter()
                .filter(|it| LogHour::containing(it.time) == hour)
                .cloned()
                .collect();
            let name = FileName::Fresh {
                minute: 0,
                id: format!("file-{}", self.log.keys("").len()),
            };
            let file = write_file(&of_hour, RowGroups::default()).unwrap();
            self.log.write(&FileKey { hour, name }.render(), file);
        }
    }

    /// Writes a dead-letter object of Billing with these events, and returns its key.
    pub(crate) fn write_letters(&self, name: &str, letters: &serde_json::Value) -> String {
        let key = format!("ORDERS/BILLING/2023/11/14/22/{name}.json");
        self.dead_letters
            .write_at(&key, letters.to_string(), self.ago(60));
        key
    }
}

/// The first attempt of an event, which was delivered.
pub(crate) fn delivered(id: &str, at: Timestamp) -> LogRecord {
    let key = format!("key-of-{id}");
    LogRecord {
        record_id: record_id(id, 1, &key, 1, RecordKind::Attempt, at),
        time: at,
        kind: RecordKind::Attempt,
        topic: "orders".to_owned(),
        subscription: "billing".to_owned(),
        webhook_id: Some(format!("msg_{key}")),
        delivery_key: key,
        event_id: Some(id.to_owned()),
        event_source: Some("/shop".to_owned()),
        event_type: Some("order.paid".to_owned()),
        schema: Some("CloudEvents".to_owned()),
        attempt: 1,
        origin: AttemptOrigin::First,
        result: LogResult::Delivered,
        status: Some(200),
        duration_ms: Some(12),
        answer: Some("thanks".to_owned()),
        answer_type: Some("text/plain".to_owned()),
        endpoint: Some("https://billing.example.com/hooks".to_owned()),
        accepted_at: at,
        expires_at: at + Duration::from_hours(24),
        ..LogRecord::default()
    }
}

/// The same event, refused with 503 and to be tried again.
pub(crate) fn refused(id: &str, at: Timestamp) -> LogRecord {
    LogRecord {
        result: LogResult::Retry,
        status: Some(503),
        reason: Some("Busy".to_owned()),
        next_attempt_at: Some(at + Duration::from_secs(10)),
        ..delivered(id, at)
    }
}

/// The same as another attempt.
pub(crate) fn again(record: LogRecord, attempt: u16, at: Timestamp) -> LogRecord {
    let record_id = record_id(
        "again",
        1,
        &record.delivery_key,
        attempt,
        RecordKind::Attempt,
        at,
    );
    LogRecord {
        record_id,
        attempt,
        time: at,
        origin: AttemptOrigin::Retry,
        ..record
    }
}

/// The same with the payload of its event.
pub(crate) fn with_payload(record: LogRecord, data: &str) -> LogRecord {
    let id = record.event_id.clone().unwrap();
    let payload = json!({ "specversion": "1.0", "id": id, "source": "/shop", "type": "order.paid", "data": data });
    LogRecord {
        payload: RecordPayload::parse(&payload.to_string()),
        ..record
    }
}
