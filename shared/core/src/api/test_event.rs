//! The one attempt with a test event, as it is shown: what was sent, and what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// One attempt, and what came of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestAttempt {
    /// Whether the endpoint took the event: whether its status is 200 to 204 and, with
    /// `partialAcknowledgement`, its answer does not report the event as failed.
    pub delivered: bool,
    /// `Delivered`, or what a dead letter would have as its `lastDeliveryOutcome`.
    #[schema(example = "NotFound")]
    pub outcome: String,
    /// The reason for which the event was not taken, where the status does not say it: there was
    /// no answer, or the answer reports the event as failed or cannot be understood.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// From the start of the attempt to its end, in milliseconds.
    pub took_ms: u64,
    /// The request as it was sent.
    pub request: TestRequest,
    /// The answer, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<TestResponse>,
}

/// A request as it was sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TestRequest {
    /// The method.
    pub method: String,
    /// The URL.
    pub url: String,
    /// The headers; secret ones are masked.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: String,
}

/// A response as it was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TestResponse {
    /// The status.
    pub status: u16,
    /// The headers. Bytes that are no text are shown as U+FFFD.
    pub headers: BTreeMap<String, String>,
    /// The first 64 KiB of the body at most, in its character set. Bytes that are no text are shown
    /// as U+FFFD. Of a body with a content coding, or in a character set that is not read, its size
    /// and their name.
    pub body: String,
    /// Whether that is all of the body.
    pub body_is_whole: bool,
}
