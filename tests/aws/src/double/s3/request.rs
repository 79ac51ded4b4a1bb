//! Requests, read from method, path, query and headers. Unknown headers and parameters that would
//! change the meaning are refused, so that the double never pretends to support them.

use std::ops::RangeInclusive;

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_LENGTH, HeaderMap, IF_MATCH, IF_NONE_MATCH, RANGE};
use http::request::Parts;
use percent_encoding::percent_decode_str;

use super::super::digest::sha256_of;
use super::super::journal::Action;
use super::error::{Error, KEY_BYTES_MAX};
use super::list::Page;

/// The header with the digest of the body.
const CONTENT_SHA256: &str = "x-amz-content-sha256";

/// A request to S3.
#[derive(Debug)]
pub(crate) struct Call {
    pub(super) bucket: String,
    pub(super) request: Request,
}

/// The action on the bucket.
#[derive(Debug)]
pub(super) enum Request {
    Get {
        key: String,
        if_none_match: Option<String>,
        range: Option<RangeInclusive<usize>>,
    },
    Put {
        key: String,
        bytes: Bytes,
        condition: Option<Condition>,
    },
    Delete {
        key: String,
    },
    List(Page),
}

/// The condition of a put.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    IfAbsent,
    IfMatch(String),
}

impl Call {
    pub(crate) fn parse(parts: &Parts, body: Bytes) -> Result<Self, Error> {
        let path = percent_decode_str(parts.uri.path()).decode_utf8();
        let path = path.map_err(|_| Error::invalid_argument("key"))?;
        let path = path.strip_prefix('/').unwrap_or_default();
        let (bucket, key) = path.split_once('/').unwrap_or((path, ""));
        if key.len() > KEY_BYTES_MAX {
            return Err(Error::key_too_long());
        }
        let request = Request::parse(parts, key.to_owned(), body)?;
        Ok(Self {
            bucket: bucket.to_owned(),
            request,
        })
    }

    pub(crate) fn action(&self) -> Action {
        match self.request {
            Request::Get { .. } => Action::GetObject,
            Request::Put { .. } => Action::PutObject,
            Request::Delete { .. } => Action::DeleteObject,
            Request::List(_) => Action::ListObjects,
        }
    }
}

impl Request {
    fn parse(parts: &Parts, key: String, body: Bytes) -> Result<Self, Error> {
        let headers = &parts.headers;
        let query = parts.uri.query().unwrap_or_default();
        match (&parts.method, key.is_empty()) {
            (&Method::GET, true) => Page::parse(query).map(Self::List),
            (&Method::GET, false) => {
                check(headers, &["if-match", "if-modified-since"])?;
                let if_none_match = text(headers, IF_NONE_MATCH.as_str());
                Ok(Self::Get {
                    key,
                    if_none_match,
                    range: range(headers)?,
                })
            }
            (&Method::PUT, false) => {
                check(
                    headers,
                    &[
                        "x-amz-copy-source",
                        "x-amz-decoded-content-length",
                        "content-md5",
                    ],
                )?;
                check_body(headers, &body)?;
                Ok(Self::Put {
                    key,
                    bytes: body,
                    condition: Condition::parse(headers)?,
                })
            }
            (&Method::DELETE, false) => {
                check(headers, &["if-match"])?;
                Ok(Self::Delete { key })
            }
            (method, _) => Err(Error::not_implemented(method.as_str())),
        }
    }
}

impl Condition {
    /// `If-None-Match` takes nothing but `*`.
    /// <https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html>
    fn parse(headers: &HeaderMap) -> Result<Option<Self>, Error> {
        match (
            text(headers, IF_NONE_MATCH.as_str()),
            text(headers, IF_MATCH.as_str()),
        ) {
            (None, None) => Ok(None),
            (Some(star), None) if star == "*" => Ok(Some(Self::IfAbsent)),
            (None, Some(etag)) => Ok(Some(Self::IfMatch(etag))),
            (Some(_), _) => Err(Error::not_implemented("If-None-Match")),
        }
    }
}

fn check(headers: &HeaderMap, refused: &[&str]) -> Result<(), Error> {
    refused
        .iter()
        .find(|name| headers.contains_key(**name))
        .map_or(Ok(()), |name| Err(Error::not_implemented(name)))
}

/// The first and the last byte that are asked for. Ranges without an end, from the end and several
/// at once are not supported.
fn range(headers: &HeaderMap) -> Result<Option<RangeInclusive<usize>>, Error> {
    let Some(text) = text(headers, RANGE.as_str()) else {
        return Ok(None);
    };
    let (first, last) = text
        .strip_prefix("bytes=")
        .and_then(|range| range.split_once('-'))
        .unwrap_or_default();
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(Some(first..=last)),
        _ => Err(Error::not_implemented("Range")),
    }
}

fn check_body(headers: &HeaderMap, body: &[u8]) -> Result<(), Error> {
    if !headers.contains_key(CONTENT_LENGTH) {
        return Err(Error::no_length());
    }
    let digest = sha256_of(body);
    match text(headers, CONTENT_SHA256) {
        Some(said) if said == digest || said == "UNSIGNED-PAYLOAD" => Ok(()),
        Some(said) if said.starts_with("STREAMING-") => Err(Error::not_implemented(CONTENT_SHA256)),
        _ => Err(Error::bad_digest()),
    }
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned)
}
