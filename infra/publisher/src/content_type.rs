//! Content types of events, and which one the bytes of a file have.

use serde_json::Value;

/// The content type of one CloudEvent.
pub const EVENT: &str = "application/cloudevents+json";
pub(crate) const EVENT_BATCH: &str = "application/cloudevents-batch+json";
pub(crate) const JSON: &str = "application/json";

/// The content type that the bytes look like. Only CloudEvents have a content type of their own;
/// the server judges the rest.
pub fn content_type_of(bytes: &[u8]) -> &'static str {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(Value::Array(events)) if events.first().is_some_and(is_cloud_event) => EVENT_BATCH,
        Ok(value) if is_cloud_event(&value) => EVENT,
        _ => JSON,
    }
}

fn is_cloud_event(value: &Value) -> bool {
    value.get("specversion").is_some()
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
