//! The bytes of a connection on their way in, and their bounds: an endpoint that never stops
//! sending ends with an error, and takes no turn from the other requests of its task.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

use crate::heads::ResponseHeads;
use crate::places::SocketPlace;
use crate::settings::ANSWER_WIRE_BYTES_MAX;

/// Reads of a socket in one turn of its task. A task has 128 of all its sockets (tokio's budget);
/// one that always has more to read would leave none to its neighbours.
const READS_AT_ONCE_MAX: u64 = 16;

/// The counts of the bytes that were read from a connection, shared with the task that drives it.
#[derive(Debug)]
pub(crate) struct WireMeter {
    reads_left: AtomicU64,
    bytes_left: AtomicU64,
    was_heard: AtomicBool,
    is_new_request: AtomicBool,
    is_head_awaited: AtomicBool,
    has_status: AtomicBool,
    is_unsendable: AtomicBool,
    is_spoiled: AtomicBool,
    is_beyond_bounds: AtomicBool,
}

impl WireMeter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            reads_left: AtomicU64::new(READS_AT_ONCE_MAX),
            bytes_left: AtomicU64::new(ANSWER_WIRE_BYTES_MAX),
            was_heard: AtomicBool::new(false),
            is_new_request: AtomicBool::new(false),
            is_head_awaited: AtomicBool::new(false),
            has_status: AtomicBool::new(false),
            is_unsendable: AtomicBool::new(false),
            is_spoiled: AtomicBool::new(false),
            is_beyond_bounds: AtomicBool::new(false),
        })
    }

    /// Begins to count for a new request.
    pub(crate) fn begin_request(&self) {
        self.bytes_left
            .store(ANSWER_WIRE_BYTES_MAX, Ordering::Relaxed);
        self.was_heard.store(false, Ordering::Relaxed);
        self.has_status.store(false, Ordering::Relaxed);
        self.is_head_awaited.store(true, Ordering::Relaxed);
        self.is_new_request.store(true, Ordering::Relaxed);
    }

    /// Notes that the head of the response was understood, so that it need not be kept.
    pub(crate) fn end_head(&self) {
        self.is_head_awaited.store(false, Ordering::Relaxed);
    }

    fn is_head_awaited(&self) -> bool {
        self.is_head_awaited.load(Ordering::Relaxed)
    }

    /// Begins a new turn of the connection's task.
    pub(crate) fn begin_turn(&self) {
        self.reads_left.store(READS_AT_ONCE_MAX, Ordering::Relaxed);
    }

    /// True if any byte of a response to the last request came.
    pub(crate) fn was_heard(&self) -> bool {
        self.was_heard.load(Ordering::Relaxed)
    }

    /// True if the status of a response to the last request came.
    pub(crate) fn has_status(&self) -> bool {
        self.has_status.load(Ordering::Relaxed)
    }

    /// True if the connection may not be used again: something could not be sent, or the response
    /// was odd.
    pub(crate) fn is_spoiled(&self) -> bool {
        self.is_spoiled.load(Ordering::Relaxed)
    }

    /// True if an endpoint sent more than it may.
    pub(crate) fn is_beyond_bounds(&self) -> bool {
        self.is_beyond_bounds.load(Ordering::Relaxed)
    }

    /// True if a write has failed: no other is tried.
    fn is_unsendable(&self) -> bool {
        self.is_unsendable.load(Ordering::Relaxed)
    }

    fn mark_spoiled(&self) {
        self.is_spoiled.store(true, Ordering::Relaxed);
    }

    fn bound_error(&self, text: &'static str) -> Error {
        self.is_beyond_bounds.store(true, Ordering::Relaxed);
        Error::new(ErrorKind::InvalidData, text)
    }

    /// Waits for the next turn where this one has read enough. That turn may read as much again,
    /// also in a handshake, where there is no driver yet.
    fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.reads_left.load(Ordering::Relaxed);
        if left == 0 {
            self.begin_turn();
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.reads_left.store(left - 1, Ordering::Relaxed);
        Poll::Ready(())
    }

    fn count_bytes(&self, bytes: usize) -> Result<()> {
        let left = self.bytes_left.load(Ordering::Relaxed);
        let left = left
            .checked_sub(bytes as u64)
            .ok_or_else(|| self.bound_error("an answer has too many bytes"))?;
        self.bytes_left.store(left, Ordering::Relaxed);
        Ok(())
    }
}

/// A connected socket and its place.
pub(crate) struct PlacedSocket {
    pub(crate) stream: TcpStream,
    pub(crate) place: SocketPlace,
}

/// A socket whose bytes are counted, below TLS: a session that sends nothing but its own messages
/// ends too.
///
/// The socket silently discards bytes that can no longer be sent. An endpoint may respond before it
/// has read a request, and close: the response can still be read, and if there is none, reading
/// ends.
pub(crate) struct MeteredSocket {
    // Closed before its place is freed.
    stream: TcpStream,
    meter: Arc<WireMeter>,
    _place: SocketPlace,
}

impl MeteredSocket {
    pub(crate) fn new(socket: PlacedSocket, meter: Arc<WireMeter>) -> Self {
        Self {
            stream: socket.stream,
            meter,
            _place: socket.place,
        }
    }

    /// The number of bytes to report as written: all of them, once one could not be.
    fn bytes_written(&self, written: Option<usize>, all: usize) -> usize {
        written.unwrap_or_else(|| {
            self.meter.mark_spoiled();
            self.meter.is_unsendable.store(true, Ordering::Relaxed);
            all
        })
    }
}

impl AsyncRead for MeteredSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        ready!(self.meter.poll_turn(cx));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(self.meter.count_bytes(buffer.filled().len() - before))
    }
}

/// The bytes below HTTP: plain, or in TLS. A TLS session is boxed, because it has a few kilobytes
/// and connections move in and out of the pool.
pub(crate) type WireStream = Either<MeteredSocket, Box<TlsStream<MeteredSocket>>>;

/// A wire that notes the progress of a response, keeps its head until that was understood, and ends
/// when there are too many interim ones.
///
/// Reading begins only after the first request was sent: hyper takes an earlier response, such as
/// the `503` of a balancer that is full, for a fault of the connection.
pub(crate) struct ListeningWire {
    wire: WireStream,
    meter: Arc<WireMeter>,
    heads: ResponseHeads,
    writing: WriteState,
}

/// The progress of the first write to a new connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteState {
    NotBegun { is_read_awaited: bool },
    Begun,
}

impl ListeningWire {
    pub(crate) fn new(wire: WireStream, meter: Arc<WireMeter>) -> Self {
        Self {
            wire,
            meter,
            heads: ResponseHeads::default(),
            writing: WriteState::NotBegun {
                is_read_awaited: false,
            },
        }
    }

    pub(crate) fn meter(&self) -> Arc<WireMeter> {
        Arc::clone(&self.meter)
    }

    /// Takes out the bytes that have come since the request began.
    pub(crate) fn take_heads(&mut self) -> Vec<u8> {
        self.meter.end_head();
        std::mem::take(&mut self.heads).into_bytes()
    }

    /// Notes a piece of a response.
    fn note_piece(&mut self, piece: &[u8]) -> Result<()> {
        self.meter.was_heard.store(true, Ordering::Relaxed);
        if self.meter.is_new_request.swap(false, Ordering::Relaxed) {
            self.heads.begin_request();
        }
        if !self.meter.is_head_awaited() {
            return Ok(());
        }
        if !self.heads.add_piece(piece) {
            return Err(self.meter.bound_error("there are too many interim answers"));
        }
        if self.heads.has_status() {
            self.meter.has_status.store(true, Ordering::Relaxed);
        }
        if self.heads.is_odd() {
            self.meter.mark_spoiled();
        }
        Ok(())
    }

    /// Lets the reading begin with the first write.
    fn begin_writing(&mut self, cx: &Context<'_>) {
        let before = std::mem::replace(&mut self.writing, WriteState::Begun);
        let is_read_awaited = WriteState::NotBegun {
            is_read_awaited: true,
        };
        if before == is_read_awaited {
            cx.waker().wake_by_ref();
        }
    }
}

impl AsyncRead for ListeningWire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        if let WriteState::NotBegun { is_read_awaited } = &mut self.writing {
            *is_read_awaited = true;
            return Poll::Pending;
        }
        if !self.meter.is_head_awaited() {
            self.heads.forget_read();
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.wire).poll_read(cx, buffer))?;
        let piece = &buffer.filled()[before..];
        // A read of no bytes is the end of the stream.
        if piece.is_empty() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Ready(self.note_piece(piece))
        }
    }
}

impl AsyncWrite for MeteredSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = if self.meter.is_unsendable() {
            None
        } else {
            ready!(Pin::new(&mut self.stream).poll_write(cx, bytes)).ok()
        };
        Poll::Ready(Ok(self.bytes_written(written, bytes.len())))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = if self.meter.is_unsendable() {
            None
        } else {
            ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, slices)).ok()
        };
        let all = slices.iter().map(|slice| slice.len()).sum();
        Poll::Ready(Ok(self.bytes_written(written, all)))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncWrite for ListeningWire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.begin_writing(cx);
        Pin::new(&mut self.wire).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.begin_writing(cx);
        Pin::new(&mut self.wire).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.wire).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    /// A metered socket whose other end has sent more than a turn reads.
    async fn flooded() -> (MeteredSocket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        peer.write_all(&[0; 100]).await.unwrap();
        stream.readable().await.unwrap();
        let place = crate::places::SocketPlaces::new(1).take().unwrap();
        (
            MeteredSocket::new(PlacedSocket { stream, place }, WireMeter::new()),
            peer,
        )
    }

    /// The number of bytes that are read one by one, and how the reading ended.
    fn read_all(metered: &mut MeteredSocket) -> (usize, Poll<String>) {
        let mut cx = Context::from_waker(Waker::noop());
        for count in 0.. {
            let mut byte = [0];
            match Pin::new(&mut *metered).poll_read(&mut cx, &mut ReadBuf::new(&mut byte)) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return (count, Poll::Ready(error.to_string())),
                Poll::Pending => return (count, Poll::Pending),
            }
        }
        unreachable!("the sender sent so much")
    }

    #[tokio::test]
    async fn connection_leaves_its_task_after_some_reads() {
        let (mut metered, _peer) = flooded().await;
        assert_eq!(read_all(&mut metered), (16, Poll::Pending));
        assert_eq!(read_all(&mut metered), (16, Poll::Pending));
    }

    /// Neither way to write reports that no bytes can be sent any more.
    #[tokio::test]
    async fn unsendable_bytes_are_accepted_and_spoil_the_connection() {
        for is_vectored in [false, true] {
            let (mut metered, _peer) = flooded().await;
            metered.shutdown().await.unwrap();
            assert!(!metered.meter.is_spoiled());
            let slices = [IoSlice::new(b"ab"), IoSlice::new(b"c")];
            let written = if is_vectored {
                metered.write_vectored(&slices).await
            } else {
                metered.write(b"abc").await
            };
            assert_eq!(written.unwrap(), 3, "{is_vectored}");
            assert!(metered.meter.is_spoiled(), "{is_vectored}");
        }
    }

    #[tokio::test]
    async fn driven_connection_has_all_reads_of_each_turn() {
        let (mut metered, _peer) = flooded().await;
        for _ in 0..3 {
            let mut bytes = [0; 10];
            let mut cx = Context::from_waker(Waker::noop());
            for byte in &mut bytes {
                let mut buffer = ReadBuf::new(std::slice::from_mut(byte));
                assert!(
                    Pin::new(&mut metered)
                        .poll_read(&mut cx, &mut buffer)
                        .is_ready()
                );
            }
            metered.meter.begin_turn();
        }
    }

    #[tokio::test]
    async fn connection_fails_after_too_many_bytes_of_one_request() {
        let (mut metered, _peer) = flooded().await;
        metered.meter.bytes_left.store(5, Ordering::Relaxed);
        let error = Poll::Ready("an answer has too many bytes".to_owned());
        assert_eq!(read_all(&mut metered), (5, error));
        metered.meter.begin_request();
        metered.meter.begin_turn();
        assert_eq!(read_all(&mut metered), (16, Poll::Pending));
    }
}
