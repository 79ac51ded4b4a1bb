//! The answer of a service before it is an HTTP response, and the body of one.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

/// An answer in the making.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    headers: Vec<(&'static str, String)>,
    body: Bytes,
    is_cut: bool,
}

/// The body of a response.
#[derive(Debug)]
pub(super) enum AnswerBody {
    Whole(Full<Bytes>),
    /// The first half of a body of this length, after which the connection fails.
    Cut(Option<Bytes>, u64),
}

/// The body ends here, as the script says.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut")]
pub(super) struct Cut;

impl Answer {
    pub(super) fn new(status: StatusCode) -> Self {
        Self {
            status,
            headers: vec![],
            body: Bytes::new(),
            is_cut: false,
        }
    }

    /// Adds the id of the request, which no other request has.
    pub(super) fn numbered(self, number: u64) -> Self {
        let id = format!("{number:016X}");
        self.header("x-amz-request-id", id.clone())
            .header("x-amzn-requestid", id)
    }

    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub(super) fn body(self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self {
            body: body.into(),
            ..self.header("content-type", content_type)
        }
    }

    /// Cuts the answer so that only half its body arrives.
    pub(super) fn cut(self) -> Self {
        Self {
            is_cut: true,
            ..self
        }
    }

    pub(super) fn into_response(self) -> Result<Response<AnswerBody>, http::Error> {
        let mut response = Response::builder().status(self.status);
        for (name, value) in self.headers {
            response = response.header(name, value);
        }
        response.body(if self.is_cut {
            AnswerBody::Cut(
                Some(self.body.slice(..self.body.len() / 2)),
                self.body.len() as u64,
            )
        } else {
            AnswerBody::Whole(Full::new(self.body))
        })
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body)
                .poll_frame(cx)
                .map_err(|never: Infallible| match never {}),
            Self::Cut(half, _) => Poll::Ready(Some(half.take().map(Frame::data).ok_or(Cut))),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Cut(_, length) => SizeHint::with_exact(*length),
        }
    }
}
