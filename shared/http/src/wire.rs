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

use crate::interim::InterimAnswers;
use crate::places::Place;
use crate::settings::ANSWER_WIRE_BYTES_MAX;

/// Reads of a socket in one turn of its task. A task has 128 of all its sockets (tokio's budget);
/// one that always has more to read would leave none to its neighbours.
const READS_AT_ONCE_MAX: u64 = 16;

/// What has been read of a connection, shared with the one who drives it.
#[derive(Debug)]
pub(crate) struct Meter {
    reads_left: AtomicU64,
    bytes_left: AtomicU64,
    was_heard: AtomicBool,
    is_new_request: AtomicBool,
}

impl Meter {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            reads_left: AtomicU64::new(READS_AT_ONCE_MAX),
            bytes_left: AtomicU64::new(ANSWER_WIRE_BYTES_MAX),
            was_heard: AtomicBool::new(false),
            is_new_request: AtomicBool::new(false),
        })
    }

    /// A new request begins.
    pub(crate) fn begin_request(&self) {
        self.bytes_left
            .store(ANSWER_WIRE_BYTES_MAX, Ordering::Relaxed);
        self.was_heard.store(false, Ordering::Relaxed);
        self.is_new_request.store(true, Ordering::Relaxed);
    }

    /// A new turn of the connection's task begins.
    pub(crate) fn begin_turn(&self) {
        self.reads_left.store(READS_AT_ONCE_MAX, Ordering::Relaxed);
    }

    /// True if any byte of an answer to the last request came.
    pub(crate) fn was_heard(&self) -> bool {
        self.was_heard.load(Ordering::Relaxed)
    }

    /// Waits for the next turn where this one has read enough.
    fn poll_turn(&self, cx: &mut Context<'_>) -> Poll<()> {
        let left = self.reads_left.load(Ordering::Relaxed);
        if left == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.reads_left.store(left - 1, Ordering::Relaxed);
        Poll::Ready(())
    }

    fn count(&self, bytes: usize) -> Result<()> {
        let left = self.bytes_left.load(Ordering::Relaxed);
        let left = left
            .checked_sub(bytes as u64)
            .ok_or_else(|| too_much("an answer has too many bytes"))?;
        self.bytes_left.store(left, Ordering::Relaxed);
        Ok(())
    }
}

fn too_much(text: &'static str) -> Error {
    Error::new(ErrorKind::InvalidData, text)
}

/// A socket whose bytes are counted, below TLS: a session that sends nothing but its own messages
/// ends too.
pub(crate) struct Metered {
    // Closed before its place is given back.
    stream: TcpStream,
    meter: Arc<Meter>,
    _place: Place,
}

impl Metered {
    pub(crate) fn new((stream, place): (TcpStream, Place), meter: Arc<Meter>) -> Self {
        Self {
            stream,
            meter,
            _place: place,
        }
    }
}

impl AsyncRead for Metered {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        ready!(self.meter.poll_turn(cx));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        Poll::Ready(self.meter.count(buffer.filled().len() - before))
    }
}

/// The bytes below HTTP: plain, or in TLS. A TLS session is boxed, because it has a few kilobytes
/// and connections move in and out of the pool.
pub(crate) type Wire = Either<Metered, Box<TlsStream<Metered>>>;

/// A wire that notes whether an answer came, and ends when there are too many interim ones.
pub(crate) struct Listening {
    wire: Wire,
    meter: Arc<Meter>,
    interim: InterimAnswers,
}

impl Listening {
    pub(crate) fn new(wire: Wire, meter: Arc<Meter>) -> Self {
        Self {
            wire,
            meter,
            interim: InterimAnswers::default(),
        }
    }
}

impl AsyncRead for Listening {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.wire).poll_read(cx, buffer))?;
        let piece = &buffer.filled()[before..];
        // Nothing is read at the end of the stream.
        if !piece.is_empty() {
            if self.meter.is_new_request.swap(false, Ordering::Relaxed) {
                self.interim = InterimAnswers::default();
            }
            self.meter.was_heard.store(true, Ordering::Relaxed);
            if !self.interim.are_within(piece) {
                return Poll::Ready(Err(too_much("there are too many interim answers")));
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Writes as the stream inside does.
macro_rules! write_through {
    ($type:ident, $inner:ident) => {
        impl AsyncWrite for $type {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<Result<usize>> {
                Pin::new(&mut self.$inner).poll_write(cx, bytes)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                slices: &[IoSlice<'_>],
            ) -> Poll<Result<usize>> {
                Pin::new(&mut self.$inner).poll_write_vectored(cx, slices)
            }

            fn is_write_vectored(&self) -> bool {
                self.$inner.is_write_vectored()
            }

            fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                Pin::new(&mut self.$inner).poll_flush(cx)
            }

            fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
                Pin::new(&mut self.$inner).poll_shutdown(cx)
            }
        }
    };
}

write_through!(Metered, stream);
write_through!(Listening, wire);

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    use super::*;

    /// A metered socket whose other end has sent more than a turn reads.
    async fn flooded() -> (Metered, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        peer.write_all(&[0; 100]).await.unwrap();
        stream.readable().await.unwrap();
        let place = crate::places::Places::new(1).take().unwrap();
        (Metered::new((stream, place), Meter::new()), peer)
    }

    /// The number of bytes that are read one by one, and how the reading ended.
    fn read_all(metered: &mut Metered) -> (usize, Poll<String>) {
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
        assert_eq!(read_all(&mut metered), (0, Poll::Pending));
        metered.meter.begin_turn();
        assert_eq!(read_all(&mut metered), (16, Poll::Pending));
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
