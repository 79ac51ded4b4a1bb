//! As much of S3 and SQS as one publish and one delivery need. It checks nothing: the strict double does, in the tests.

use std::sync::Arc;

use posthaste_core::api::{SecretText, TierKeys, TopicSettings};
use posthaste_core::model::identity::Creations;
use posthaste_core::model::name::TopicName;
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::{RECORD_VERSION, TopicRecord};
use rustls::ServerConfig;
use serde_json::{Value, json};

use crate::http::{Request, Response, Server};

/// The topic there is.
pub(crate) const TOPIC: &str = "orders";

/// Its subscription.
pub(crate) const SUBSCRIPTION: &str = "billing";

/// Its publish key.
pub(crate) const KEY: &str = "the-key";

/// Starts it. The one subscription goes to `endpoint`.
pub(crate) fn start(tls: Option<Arc<ServerConfig>>, endpoint: &str) -> Server {
    let (topic, path) = (record(endpoint), layout::topic(&topic_name()));
    Server::start(tls, move |request| match request.line.split_once(' ') {
        Some(("GET", target)) if target.contains(&path) => {
            Response::new(200, topic.clone()).with("etag", "\"1\"")
        }
        Some(("POST", _)) => sent(request),
        _ => Response::new(404, "<Error><Code>NoSuchKey</Code></Error>"),
    })
}

/// The topic's name.
pub(crate) fn topic_name() -> TopicName {
    TopicName::parse(TOPIC).expect("a name")
}

fn record(endpoint: &str) -> Vec<u8> {
    let settings = json!({ "subscriptions": { SUBSCRIPTION: { "endpoint": { "url": endpoint } } } });
    let settings: TopicSettings = serde_json::from_value(settings).expect("settings of a topic");
    let record = TopicRecord {
        v: RECORD_VERSION,
        name: topic_name(),
        key1: SecretText::new(KEY),
        key2: SecretText::new("another"),
        tier_keys: TierKeys::default(),
        created_at: Timestamp::EPOCH,
        updated_at: Timestamp::EPOCH,
        deleted_at: None,
        creations: Creations::default(),
        settings,
    };
    record.render().to_vec()
}

/// Every entry of a batch was sent.
fn sent(request: &Request) -> Response {
    let batch: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    let entries = batch["Entries"].as_array().cloned().unwrap_or_default();
    let successful: Vec<_> = entries
        .iter()
        .map(|entry| json!({ "Id": entry["Id"], "MessageId": "m", "MD5OfMessageBody": "0" }))
        .collect();
    let answer = json!({ "Successful": successful, "Failed": [] });
    Response::new(200, answer.to_string()).with("content-type", "application/x-amz-json-1.0")
}
