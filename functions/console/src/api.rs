//! The management API, called in the same process: the pages ask what any client could ask, and get
//! the same responses.

use std::fmt::Write;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, HeaderName, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use posthaste_core::api::AuditCaller;
use posthaste_core::api::events::ListTime;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tower::ServiceExt;
use url::form_urlencoded;

/// The characters that are escaped in a part of a path. Those of the API's own words are not,
/// because a router looks for them as they are. A dot is, because browsers take `..` for the folder
/// above.
pub(crate) const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// The API.
#[derive(Debug, Clone)]
pub(crate) struct ManageApi {
    router: Router,
    caller: AuditCaller,
    /// The time that lists may take. `None` for that of the API.
    list_time: Option<ListTime>,
}

/// The URL of a request.
#[derive(Debug, Clone)]
pub(crate) struct RequestTarget(String);

impl RequestTarget {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A path of these parts.
    pub(crate) fn new(parts: &[&str]) -> Self {
        let mut path = String::new();
        for part in parts {
            // Writing to a text cannot fail.
            let _ = write!(path, "/{}", utf8_percent_encode(part, ESCAPED));
        }
        Self(path)
    }

    /// The same with a parameter, if there is a value.
    pub(crate) fn query(self, name: &str, value: Option<impl ToString>) -> Self {
        let Some(value) = value else { return self };
        let pair = form_urlencoded::Serializer::new(String::new())
            .append_pair(name, &value.to_string())
            .finish();
        let mark = if self.0.contains('?') { '&' } else { '?' };
        Self(format!("{}{mark}{pair}", self.0))
    }
}

/// A condition of a write: a header and its value.
type WriteCondition<'a> = Option<(HeaderName, &'a str)>;

/// A response of success.
#[derive(Debug)]
pub(crate) struct ApiResponse<T> {
    pub(crate) etag: Option<String>,
    pub(crate) body: T,
}

/// A response that is a problem.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct ApiRefusal {
    #[serde(default)]
    pub(crate) status: u16,
    #[serde(default)]
    pub(crate) title: String,
    pub(crate) detail: Option<String>,
    pub(crate) member: Option<String>,
    #[serde(default)]
    pub(crate) errors: Vec<MemberError>,
}

/// One of several mistakes.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct MemberError {
    pub(crate) member: String,
    pub(crate) detail: String,
}

impl ApiRefusal {
    /// The status, as the page has it.
    pub(crate) fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whether it is unknown if a change was made: a store failed or took too long.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.status >= 500
    }

    /// Whether the resource is not of the version that was asked for.
    pub(crate) fn is_version_conflict(&self) -> bool {
        self.status == 412
    }

    /// The mistake in a member, if there is one.
    pub(crate) fn member_mistake(&self, member: &str) -> Option<&str> {
        let first = self.member.as_deref().zip(self.detail.as_deref());
        let others = self
            .errors
            .iter()
            .map(|error| (error.member.as_str(), error.detail.as_str()));
        others
            .chain(first)
            .find(|(at, _)| *at == member)
            .map(|(_, detail)| detail)
    }
}

impl ManageApi {
    pub(crate) fn new(router: Router) -> Self {
        Self {
            router,
            caller: AuditCaller::default(),
            list_time: None,
        }
    }

    /// The same for requests of this visitor.
    pub(crate) fn for_caller(self, caller: AuditCaller) -> Self {
        Self { caller, ..self }
    }

    /// The same for a list of which a page shows what is found in this time.
    pub(crate) fn within(&self, time: Duration) -> Self {
        Self {
            list_time: Some(ListTime(time)),
            ..self.clone()
        }
    }

    /// Asks for a resource.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        target: RequestTarget,
    ) -> Result<T, ApiRefusal> {
        Ok(self.get_versioned(target).await?.body)
    }

    /// Asks for a resource with its version.
    pub(crate) async fn get_versioned<T: DeserializeOwned>(
        &self,
        target: RequestTarget,
    ) -> Result<ApiResponse<T>, ApiRefusal> {
        self.call_for_json(Method::GET, target, None, Bytes::new())
            .await
    }

    /// Asks for the bytes of an object.
    pub(crate) async fn get_bytes(
        &self,
        target: RequestTarget,
    ) -> Result<(HeaderMap, Bytes), ApiRefusal> {
        self.call(Method::GET, target, None, Bytes::new()).await
    }

    /// Sends a POST without a body.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        target: RequestTarget,
    ) -> Result<T, ApiRefusal> {
        Ok(self
            .call_for_json(Method::POST, target, None, Bytes::new())
            .await?
            .body)
    }

    /// Sends a body, which is written only if the resource still has the version `if_match`.
    pub(crate) async fn send_json<T: DeserializeOwned>(
        &self,
        method: Method,
        target: RequestTarget,
        if_match: Option<&str>,
        body: &impl Serialize,
    ) -> Result<ApiResponse<T>, ApiRefusal> {
        let condition = if_match.map(|version| (IF_MATCH, version));
        self.call_for_json(method, target, condition, to_json_bytes(body))
            .await
    }

    /// Puts a resource that must not be there yet.
    pub(crate) async fn create<T: DeserializeOwned>(
        &self,
        target: RequestTarget,
        body: &impl Serialize,
    ) -> Result<ApiResponse<T>, ApiRefusal> {
        self.call_for_json(
            Method::PUT,
            target,
            Some((IF_NONE_MATCH, "*")),
            to_json_bytes(body),
        )
        .await
    }

    /// Ends a resource, and returns its state after that.
    pub(crate) async fn end_resource<T: DeserializeOwned>(
        &self,
        target: RequestTarget,
    ) -> Result<T, ApiRefusal> {
        Ok(self
            .call_for_json(Method::DELETE, target, None, Bytes::new())
            .await?
            .body)
    }

    /// Deletes a resource. The response has no body.
    pub(crate) async fn delete(&self, target: RequestTarget) -> Result<(), ApiRefusal> {
        self.call(Method::DELETE, target, None, Bytes::new())
            .await
            .map(drop)
    }

    async fn call_for_json<T: DeserializeOwned>(
        &self,
        method: Method,
        target: RequestTarget,
        condition: WriteCondition<'_>,
        body: Bytes,
    ) -> Result<ApiResponse<T>, ApiRefusal> {
        let (headers, bytes) = self.call(method, target, condition, body).await?;
        let etag = headers
            .get(ETAG)
            .and_then(|etag| etag.to_str().ok())
            .map(str::to_owned);
        match serde_json::from_slice(&bytes) {
            Ok(body) => Ok(ApiResponse { etag, body }),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "an answer of the API is not as it says"
                );
                Err(ApiRefusal {
                    status: 500,
                    title: "The answer cannot be read".to_owned(),
                    ..ApiRefusal::default()
                })
            }
        }
    }

    async fn call(
        &self,
        method: Method,
        target: RequestTarget,
        condition: WriteCondition<'_>,
        body: Bytes,
    ) -> Result<(HeaderMap, Bytes), ApiRefusal> {
        let mut request = Request::builder().method(method).uri(target.0);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some((name, value)) = condition {
            request = request.header(name, value);
        }
        if let Some(time) = self.list_time {
            request = request.extension(time);
        }
        let request = request
            .extension(self.caller.clone())
            .body(Body::from(body))
            .map_err(|_| ApiRefusal::invalid_address())?;
        let response = Box::pin(self.router.clone().oneshot(request))
            .await
            .unwrap_or_else(|never| match never {});
        let (head, body) = response.into_parts();
        // The body is whole in memory already, so it does not end early.
        let bytes = body
            .collect()
            .await
            .map(http_body_util::Collected::to_bytes)
            .unwrap_or_default();
        if head.status.is_success() {
            return Ok((head.headers, bytes));
        }
        let refusal: ApiRefusal = serde_json::from_slice(&bytes).unwrap_or_default();
        Err(ApiRefusal {
            status: head.status.as_u16(),
            ..refusal
        })
    }
}

fn to_json_bytes(body: &impl Serialize) -> Bytes {
    // Texts and numbers with text keys: serialising them cannot fail.
    Bytes::from(serde_json::to_vec(body).unwrap_or_default())
}

impl ApiRefusal {
    fn invalid_address() -> Self {
        Self {
            status: 400,
            title: "This address is not valid".to_owned(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_parameters_are_escaped() {
        let target = RequestTarget::new(&["dead-letters", "a b/c", "events", "?x#é"]);
        let target = target
            .query("type", Some("a&b"))
            .query("status", None::<String>)
            .query("limit", Some(5));
        assert_eq!(
            target.0,
            "/dead-letters/a%20b%2Fc/events/%3Fx%23%C3%A9?type=a%26b&limit=5"
        );
    }
}
