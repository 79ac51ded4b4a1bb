//! The events that the programs are given, as Lambda writes them.

use bytes::Bytes;
use posthaste_core::model::{EventPayload, Timestamp};
use posthaste_core::stored::delivery::render_delivery;
use posthaste_testkit::records;
use serde_json::{Value, json};

use crate::aws::{KEY, SUBSCRIPTION, TOPIC, topic_name};

const EVENT: &str =
    r#"{"specversion":"1.0","id":"1","source":"/shop","type":"order.paid","data":{"id":1}}"#;

/// A batch of a queue without a record: what the glue costs by itself.
pub(crate) fn empty_batch() -> Vec<u8> {
    json!({ "Records": [] }).to_string().into_bytes()
}

/// A batch of one delivery of one event that is due since `now`.
pub(crate) fn delivery(now: Timestamp) -> Vec<u8> {
    let to = (topic_name(), records::subscription_name(SUBSCRIPTION));
    let delivery = records::delivery(to, "k", [EventPayload::Inline(Bytes::from(EVENT))], now);
    let record = json!({
        "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d",
        "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
        "body": String::from_utf8_lossy(&render_delivery(&delivery)),
        "attributes": {
            "ApproximateReceiveCount": "1",
            "SentTimestamp": now.as_millis().to_string(),
            "SenderId": "AIDAIENQZJOLO23YVJ4VO",
            "ApproximateFirstReceiveTimestamp": now.as_millis().to_string(),
        },
        "messageAttributes": {},
        "md5OfBody": "0",
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:deliveries",
        "awsRegion": "us-east-1",
    });
    json!({ "Records": [record] }).to_string().into_bytes()
}

/// A request that publishes one event.
pub(crate) fn publish() -> Vec<u8> {
    let path = format!("/topics/{TOPIC}/events");
    let headers = json!({ "content-type": "application/cloudevents+json", "aeg-sas-key": KEY });
    function_url("POST", &path, &headers, EVENT)
}

/// The same with a wrong key: what is refused before any work.
pub(crate) fn unauthorized() -> Vec<u8> {
    let path = format!("/topics/{TOPIC}/events");
    let headers = json!({ "content-type": "application/cloudevents+json", "aeg-sas-key": "wrong" });
    function_url("POST", &path, &headers, EVENT)
}

/// A question to manage without its key.
pub(crate) fn without_key() -> Vec<u8> {
    function_url("GET", "/topics", &json!({}), "")
}

/// A request to a Function URL, payload format 2.0.
/// <https://docs.aws.amazon.com/lambda/latest/dg/urls-invocation.html#urls-payloads>
fn function_url(method: &str, path: &str, headers: &Value, body: &str) -> Vec<u8> {
    let host = "abcdefgh.lambda-url.us-east-1.on.aws";
    json!({
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": "",
        "headers": headers,
        "requestContext": {
            "accountId": "anonymous",
            "apiId": "abcdefgh",
            "domainName": host,
            "domainPrefix": "abcdefgh",
            "http": {
                "method": method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "203.0.113.7",
                "userAgent": "curl/8",
            },
            "requestId": "8476a536-e9f4-11e8-9739-2dfe598c3fcd",
            "routeKey": "$default",
            "stage": "$default",
            "time": "12/Mar/2026:19:03:58 +0000",
            "timeEpoch": 1_773_342_238_000_u64,
        },
        "body": body,
        "isBase64Encoded": false,
    })
    .to_string()
    .into_bytes()
}
