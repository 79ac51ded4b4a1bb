//! `publish`: sends the bytes of a file to a topic as they are, or its events at a pace that obeys back pressure.

mod batches;
mod door;
mod ending;
mod events;
mod meter;
mod outcome;
mod pace;
mod paced;
mod pipe;
mod progress;
mod run;
mod stream;
mod told;

use serde_json::{Value, json};

use super::{CommandError, source};
use crate::cli::{Global, PublishArgs};
use crate::output::Reply;
use door::Door;

pub use ending::Ending;
pub use events::EventsError;

const EVENT: &str = "application/cloudevents+json";
const EVENT_BATCH: &str = "application/cloudevents-batch+json";
const JSON: &str = "application/json";

pub(super) fn run(global: &Global, arguments: PublishArgs) -> Result<Reply, CommandError> {
    match arguments.pace.rate {
        Some(rate) => paced::run(global, arguments, rate),
        None => whole(global, arguments),
    }
}

/// The file as it is.
fn whole(global: &Global, arguments: PublishArgs) -> Result<Reply, CommandError> {
    let bytes = source::read(&arguments.file)?;
    let door = Door::find(global, &arguments)?;
    let content_type = arguments.content_type.unwrap_or_else(|| content_type_of(&bytes).to_owned());
    let size = bytes.len();
    door.post(&content_type, None, bytes)?;
    let json =
        json!({ "published": { "topic": arguments.topic, "bytes": size, "contentType": content_type } });
    Ok(Reply::new(json).line(format!("published {size} bytes to {} as {content_type}", arguments.topic)))
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
