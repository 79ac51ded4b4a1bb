//! The management API, called in the same process: the pages ask what any client could ask, and get the same
//! answers.

use std::fmt::Write;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, ETAG, IF_MATCH};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use bytes::Bytes;
use http_body_util::BodyExt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tower::ServiceExt;
use url::form_urlencoded;

/// The characters that are escaped in a part of a path. Routes are compared as they are written, so hyphens
/// stay.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~');

/// The API.
#[derive(Debug, Clone)]
pub(crate) struct Api(Router);

/// The URL of a request.
#[derive(Debug, Clone)]
pub(crate) struct Target(String);

impl Target {
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
        let pair =
            form_urlencoded::Serializer::new(String::new()).append_pair(name, &value.to_string()).finish();
        let mark = if self.0.contains('?') { '&' } else { '?' };
        Self(format!("{}{mark}{pair}", self.0))
    }
}

/// An answer of success.
#[derive(Debug)]
pub(crate) struct Answered<T> {
    pub(crate) status: StatusCode,
    pub(crate) etag: Option<String>,
    pub(crate) body: T,
}

/// An answer that is a problem.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct Refusal {
    #[serde(default)]
    pub(crate) status: u16,
    #[serde(default, rename = "type")]
    pub(crate) kind: String,
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

impl Refusal {
    /// The status, as the page has it.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// Whether what was asked for is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.status == 404
    }
}

impl Api {
    pub(crate) const fn new(router: Router) -> Self {
        Self(router)
    }

    /// Asks for a resource.
    pub(crate) async fn get<T: DeserializeOwned>(&self, target: Target) -> Result<T, Refusal> {
        Ok(self.get_versioned(target).await?.body)
    }

    /// Asks for a resource with its version.
    pub(crate) async fn get_versioned<T: DeserializeOwned>(
        &self,
        target: Target,
    ) -> Result<Answered<T>, Refusal> {
        self.json(Method::GET, target, None, Bytes::new()).await
    }

    /// Asks for the bytes of an object.
    pub(crate) async fn bytes(&self, target: Target) -> Result<(HeaderMap, Bytes), Refusal> {
        let (_, headers, bytes) = self.call(Method::GET, target, None, Bytes::new()).await?;
        Ok((headers, bytes))
    }

    /// Sends a POST without a body.
    pub(crate) async fn post<T: DeserializeOwned>(&self, target: Target) -> Result<T, Refusal> {
        Ok(self.json(Method::POST, target, None, Bytes::new()).await?.body)
    }

    /// Sends a body, which is written only if the resource still has the version `if_match`.
    pub(crate) async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        target: Target,
        if_match: Option<&str>,
        body: &impl Serialize,
    ) -> Result<Answered<T>, Refusal> {
        // Texts and numbers with text keys: serialising them cannot fail.
        self.json(method, target, if_match, Bytes::from(serde_json::to_vec(body).unwrap_or_default())).await
    }

    /// Deletes a resource, which answers nothing.
    pub(crate) async fn delete(&self, target: Target) -> Result<(), Refusal> {
        self.call(Method::DELETE, target, None, Bytes::new()).await.map(drop)
    }

    async fn json<T: DeserializeOwned>(
        &self,
        method: Method,
        target: Target,
        if_match: Option<&str>,
        body: Bytes,
    ) -> Result<Answered<T>, Refusal> {
        let (status, headers, bytes) = self.call(method, target, if_match, body).await?;
        let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        match serde_json::from_slice(&bytes) {
            Ok(body) => Ok(Answered { status, etag, body }),
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn std::error::Error,
                    "an answer of the API is not as it says"
                );
                Err(Refusal {
                    status: 500,
                    title: "The answer cannot be read".to_owned(),
                    ..Refusal::default()
                })
            }
        }
    }

    async fn call(
        &self,
        method: Method,
        target: Target,
        if_match: Option<&str>,
        body: Bytes,
    ) -> Result<(StatusCode, HeaderMap, Bytes), Refusal> {
        let mut request = Request::builder().method(method).uri(target.0);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        if let Some(version) = if_match {
            request = request.header(IF_MATCH, version);
        }
        let request = request.body(Body::from(body)).map_err(|_| Refusal::unreadable())?;
        let response = Box::pin(self.0.clone().oneshot(request)).await.unwrap_or_else(|never| match never {});
        let (head, body) = response.into_parts();
        // The body is whole in memory already, so it does not end early.
        let bytes = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        if head.status.is_success() {
            return Ok((head.status, head.headers, bytes));
        }
        let refusal: Refusal = serde_json::from_slice(&bytes).unwrap_or_default();
        Err(Refusal { status: head.status.as_u16(), ..refusal })
    }
}

impl Refusal {
    fn unreadable() -> Self {
        Self { status: 400, title: "The page cannot be asked for".to_owned(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_parameters_are_escaped() {
        let target = Target::new(&["dead-letters", "a b/c", "events", "?x#é"]);
        let target =
            target.query("type", Some("a&b")).query("status", None::<String>).query("limit", Some(5));
        assert_eq!(target.0, "/dead-letters/a%20b%2Fc/events/%3Fx%23%C3%A9?type=a%26b&limit=5");
    }
}
