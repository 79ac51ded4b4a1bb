//! The JSON of a problem.

use std::borrow::Cow;

use serde::Serialize;
use utoipa::ToSchema;

use crate::pressure::{PressureLevel, Resource};

/// One of several mistakes in a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProblemError {
    /// The member at fault.
    #[schema(example = "retryPolicy.schedule[1]")]
    pub member: String,
    /// The fault.
    pub detail: String,
}

/// The JSON of a problem (RFC 9457), with the extension members `member`, `index`, `resource`,
/// `level` and `errors`.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody<'a> {
    /// The kind of problem: a URN `urn:posthaste:problem:…`, or `about:blank` where the status
    /// says it all.
    #[serde(rename = "type")]
    #[schema(example = "urn:posthaste:problem:bad-settings")]
    pub(super) type_uri: Cow<'a, str>,
    /// The title of the kind, the same every time.
    pub(super) title: &'a str,
    /// The status of the answer.
    #[schema(example = 400)]
    pub(super) status: u16,
    /// The fault this time, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<&'a str>,
    /// The member at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "endpoint.url")]
    pub(super) member: Option<&'a str>,
    /// The place of the event at fault in the request, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) index: Option<usize>,
    /// Under back pressure, the resource because of which the request was not accepted, as `GET
    /// /pressure` names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "submission-queue")]
    pub(super) resource: Option<Resource>,
    /// The level of that resource: `medium` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, example = "medium")]
    pub(super) level: Option<PressureLevel>,
    /// All mistakes of the body, at most 50. Left out where there is only one.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub(super) errors: &'a [ProblemError],
}
