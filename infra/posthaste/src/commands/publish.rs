//! `publish`: sends the bytes of a file to a topic, as they are.

use posthaste_core::api::TopicKeysView;
use posthaste_core::secret::Secret;
use serde_json::{Value, json};
use ureq::http::Method;

use super::{CommandError, Session, source};
use crate::cli::{Global, PublishArgs};
use crate::client::{Call, Client};
use crate::output::Reply;

const EVENT: &str = "application/cloudevents+json";
const EVENT_BATCH: &str = "application/cloudevents-batch+json";
const JSON: &str = "application/json";

pub(super) fn run(global: &Global, arguments: PublishArgs) -> Result<Reply, CommandError> {
    let bytes = source::read(&arguments.file)?;
    let given = arguments.key.filter(|key| !key.is_empty()).map(Secret::new);
    let (client, key) = match given {
        Some(key) => (Client::new(&global.url)?, key),
        None => ask_for_key(&Session::open(global, arguments.admin_key)?, &arguments.topic)?,
    };
    let content_type = arguments.content_type.unwrap_or_else(|| content_type_of(&bytes).to_owned());
    let path = ["topics", arguments.topic.as_str(), "events"];
    let size = bytes.len();
    let call = Call::new(Method::POST, &path).key(&key).body(&content_type, bytes);
    client.send(call)?;
    let json =
        json!({ "published": { "topic": arguments.topic, "bytes": size, "contentType": content_type } });
    Ok(Reply::new(json).line(format!("published {size} bytes to {} as {content_type}", arguments.topic)))
}

/// The topic's first publish key, asked of the server.
fn ask_for_key(session: &Session, topic: &str) -> Result<(Client, Secret), CommandError> {
    let call = Call::new(Method::GET, &["topics", topic, "keys"]).key(&session.key);
    let keys: TopicKeysView = session.client.json(call)?;
    Ok((session.client.clone(), Secret::new(keys.key1.expose())))
}

/// What the bytes look like. Only CloudEvents have a content type of their own; the server judges the rest.
fn content_type_of(bytes: &[u8]) -> &'static str {
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
        let check =
            |bytes: &str, expected| assert_eq!(content_type_of(bytes.as_bytes()), expected, "{bytes}");
        check(r#"{"specversion":"1.0"}"#, EVENT);
        check(r#"[{"specversion":"1.0"}]"#, EVENT_BATCH);
        check(r#"[{"id":"1","eventType":"a"}]"#, JSON);
        check("[]", JSON);
        check("not json", JSON);
    }
}
