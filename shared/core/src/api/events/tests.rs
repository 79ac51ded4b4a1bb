use serde_json::json;

use super::*;
use crate::delivery_log::{RecordKind, gather_by_delivery};

const DAY: Duration = Duration::from_hours(24);

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + ms)
}

fn attempt(number: u16, result: LogResult, reason: Option<&str>) -> LogRecord {
    LogRecord {
        record_id: format!("{number:032x}"),
        time: at(u64::from(number) * 1_000),
        kind: RecordKind::Attempt,
        topic: "orders".to_owned(),
        subscription: "billing".to_owned(),
        delivery_key: "k-0".to_owned(),
        event_id: Some("order-1".into()),
        event_type: Some("order.paid".into()),
        attempt: number,
        origin: if number == 1 {
            AttemptOrigin::First
        } else {
            AttemptOrigin::Retry
        },
        result,
        reason: reason.map(str::to_owned),
        accepted_at: at(0),
        expires_at: at(86_400_000),
        ..LogRecord::default()
    }
}

fn first() -> LogRecord {
    LogRecord {
        status: Some(503),
        duration_ms: Some(87),
        answer: Some("try later".into()),
        answer_type: Some("text/plain".into()),
        webhook_id: Some("msg_k-0".into()),
        endpoint: Some("https://billing.example.com/hooks".into()),
        event_source: Some("/shop".into()),
        event_subject: Some("orders/1".into()),
        next_attempt_at: Some(at(11_000)),
        payload: RecordPayload::parse(r#"{"id":"order-1"}"#),
        ..attempt(1, LogResult::Retry, Some("Busy"))
    }
}

fn view(records: Vec<LogRecord>) -> DeliveryView {
    DeliveryView::from_history(&gather_by_delivery(records).remove(0), Some(DAY), false)
}

#[test]
fn a_delivery_is_shown_with_its_attempts() {
    let second = LogRecord {
        error: Some("no answer in time".into()),
        ..attempt(2, LogResult::Delivered, None)
    };
    let waiting = json!({
        "key": "k-0", "subscription": "billing", "state": "waiting", "source": "/shop", "type": "order.paid",
        "subject": "orders/1", "acceptedAt": "2023-11-14T22:13:20.000Z",
        "expiresAt": "2023-11-15T22:13:20.000Z", "nextAttemptAt": "2023-11-14T22:13:31.000Z",
        "resendableUntil": "2023-11-15T22:13:21.000Z",
        "attempts": [{
            "number": 1, "at": "2023-11-14T22:13:21.000Z", "durationMs": 87, "status": 503, "outcome": "Busy",
            "answer": "try later", "answerType": "text/plain", "webhookId": "msg_k-0", "origin": "first",
            "endpoint": "https://billing.example.com/hooks",
        }],
    });
    assert_eq!(serde_json::to_value(view(vec![first()])).unwrap(), waiting);
    let delivered = view(vec![second, first()]);
    assert_eq!(
        (delivered.state, delivered.next_attempt_at),
        (DeliveryState::Delivered, None)
    );
    let outcomes: Vec<_> = delivered
        .attempts
        .iter()
        .map(|it| it.outcome.as_str())
        .collect();
    assert_eq!(outcomes, ["Busy", "Delivered"]);
    assert_eq!(
        delivered.attempts[1].error.as_deref(),
        Some("no answer in time")
    );
}

#[test]
fn an_event_that_was_given_up_says_why_and_where_it_lies() {
    let last = attempt(2, LogResult::DeadLettered, Some("EndpointGone"));
    let written = LogRecord {
        record_id: "9".repeat(32),
        time: at(9_000),
        kind: RecordKind::DeadLettered,
        dead_letter_object: Some("ORDERS/BILLING/x.json".into()),
        reason: None,
        ..last.clone()
    };
    let shown = view(vec![first(), last, written]);
    assert_eq!(
        (shown.state, shown.reason.as_deref()),
        (DeliveryState::DeadLettered, Some("EndpointGone"))
    );
    assert_eq!(
        shown.dead_letter_object.as_deref(),
        Some("ORDERS/BILLING/x.json")
    );
    assert_eq!(
        (shown.attempts.len(), shown.attempts[1].outcome.as_str()),
        (2, "EndpointGone")
    );
}

#[test]
fn an_event_that_waits_has_no_reason() {
    assert_eq!(view(vec![first()]).reason, None);
}

#[test]
fn the_payload_is_shown_if_it_is_asked_for() {
    let history = gather_by_delivery(vec![first()]).remove(0);
    let payload = |asked| DeliveryView::from_history(&history, None, asked).payload;
    assert_eq!(
        (payload(true), payload(false)),
        (RecordPayload::parse(r#"{"id":"order-1"}"#), None)
    );
    let shown = serde_json::to_string(&DeliveryView::from_history(&history, None, true)).unwrap();
    assert!(shown.contains(r#""payload":{"id":"order-1"}"#), "{shown}");
}

/// Event can be sent again as long as both its records and its payload are kept.
#[test]
fn resend_is_possible_while_log_and_payload_are_kept() {
    let until = |record: LogRecord, retention| {
        let history = gather_by_delivery(vec![record]).remove(0);
        DeliveryView::from_history(&history, retention, false)
            .resendable_until
            .map(|until| until.0)
    };
    let referenced = LogRecord {
        payload: None,
        payload_reference: Some("payloads/20231114/x".into()),
        ..first()
    };
    assert_eq!(until(first(), Some(DAY)), Some(at(1_000) + DAY));
    assert_eq!(until(first(), None), None);
    assert_eq!(
        until(
            LogRecord {
                payload: None,
                ..first()
            },
            Some(DAY)
        ),
        None
    );
    assert_eq!(until(referenced.clone(), Some(DAY)), Some(at(1_000) + DAY));
    assert_eq!(
        until(referenced, Some(DAY * 30)),
        Some(at(0) + PAYLOAD_KEPT)
    );
}

#[test]
fn a_record_is_a_row() {
    let row = RecordView::from(first());
    assert_eq!(
        (row.id.as_deref(), row.key.as_str(), row.attempt),
        (Some("order-1"), "k-0", 1)
    );
    assert_eq!(
        (row.answer.as_deref(), row.answer_type.as_deref()),
        (Some("try later"), Some("text/plain"))
    );
    let shown = serde_json::to_value(row.without_answer()).unwrap();
    let expected = json!({
        "recordId": "00000000000000000000000000000001", "time": "2023-11-14T22:13:21.000Z", "kind": "attempt",
        "id": "order-1", "subscription": "billing", "type": "order.paid", "result": "retry",
        "reason": "Busy", "status": 503, "durationMs": 87, "attempt": 1, "origin": "first",
        "webhookId": "msg_k-0", "nextAttemptAt": "2023-11-14T22:13:31.000Z", "key": "k-0",
        "acceptedAt": "2023-11-14T22:13:20.000Z", "endpoint": "https://billing.example.com/hooks",
    });
    assert_eq!(shown, expected);
}
