//! Events and subscriptions as tests need them.

use serde_json::{Value, json};

/// A small CloudEvent.
pub fn cloud_event(id: &str) -> Value {
    json!({
        "specversion": "1.0", "id": id, "source": "/tests", "type": "com.example.tested",
        "subject": format!("tests/{id}"), "time": "2026-11-21T10:00:00Z", "data": { "n": 1 },
    })
}

/// A small event of Event Grid's schema.
pub fn event_grid_event(id: &str) -> Value {
    json!({
        "id": id, "eventType": "com.example.tested", "subject": format!("tests/{id}"),
        "eventTime": "2026-11-21T10:00:00Z", "dataVersion": "1", "data": { "n": 1 },
    })
}

/// A subscription that waits one second between attempts and writes dead letters at once.
pub fn subscription(url: &str) -> Value {
    json!({
        "endpoint": { "url": url },
        "retryPolicy": {
            "schedule": ["PT1S"],
            "waitFloors": { "default": "PT0S", "408": "PT0S", "429": "PT0S", "503": "PT0S" },
        },
        "deadLetter": { "delay": "PT0S" },
    })
}

/// A subscription with members of its own: `more` is laid over [`subscription`], object by object.
pub fn subscription_with(url: &str, more: &Value) -> Value {
    let mut settings = subscription(url);
    lay_over(&mut settings, more);
    settings
}

/// Lays settings over others, object by object.
pub fn lay_over(below: &mut Value, above: &Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            for (name, value) in above {
                lay_over(below.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (below, above) => *below = above.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_laid_over_and_the_others_stay() {
        let settings = subscription_with(
            "http://a",
            &json!({ "retryPolicy": { "schedule": ["PT2S"] } }),
        );
        assert_eq!(settings["retryPolicy"]["schedule"], json!(["PT2S"]));
        assert_eq!(settings["retryPolicy"]["waitFloors"]["503"], "PT0S");
        assert_eq!(settings["endpoint"]["url"], "http://a");
    }
}
