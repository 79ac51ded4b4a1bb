//! The response to a Function URL or an HTTP API.

use std::collections::BTreeMap;
use std::string::FromUtf8Error;

use axum::body::Body;
use axum::http::header::{CONTENT_LENGTH, SET_COOKIE};
use axum::http::{HeaderMap, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use serde::Serialize;

/// Most bytes of a function's response, as the JSON that it is sent in.
/// <https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>
const LAMBDA_ANSWER_BYTES_MAX: usize = 6 * 1024 * 1024;

/// Bytes of a response that are kept for status, headers and the JSON around them. Ours take a few
/// hundred.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// Most bytes of a body, as the JSON text that it is sent in.
const BODY_BYTES_MAX: usize = LAMBDA_ANSWER_BYTES_MAX - HEAD_BYTES_MAX;

/// A response as Lambda takes it.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct UrlResponse {
    status_code: u16,
    /// There is one text per name; several values are joined by commas.
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    cookies: Vec<String>,
    body: String,
    is_base64_encoded: bool,
}

/// Reasons for which a response cannot be sent. The client gets this text instead.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResponseError {
    #[error("the answer broke off")]
    Body(#[source] axum::Error),
    #[error("the answer has {0} bytes, more than Lambda carries; read the object from its bucket")]
    TooLarge(usize),
}

impl ResponseError {
    /// The problem that the client gets instead.
    pub(super) fn problem(&self) -> ApiProblem {
        let kind = match self {
            Self::Body(_) => ProblemKind::Internal,
            Self::TooLarge(_) => ProblemKind::AnswerTooLarge,
        };
        ApiProblem::new(kind).detail(self.to_string())
    }
}

impl UrlResponse {
    /// Reads the whole response.
    pub(super) async fn read_whole(response: Response<Body>) -> Result<Self, ResponseError> {
        let (head, body) = response.into_parts();
        // Every response is made in memory: reading it takes no more than what is there.
        let body = axum::body::to_bytes(body, usize::MAX)
            .await
            .map_err(ResponseError::Body)?;
        let bytes = body.len();
        let answer = Self::from_response(Response::from_parts(head, body));
        if json_bytes(&answer.body) > BODY_BYTES_MAX {
            Err(ResponseError::TooLarge(bytes))
        } else {
            Ok(answer)
        }
    }

    /// The response, of whatever size.
    pub(super) fn from_response(response: Response<Bytes>) -> Self {
        let (head, body) = response.into_parts();
        let (body, is_base64_encoded) = encode_body(body);
        Self {
            status_code: head.status.as_u16(),
            headers: join_headers(&head.headers),
            cookies: head
                .headers
                .get_all(SET_COOKIE)
                .iter()
                .map(|cookie| lossy_text(cookie.as_bytes()))
                .collect(),
            body,
            is_base64_encoded,
        }
    }
}

/// The length of a text as a JSON string, without its quotes.
fn json_bytes(text: &str) -> usize {
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => r"\n".len(),
            0..=0x1f => r"\u0000".len(),
            _ => 1,
        })
        .sum()
}

/// The body as text if it is UTF-8, whatever its content type says, and in base64 otherwise: no
/// byte is lost. Text that would not fit because of its escapes goes in base64 too, which never
/// adds more than a third.
fn encode_body(body: Bytes) -> (String, bool) {
    match String::from_utf8(Vec::from(body)) {
        Ok(text) if json_bytes(&text) > BODY_BYTES_MAX => (BASE64_STANDARD.encode(text), true),
        Ok(text) => (text, false),
        Err(error) => (
            BASE64_STANDARD.encode(FromUtf8Error::as_bytes(&error)),
            true,
        ),
    }
}

/// The headers without cookies, which have their own member, and without the length, which Lambda
/// sets itself: axum sets one where there must be none, as with 204.
fn join_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut joined: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        if name == SET_COOKIE || name == CONTENT_LENGTH {
            continue;
        }
        let value = lossy_text(value.as_bytes());
        joined
            .entry(name.as_str().to_owned())
            .and_modify(|before| {
                before.push_str(", ");
                before.push_str(&value);
            })
            .or_insert(value);
    }
    joined
}

/// Ours are ASCII; JSON could not carry others.
fn lossy_text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::model::DEAD_LETTER_OBJECT_BYTES_PREFERRED;

    async fn check(body: &[u8], is_base64_encoded: bool) {
        let answer = UrlResponse::read_whole(Response::new(Body::from(body.to_vec())))
            .await
            .unwrap();
        let json = serde_json::to_value(&answer).unwrap();
        assert_eq!(json["isBase64Encoded"], is_base64_encoded);
        let text = json["body"].as_str().unwrap();
        let bytes = if is_base64_encoded {
            BASE64_STANDARD.decode(text).unwrap()
        } else {
            text.into()
        };
        assert_eq!(bytes, body);
        assert_eq!(
            json_bytes(&answer.body) + 2,
            serde_json::to_string(&answer.body).unwrap().len()
        );
    }

    #[tokio::test]
    async fn body_loses_no_byte() {
        check(b"", false).await;
        check(r#"{"a":"Grüße\n"}"#.as_bytes(), false).await;
        check(&[0xff, 0xfe], true).await;
        let ascii: Vec<u8> = (0..0x80).collect();
        check(&ascii, false).await;
        let all: Vec<u8> = (0..=0xff).collect();
        check(&all, true).await;
    }

    /// A response larger than Lambda carries is refused by its size in JSON.
    #[tokio::test]
    async fn response_above_the_lambda_limit_is_refused_by_json_size() {
        let room = BODY_BYTES_MAX;
        let read =
            async |body: Vec<u8>| UrlResponse::read_whole(Response::new(Body::from(body))).await;
        assert!(read(vec![b'a'; room]).await.is_ok());
        assert!(
            matches!(read(vec![b'a'; room + 1]).await, Err(ResponseError::TooLarge(n)) if n == room + 1)
        );
        for byte in [b'"', 0xff] {
            assert!(matches!(
                read(vec![byte; room / 4 * 3 + 3]).await,
                Err(ResponseError::TooLarge(_))
            ));
        }
    }

    #[tokio::test]
    async fn a_dead_letter_object_fits_whatever_is_in_it() {
        for (byte, is_base64_encoded) in [(b'a', false), (b'"', true), (0x01, true), (0xff, true)] {
            check(
                &vec![byte; DEAD_LETTER_OBJECT_BYTES_PREFERRED],
                is_base64_encoded,
            )
            .await;
        }
    }

    #[test]
    fn header_values_are_joined_and_cookies_stand_apart() {
        let mut response = Response::new(Bytes::new());
        for (name, value) in [
            ("vary", "accept"),
            ("set-cookie", "a=1"),
            ("vary", "origin"),
            ("set-cookie", "b=2"),
        ] {
            response.headers_mut().append(name, value.parse().unwrap());
        }
        let json = serde_json::to_string(&UrlResponse::from_response(response)).unwrap();
        assert_eq!(
            json,
            concat!(
                r#"{"statusCode":200,"headers":{"vary":"accept, origin"},"#,
                r#""cookies":["a=1","b=2"],"body":"","isBase64Encoded":false}"#
            )
        );
    }
}
