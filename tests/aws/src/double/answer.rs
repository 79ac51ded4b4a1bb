//! What a service answers, before it is an HTTP response.

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
}

impl Answer {
    pub(super) fn new(status: StatusCode) -> Self {
        Self { status, headers: vec![], body: Bytes::new() }
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn body(self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..self.header("content-type", content_type) }
    }

    pub(super) fn into_response(self) -> Result<Response<Full<Bytes>>, http::Error> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(Full::new(self.body))
    }
}
