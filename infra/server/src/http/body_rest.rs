//! The rest of a request's body when it is answered: read and dropped, within bounds. A connection
//! that is closed while its client still sends is reset, and many a client then never sees the
//! answer.
//!
//! Of a body without a length it is not known how much is left. It keeps its connection only if it
//! was read to its end before the answer.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use ::http::{HeaderValue, Response, header};
use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use posthaste_ports::Clock;
use posthaste_services::timeout;
use tokio::sync::oneshot;

/// Most bytes that are read after the answer …
const LEFTOVER_BYTES_MAX: u64 = 32 * 1024 * 1024;

/// … and for how long.
const LEFTOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// Most bytes that are read before the answer of a body that has no length, was not asked for and
/// came with a request that succeeded. Most such bodies are empty: the last chunk is all there is.
const UNASKED_BYTES_MAX: u64 = 64 * 1024;

/// Longest wait for them.
const UNASKED_TIMEOUT: Duration = Duration::from_secs(1);

/// A body that comes back when its reader is done with it.
#[derive(Debug)]
pub(super) struct LentBody {
    body: Option<Incoming>,
    owner: Option<oneshot::Sender<BodyRest>>,
    was_read: bool,
    /// True once its reader was told that there is no more. The body itself does not know it where
    /// it has no length.
    is_ended: bool,
}

/// The rest of a body.
#[derive(Debug)]
pub(super) struct BodyRest {
    body: Incoming,
    /// True once any of it was asked for: until then a client that expects `100 Continue` has not
    /// sent it.
    was_read: bool,
}

/// Lends a body, and returns the way on which it comes back.
pub(super) fn lend_body(body: Incoming) -> (LentBody, oneshot::Receiver<BodyRest>) {
    let (owner, back) = oneshot::channel();
    (
        LentBody {
            body: Some(body),
            owner: Some(owner),
            was_read: false,
            is_ended: false,
        },
        back,
    )
}

impl HttpBody for LentBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.was_read = true;
        let polled = self
            .body
            .as_mut()
            .map_or(Poll::Ready(None), |body| Pin::new(body).poll_frame(context));
        self.is_ended |= matches!(polled, Poll::Ready(None));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.is_ended || self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map(HttpBody::size_hint)
            .unwrap_or_default()
    }
}

impl Drop for LentBody {
    fn drop(&mut self) {
        let is_read_whole = self.is_end_stream();
        let body = self.body.take().filter(|_| !is_read_whole);
        if let (Some(body), Some(owner)) = (body, self.owner.take()) {
            // An error means that the connection is gone, and the rest of the body with it.
            let _ = owner.send(BodyRest {
                body,
                was_read: self.was_read,
            });
        }
    }
}

impl BodyRest {
    /// Reads on to the end of a body that has no length. `None` if the end was reached.
    pub(super) async fn read_past_unasked(mut self, clock: &impl Clock) -> Option<Self> {
        if self.body.size_hint().exact().is_some() {
            return Some(self);
        }
        let is_ended = read_on(&mut self.body, clock, UNASKED_BYTES_MAX, UNASKED_TIMEOUT).await;
        (!is_ended).then_some(self)
    }
}

/// Reads the rest of a body while its answer is on the way. The answer says that the connection
/// closes where the rest is, or may be, too much to read.
pub(super) fn settle_unread<C: Clock>(
    left: BodyRest,
    asks_first: bool,
    response: &mut Response<Body>,
    clock: &C,
) {
    let BodyRest { body, was_read } = left;
    let is_within = body
        .size_hint()
        .exact()
        .is_some_and(|bytes| bytes <= LEFTOVER_BYTES_MAX);
    // A client that asked before it sends, and was not told to go on, may send its body or its next
    // request.
    let is_unsent = asks_first && !was_read;
    if is_unsent || !is_within {
        response
            .headers_mut()
            .insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if !is_unsent {
        tokio::spawn(read_and_discard(body, clock.clone()));
    }
}

async fn read_and_discard<C: Clock>(mut body: Incoming, clock: C) {
    read_on(&mut body, &clock, LEFTOVER_BYTES_MAX, LEFTOVER_TIMEOUT).await;
}

/// Reads and drops what is left of a body, within bounds. Returns whether the end was reached.
async fn read_on(
    body: &mut Incoming,
    clock: &impl Clock,
    bytes_max: u64,
    length: Duration,
) -> bool {
    let rest = async {
        let mut bytes = 0;
        loop {
            match body.frame().await {
                None => return true,
                Some(Err(_)) => return false,
                Some(Ok(frame)) => bytes += frame.data_ref().map_or(0, |data| data.len() as u64),
            }
            if bytes > bytes_max {
                return false;
            }
        }
    };
    timeout(clock, length, rest).await.unwrap_or(false)
}
