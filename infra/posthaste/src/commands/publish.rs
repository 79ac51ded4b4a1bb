//! `publish`: sends the bytes of a file to a topic, as they are.

use posthaste_core::api::{TopicKeysView, TopicSettings};
use posthaste_core::secret::Secret;
use serde_json::{Value, json};
use ureq::http::Method;

use super::{CommandError, Session, source};
use crate::cli::{Global, PublishArgs};
use crate::client::{Call, Client, ClientError};
use crate::output::Reply;

const EVENT: &str = "application/cloudevents+json";
const EVENT_BATCH: &str = "application/cloudevents-batch+json";
const JSON: &str = "application/json";

pub(super) fn run(global: &Global, arguments: PublishArgs) -> Result<Reply, CommandError> {
    let bytes = source::read(&arguments.file)?;
    let key = arguments.key.filter(|key| !key.is_empty()).map(Secret::new);
    let admin_key = arguments.admin_key.filter(|key| !key.is_empty());
    let door = match (key, admin_key) {
        (Some(key), None) => Door::at(Client::new(&global.url)?, key),
        (key, admin_key) => Door::ask(&Session::open(global, admin_key)?, &arguments.topic, key)?,
    };
    let content_type = arguments.content_type.unwrap_or_else(|| content_type_of(&bytes).to_owned());
    let size = bytes.len();
    door.post(&arguments.topic, &content_type, bytes)?;
    let json =
        json!({ "published": { "topic": arguments.topic, "bytes": size, "contentType": content_type } });
    Ok(Reply::new(json).line(format!("published {size} bytes to {} as {content_type}", arguments.topic)))
}

/// Where a topic's events are taken, and the key to it. A server that manages topics need not be the one that takes
/// their events: deployed on AWS, each of the two functions has a URL of its own.
struct Door {
    client: Client,
    /// Whether the client's address is the topic's endpoint already, and not a server's.
    is_endpoint: bool,
    key: Secret,
}

impl Door {
    /// The server itself.
    fn at(client: Client, key: Secret) -> Self {
        Self { client, is_endpoint: false, key }
    }

    /// The endpoint that the topic is shown with, or else the server that shows it; and the key that was given, or
    /// else the first of the topic's two.
    fn ask(session: &Session, topic: &str, key: Option<Secret>) -> Result<Self, CommandError> {
        let view: TopicSettings = session.client.json(get(session, &["topics", topic]))?;
        let key = if let Some(key) = key {
            key
        } else {
            let keys: TopicKeysView = session.client.json(get(session, &["topics", topic, "keys"]))?;
            Secret::new(keys.key1.expose())
        };
        Ok(match view.endpoint {
            Some(endpoint) => Self { client: Client::new(&endpoint)?, is_endpoint: true, key },
            None => Self::at(session.client.clone(), key),
        })
    }

    fn post(&self, topic: &str, content_type: &str, bytes: Vec<u8>) -> Result<(), ClientError> {
        let path: &[&str] = if self.is_endpoint { &[] } else { &["topics", topic, "events"] };
        let call = Call::new(Method::POST, path).key(&self.key).body(content_type, bytes);
        self.client.send(call).map(drop)
    }
}

fn get<'a>(session: &'a Session, path: &[&'a str]) -> Call<'a> {
    Call::new(Method::GET, path).key(&session.key)
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
