//! Bodies: a request's slices as they are, and at most the first 64 KiB of a response.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use posthaste_core::model::RESPONSE_BODY_BYTES_MAX;

/// A request body of slices, sent one after the other without copying them together. Its size is
/// known, so it is never sent in chunks.
pub(crate) struct SlicesBody {
    slices: vec::IntoIter<Bytes>,
    bytes_left: u64,
}

impl SlicesBody {
    pub(crate) fn new(slices: Vec<Bytes>) -> Self {
        let bytes_left = slices.iter().map(|slice| slice.len() as u64).sum();
        Self {
            slices: slices.into_iter(),
            bytes_left,
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.bytes_left
    }
}

impl Body for SlicesBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let slice = self.slices.find(|slice| !slice.is_empty());
        self.bytes_left -= slice.as_ref().map_or(0, |slice| slice.len() as u64);
        Poll::Ready(slice.map(|slice| Ok(Frame::data(slice))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes_left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes_left)
    }
}

/// The first bytes of a response body, at most [`RESPONSE_BODY_BYTES_MAX`]. They are kept apart
/// from the task that reads, so that they stay when the deadline ends the reading.
#[derive(Default)]
pub(crate) struct ReceivedBody {
    /// The body so far, if it came in one piece: most are small, and this one is not copied.
    first: Bytes,
    /// The whole body so far, once there was a second piece.
    joined: BytesMut,
}

impl ReceivedBody {
    /// Reads `body` and returns whether it was read to its end.
    pub(crate) async fn read_from(&mut self, body: &mut Incoming) -> bool {
        while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await
        {
            let Ok(frame) = frame else { return false };
            // Trailers have no use here.
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if !self.push(data) {
                return false;
            }
        }
        true
    }

    /// Adds the part of a piece that there is room for, and returns whether that was all of it.
    pub(crate) fn push(&mut self, mut piece: Bytes) -> bool {
        let room = RESPONSE_BODY_BYTES_MAX - self.len();
        let fits = piece.len() <= room;
        piece.truncate(room);
        if self.len() == 0 {
            self.first = piece;
        } else {
            self.joined
                .extend_from_slice(&std::mem::take(&mut self.first));
            self.joined.extend_from_slice(&piece);
        }
        fits
    }

    fn len(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    /// The bytes that were read.
    pub(crate) fn into_bytes(self) -> Bytes {
        if self.joined.is_empty() {
            self.first
        } else {
            self.joined.freeze()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_received(pieces: &[usize], expected_len: usize, expected_fit: bool) {
        let mut received = ReceivedBody::default();
        let mut fits = true;
        let mut byte = 0u8;
        let mut sent = Vec::new();
        for len in pieces {
            byte += 1;
            sent.extend(std::iter::repeat_n(byte, *len));
            fits = received.push(Bytes::from(vec![byte; *len]));
            if !fits {
                break;
            }
        }
        assert_eq!(fits, expected_fit, "{pieces:?}");
        assert_eq!(received.into_bytes(), sent[..expected_len], "{pieces:?}");
    }

    #[test]
    fn a_response_body_is_kept_to_its_limit() {
        const MAX: usize = RESPONSE_BODY_BYTES_MAX;
        check_received(&[], 0, true);
        check_received(&[5], 5, true);
        check_received(&[5, 6, 0, 7], 18, true);
        check_received(&[MAX], MAX, true);
        check_received(&[MAX + 1], MAX, false);
        check_received(&[1, MAX - 1], MAX, true);
        check_received(&[1, MAX], MAX, false);
        check_received(&[MAX, 1], MAX, false);
    }

    #[test]
    fn a_request_body_is_its_slices_and_knows_its_size() {
        let mut body = SlicesBody::new(["[", "", "{}", "]", ""].map(Bytes::from).to_vec());
        assert_eq!((body.len(), body.is_end_stream()), (4, false));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        let mut seen = Vec::new();
        while let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut body).poll_frame(&mut cx) {
            seen.push(frame.into_data().unwrap());
        }
        assert_eq!(seen, ["[", "{}", "]"]);
        assert_eq!((body.len(), body.is_end_stream()), (0, true));
    }
}
