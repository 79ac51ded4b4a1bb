//! The words in which a pressure is shown.

use posthaste_core::api::PressureView;
use serde_json::{Value, json};

use super::*;

/// A view with these members instead of those of a program at rest.
fn view(members: Value) -> PressureView {
    let mut view = json!({
        "level": "normal", "polledAt": "2026-11-21T10:00:00.000Z", "freshness": "current", "monitored": true,
        "tarpit": "PT0S", "delayedTiers": [], "refusedTiers": [], "resources": [],
    });
    let Value::Object(members) = members else {
        panic!("no members: {members}")
    };
    view.as_object_mut().unwrap().extend(members);
    serde_json::from_value(view).unwrap()
}

fn check(members: Value, expected: &str) {
    assert_eq!(producers_sentence(&view(members)), expected);
}

#[test]
fn how_producers_are_treated_is_said_in_one_sentence() {
    let all = json!(["internal", "standard", "bulk"]);
    check(
        json!({}),
        "normal: acknowledgements do not wait, no producer is refused (measured 2026-11-21T10:00:00.000Z)",
    );
    check(
        json!({
            "level": "medium", "since": "2026-11-21T09:59:56.000Z", "tarpit": "PT15S",
            "nextTarpit": "PT20S", "delayedTiers": all,
        }),
        "medium since 2026-11-21T09:59:56.000Z: acknowledgements wait 15 s, 20 s after the next poll, \
         no producer is refused (measured 2026-11-21T10:00:00.000Z)",
    );
    check(
        json!({ "level": "high", "since": "2026-11-21T09:59:56.000Z", "refusedTiers": ["standard", "bulk"] }),
        "high since 2026-11-21T09:59:56.000Z: acknowledgements do not wait, refused: standard, bulk \
         (measured 2026-11-21T10:00:00.000Z)",
    );
}

#[test]
fn a_state_that_is_not_taken_at_its_word_is_said_to_be_none() {
    check(
        json!({
            "freshness": "stale", "level": "high", "tarpit": "PT10S",
            "delayedTiers": ["standard", "bulk"],
        }),
        "the monitor has missed polls: it measured last at 2026-11-21T10:00:00.000Z; until it does again \
         acknowledgements of standard, bulk wait 10 s, no producer is refused",
    );
    check(
        json!({ "freshness": "forgotten" }),
        "the monitor has stopped: it measured last at 2026-11-21T10:00:00.000Z, and producers are treated as \
            at normal",
    );
    check(
        json!({ "freshness": "unreadable" }),
        "unknown: what the monitor wrote cannot be understood; producers are treated as at normal",
    );
    check(
        json!({ "freshness": "missing" }),
        "nothing was measured yet; producers are treated as at normal",
    );
    check(json!({ "monitored": false }), "resources are not watched");
}

#[test]
fn a_row_shows_how_much_of_the_history_has_passed() {
    let shown = |members: Value| {
        let mut resource = json!({
            "resource": "submission-queue", "level": "medium", "since": "2026-11-21T10:00:00.000Z",
            "reading": 4100, "unit": "messages", "readAt": "2026-11-21T10:00:00.000Z",
            "thresholds": { "normal": 2000, "medium": 4000, "high": 10_000 }, "acts": true, "polls": 12,
            "historyDepth": 300, "historyPassed": false, "measures": ["trim-caches", "flush-dns"],
        });
        resource
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let [
            name,
            level,
            reading,
            unit,
            ..,
            history,
            refused,
            other_actions,
        ] = resource_row(&serde_json::from_value(resource).unwrap());
        [name, level, reading, unit, history, refused, other_actions].join("|")
    };
    let rest = "|trim-caches, flush-dns";
    let check = |members, expected: &str| {
        assert_eq!(shown(members), format!("submission-queue|{expected}{rest}"));
    };
    check(json!({}), "medium|4100|messages|12 of 300 polls|");
    check(
        json!({ "polls": 4000, "refusedFrom": "standard" }),
        "medium|4100|messages|300 of 300 polls|standard",
    );
    check(
        json!({ "acts": false, "polls": 0 }),
        "medium (does not act)|4100|messages|0 of 300 polls|",
    );
    check(
        json!({ "level": "normal", "acts": false, "polls": 0 }),
        "normal|4100|messages|0 of 300 polls|",
    );
    check(json!({ "historyDepth": null }), "medium|4100|messages||");
}
