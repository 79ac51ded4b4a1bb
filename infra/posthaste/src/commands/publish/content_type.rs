//! Content types of events, and which one the bytes of a file have.

use serde_json::Value;

pub(super) const EVENT: &str = "application/cloudevents+json";
pub(super) const EVENT_BATCH: &str = "application/cloudevents-batch+json";
pub(super) const JSON: &str = "application/json";

/// The content type that the bytes look like. Only CloudEvents have a content type of their own;
/// the server judges the rest.
pub(super) fn content_type_of(bytes: &[u8]) -> &'static str {
    let is_event = |value: &Value| value.get("specversion").is_some();
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Array(events)) if events.first().is_some_and(is_event) => EVENT_BATCH,
        Ok(value) if is_event(&value) => EVENT,
        _ => JSON,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_type_follows_the_content() {
        let check = |bytes: &str, expected| {
            assert_eq!(content_type_of(bytes.as_bytes()), expected, "{bytes}");
        };
        check(r#"{"specversion":"1.0"}"#, EVENT);
        check(r#"[{"specversion":"1.0"}]"#, EVENT_BATCH);
        check(r#"[{"id":"1","eventType":"a"}]"#, JSON);
        check("[]", JSON);
        check("not json", JSON);
    }
}
