use posthaste_core::api::FoundEvents;
use posthaste_core::api::events::EventView;
use posthaste_core::delivery_log::DeliveryState;
use serde_json::{Value, json};

use super::{add_event, add_found_events, delivery_state_text, shell_quoted};
use crate::output::{CommandReply, OutputStyle};

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn delivery(more: Value) -> Value {
    let mut delivery = json!({
        "key": "k-0", "subscription": "billing", "state": "delivered", "type": "order.paid",
        "acceptedAt": "2026-11-21T10:00:00Z", "attempts": [],
    });
    delivery
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    delivery
}

#[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
fn view(deliveries: Value) -> EventView {
    let view = json!({
        "id": "order-1", "deliveries": deliveries, "completeUntil": "2026-11-21T10:05:00Z",
    });
    serde_json::from_value(view).unwrap()
}

fn text(view: &EventView) -> String {
    add_event(CommandReply::without_json(), "orders", view)
        .render(OutputStyle::Plain)
        .into_string()
}

fn attempts() -> Value {
    json!([
        {
            "number": 1, "at": "2026-11-21T10:00:00Z", "durationMs": 87, "status": 503, "outcome": "Busy",
            "answer": "try\nlater", "webhookId": "msg_k-0", "origin": "first",
        },
        {
            "number": 2, "at": "2026-11-21T10:00:10Z", "outcome": "SocketError",
            "error": "connection refused", "webhookId": "msg_k-0", "origin": "retry",
        },
        {
            "number": 3, "at": "2026-11-21T10:00:40Z", "durationMs": 1200, "status": 200,
            "outcome": "Delivered", "webhookId": "msg_k-0", "origin": "retry",
        },
    ])
}

#[test]
fn delivery_shows_state_attempts_and_resend_command() {
    let one = delivery(json!({
        "attempts": attempts(), "source": "/shop", "resendableUntil": "2026-11-28T10:00:00Z",
    }));
    let expected = "\
billing: delivered
accepted at 2026-11-21T10:00:00.000Z, type order.paid, source /shop, delivery k-0
ATTEMPT  AT                        TOOK     STATUS  OUTCOME      ANSWER              WEBHOOK-ID
1        2026-11-21T10:00:00.000Z  87 ms    503     Busy         try later           msg_k-0
2        2026-11-21T10:00:10.000Z                   SocketError  connection refused  msg_k-0
3        2026-11-21T10:00:40.000Z  1200 ms  200     Delivered                        msg_k-0
to send it again, until 2026-11-28T10:00:00.000Z:
posthaste events resend orders billing order-1

The log is complete up to 2026-11-21T10:05:00.000Z.
";
    assert_eq!(text(&view(json!([one]))), expected);
}

#[test]
fn a_payload_stays_as_it_was_written() {
    let text_of = |payload: &str| {
        let one = delivery(json!({ "payload": 0 }))
            .to_string()
            .replace("\"payload\":0", payload);
        let json = json!({ "id": "1", "deliveries": [], "completeUntil": "2026-11-21T10:05:00Z" });
        let json = json.to_string().replace("[]", &format!("[{one}]"));
        text(&serde_json::from_str(&json).unwrap())
    };
    let text = text_of("\"payload\":{\"price\":1.00}");
    assert!(text.contains("{\n  \"price\": 1.00\n}\n"), "{text}");
}

#[test]
fn every_state_is_said_in_words() {
    let check = |more: Value, expected: &str| {
        assert_eq!(
            delivery_state_text(&view(json!([delivery(more)])).deliveries[0]),
            expected
        );
    };
    let at = "2026-11-21T10:10:00Z";
    check(json!({}), "delivered");
    check(
        json!({ "state": "pending", "nextAttemptAt": at }),
        "pending: its first attempt is at 2026-11-21T10:10:00.000Z or later",
    );
    check(
        json!({ "state": "waiting", "nextAttemptAt": at }),
        "waits for its next attempt, at 2026-11-21T10:10:00.000Z or later",
    );
    check(json!({ "state": "waiting" }), "waits for its next attempt");
    check(
        json!({ "state": "held" }),
        "held until its endpoint recovers, or an operator acts",
    );
    check(
        json!({ "state": "held", "nextAttemptAt": at }),
        "held until its endpoint recovers, or an operator acts; the next probe is at 2026-11-21T10:10:00.000Z",
    );
    check(
        json!({ "state": "dead-lettered", "reason": "EndpointGone", "deadLetterObject": "ORDERS/x.json" }),
        "given up (EndpointGone); it is in the dead letters ORDERS/x.json",
    );
    check(
        json!({ "state": "dead-lettered" }),
        "given up; it becomes a dead letter within minutes",
    );
    check(
        json!({ "state": "dropped", "reason": "TimeToLiveExceeded" }),
        "given up (TimeToLiveExceeded), without a dead letter",
    );
    check(
        json!({ "state": "teleported" }),
        "in a state that is not known: no record of it came within 25 hours, or only a newer posthaste knows it",
    );
}

#[test]
fn event_is_shown_as_a_whole_before_its_deliveries() {
    let view = EventView {
        state: Some(DeliveryState::Pending),
        ..view(json!([delivery(json!({ "state": "pending" }))]))
    };
    let expected = "\
the event as a whole: pending, since not all subscriptions have a record of it yet

billing: pending: it has no record of its own yet
accepted at 2026-11-21T10:00:00.000Z, type order.paid, delivery k-0
";
    assert!(text(&view).starts_with(expected), "{}", text(&view));
}

#[test]
fn an_event_without_a_record_shows_the_note() {
    let none = EventView {
        note: Some("It may be waiting.".to_owned()),
        ..view(json!([]))
    };
    assert_eq!(
        text(&none),
        "It may be waiting.\nThe log is complete up to 2026-11-21T10:05:00.000Z.\n"
    );
}

/// Subscription with several deliveries of an event has a resend command with a key for each.
#[test]
fn resend_command_names_the_key_of_one_of_many_deliveries() {
    let attempt = json!({
        "number": 1, "at": "2026-11-21T10:00:00Z", "outcome": "Delivered", "origin": "replay",
    });
    let of = |key: &str, name: &str| {
        delivery(json!({
            "key": key, "subscription": name, "resendableUntil": "2026-11-28T10:00:00Z",
            "attempts": [attempt],
        }))
    };
    let text = text(&view(json!([
        of("k-1", "billing"),
        of("k-0", "billing"),
        of("k-2", "crm")
    ])));
    for line in [
        "1 (replay)",
        "posthaste events resend --delivery k-1 orders billing order-1\n",
        "posthaste events resend --delivery k-0 orders billing order-1\n",
        "posthaste events resend orders crm order-1\n",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
}

#[test]
fn an_id_that_begins_with_a_hyphen_is_no_option() {
    let one = delivery(json!({ "resendableUntil": "2026-11-28T10:00:00Z" }));
    let view = EventView {
        id: "-1".to_owned(),
        ..view(json!([one]))
    };
    assert!(text(&view).contains("posthaste events resend -- orders billing -1\n"));
}

#[test]
fn control_characters_of_an_event_are_not_printed() {
    let until = "2026-11-28T10:00:00Z";
    let one =
        delivery(json!({ "type": "a\u{1b}[2J", "source": "\u{7}", "resendableUntil": until }));
    let view = EventView {
        id: "\u{1b}".to_owned(),
        ..view(json!([one]))
    };
    let text = text(&view);
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "{text:?}"
    );
}

/// Text of a producer cannot look like a line that posthaste wrote.
#[test]
fn producer_text_with_line_breaks_stays_on_one_line() {
    let forged = "x\nbilling: delivered";
    let one = delivery(json!({ "type": forged, "source": forged, "subject": forged }));
    let text = text(&view(json!([one])));
    assert!(
        text.contains(", subject x⟦U+000A⟧billing: delivered, delivery k-0\n"),
        "{text}"
    );
    let states = text.lines().filter(|line| line.starts_with("billing: "));
    assert_eq!(states.count(), 1, "{text}");
}

#[test]
fn a_word_is_quoted_for_the_shell_where_it_must_be() {
    let check = |word: &str, expected: &str| assert_eq!(shell_quoted(word), expected);
    check("order-1001", "order-1001");
    check("urn:uuid:1/2", "urn:uuid:1/2");
    check("a b", "'a b'");
    check("it's $HOME", r"'it'\''s $HOME'");
    check("", "''");
}

fn found_text(found_events: Value) -> String {
    let found_events: FoundEvents = serde_json::from_value(found_events).unwrap();
    add_found_events(CommandReply::without_json(), &found_events)
        .render(OutputStyle::Plain)
        .into_string()
}

#[test]
fn events_of_several_topics_have_their_topic_and_their_commands() {
    let of = |topic: &str| {
        let one = delivery(json!({ "resendableUntil": "2026-11-28T10:00:00Z" }));
        json!({ "topic": topic, "id": "order\n1", "deliveries": [one] })
    };
    let text = found_text(json!({
        "id": "order\n1", "events": [of("orders"), of("invoices")],
        "searchedFrom": "2026-11-14T10:00:00Z", "completeUntil": "2026-11-21T10:05:00Z",
    }));
    let one = |topic: &str| {
        format!(
            "{topic}: event order⟦U+000A⟧1\nbilling: delivered\n\
            accepted at 2026-11-21T10:00:00.000Z, type order.paid, delivery k-0\n\
            to send it again, until 2026-11-28T10:00:00.000Z:\n\
            posthaste events resend {topic} billing $'order\\U0000000a1'\n\n"
        )
    };
    let end = "The log was searched back to 2026-11-14T10:00:00.000Z.\n\
        The log is complete up to 2026-11-21T10:05:00.000Z.\n";
    assert_eq!(text, format!("{}{}{end}", one("orders"), one("invoices")));
}

#[test]
fn dead_letters_of_an_object_stand_before_its_events() {
    let text = found_text(json!({
        "id": "ORDERS/BILLING/2026/11/21/9/a.json", "events": [], "note": "No record.",
        "deadLetters": [
            { "object": "ORDERS/BILLING/2026/11/21/9/a.json", "index": 0, "topic": "Orders",
              "subscription": "Billing", "id": "order-1", "type": "t", "reason": "EndpointGone",
              "status": 410, "writtenAt": "2026-11-21T09:00:00Z" },
            { "object": "ORDERS/BILLING/2026/11/21/9/a.json", "index": 1, "topic": "Orders",
              "subscription": "Billing", "writtenAt": "2026-11-21T09:00:00Z", "resolved": true },
        ],
        "completeUntil": "2026-11-21T10:05:00Z",
    }));
    let expected = "\
dead letters of Orders/Billing in ORDERS/BILLING/2026/11/21/9/a.json:
PLACE  EVENT    TYPE  REASON        STATUS  RESOLVED
0      order-1  t     EndpointGone  410     no
1                                           yes

No record.
The log is complete up to 2026-11-21T10:05:00.000Z.
";
    assert_eq!(text, expected);
}
