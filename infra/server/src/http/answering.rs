//! The body of an answer, which holds the place of its request until it has been handed to the
//! connection to its end: a client that reads slowly is still being answered.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};

use super::places::AnsweringRequest;
use super::under_way::CountedRequest;

/// A body that is being sent.
#[derive(Debug)]
struct SendingBody {
    body: Body,
    /// Both end with this.
    _answering: (AnsweringRequest, CountedRequest),
    /// True once any of the body was asked for.
    was_read: bool,
}

/// The same body, which keeps the request's place until it was sent.
pub(super) fn keep_place_until_sent(
    body: Body,
    answering: (AnsweringRequest, CountedRequest),
) -> Body {
    Body::new(SendingBody {
        body,
        _answering: answering,
        was_read: false,
    })
}

impl HttpBody for SendingBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.was_read = true;
        Pin::new(&mut self.body).poll_frame(context)
    }

    /// A body that has begun never says that it is over. The connection would drop it with its last
    /// piece, and that piece may be all of it and still to be sent. So it comes back for more,
    /// once it has room.
    fn is_end_stream(&self) -> bool {
        !self.was_read && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
