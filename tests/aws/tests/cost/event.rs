//! Events that name the time until which their endpoint refuses them.

use posthaste_core::model::Timestamp;
use serde_json::{Value, json};

/// Size of an event, in bytes of its JSON.
pub(crate) const EVENT_BYTES: usize = 1024;

/// An event of [`EVENT_BYTES`] that is refused with 503 before `refused_until`.
pub(crate) fn event(id: usize, refused_until: Timestamp) -> String {
    let event = |fill: &str| {
        json!({
            "specversion": "1.0",
            "id": format!("{id:06}"),
            "source": "/shop",
            "type": "order.paid",
            "data": { "refusedUntil": refused_until.as_millis(), "fill": fill },
        })
        .to_string()
    };
    let bare = event("").len();
    event(&"x".repeat(EVENT_BYTES - bare))
}

/// The endpoint's answer to a body at a time: with 503 if one event in it is refused then.
pub(crate) fn status_of(body: &str, now: Timestamp) -> u16 {
    let is_refused = |event: &Value| {
        let until = event["data"]["refusedUntil"]
            .as_u64()
            .expect("an event of ours");
        now < Timestamp::from_millis(until)
    };
    if events_in(body).iter().any(is_refused) {
        503
    } else {
        204
    }
}

/// The events of a body.
pub(crate) fn events_in(body: &str) -> Vec<Value> {
    match serde_json::from_str(body).expect("a body in JSON") {
        Value::Array(events) => events,
        event => vec![event],
    }
}
