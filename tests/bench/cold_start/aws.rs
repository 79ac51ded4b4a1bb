//! As much of S3 and SQS as one publish and one delivery need. It checks nothing: the strict double
//! does, in the tests.

use std::sync::Arc;

use posthaste_core::model::{Timestamp, TopicName};
use posthaste_core::stored::layout;
use posthaste_testkit::records;
use rustls::ServerConfig;
use serde_json::{Value, json};

use crate::http::{Request, Response, Server};

/// The topic there is.
pub(crate) const TOPIC: &str = "orders";

pub(crate) const SUBSCRIPTION: &str = "billing";

/// The publish key.
pub(crate) const KEY: &str = records::TOPIC_KEY;

/// Starts it. The one subscription goes to `endpoint`.
pub(crate) fn start(tls: Option<Arc<ServerConfig>>, endpoint: &str) -> Server {
    let topic = record(endpoint);
    let path = layout::topic_record_key(&topic_name());
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
    records::topic_name(TOPIC)
}

fn record(endpoint: &str) -> Vec<u8> {
    let settings =
        json!({ "subscriptions": { SUBSCRIPTION: { "endpoint": { "url": endpoint } } } });
    let record = records::topic_record(
        topic_name(),
        records::topic_settings(settings),
        Timestamp::EPOCH,
    );
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
