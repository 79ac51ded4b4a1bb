//! An HTTP/1 connection, pinned to a validated address.
//!
//! The task that waits for an answer drives the connection itself. A separate task per connection, hyper's
//! usual way, costs two wake-ups per request, and leaves a moment after each answer in which it is unknown
//! whether the connection can be used again. HTTP/1 has one request at a time, so nothing is lost; an idle
//! connection is checked when it is taken out of the pool, and every few seconds in it.

use std::future::{Future, poll_fn};
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::body::SlicesBody;
use crate::settings::RESPONSE_HEAD_BYTES_MAX;

/// An open connection. Dropping it closes it.
pub(crate) struct Connection {
    sender: http1::SendRequest<SlicesBody>,
    driver: http1::Connection<TokioIo<Listening>, SlicesBody>,
    is_over: bool,
    was_heard: Arc<AtomicBool>,
    address: IpAddr,
}

impl Connection {
    /// Begins HTTP on a connected stream.
    pub(crate) async fn open(wire: Wire, address: IpAddr) -> hyper::Result<Self> {
        let was_heard = Arc::new(AtomicBool::new(false));
        let io = TokioIo::new(Listening { wire, was_heard: was_heard.clone() });
        let (sender, driver) =
            http1::Builder::new().max_buf_size(RESPONSE_HEAD_BYTES_MAX).handshake(io).await?;
        Ok(Self { sender, driver, is_over: false, was_heard, address })
    }

    pub(crate) fn address(&self) -> IpAddr {
        self.address
    }

    /// True if any byte of an answer to the last request came.
    pub(crate) fn was_heard(&self) -> bool {
        self.was_heard.load(Ordering::Relaxed)
    }

    /// True if the connection can take a request now: the peer has neither closed it nor sent unexpected
    /// bytes.
    pub(crate) fn is_usable(&mut self) -> bool {
        self.poll_driver(&mut Context::from_waker(Waker::noop()));
        !self.is_over && self.sender.is_ready()
    }

    /// Drives the connection until `work`, which waits for something on it, is done.
    pub(crate) async fn drive<F: Future>(&mut self, work: F) -> F::Output {
        let mut work = pin!(work);
        poll_fn(|cx| {
            // The connection first: what it reads makes the work ready in the same turn.
            self.poll_driver(cx);
            work.as_mut().poll(cx)
        })
        .await
    }

    fn poll_driver(&mut self, cx: &mut Context<'_>) {
        // An error of the connection reaches the request that waits on it; without a request it has no
        // receiver.
        self.is_over = self.is_over || Pin::new(&mut self.driver).poll(cx).is_ready();
    }
}

/// A request on its connection, apart from the waiting for its answer: so it can go on when that ends.
pub(crate) struct Exchange {
    pub(crate) connection: Connection,
    answer: Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>,
}

impl Exchange {
    /// Begins to send a request.
    pub(crate) fn begin(mut connection: Connection, request: Request<SlicesBody>) -> Self {
        connection.was_heard.store(false, Ordering::Relaxed);
        let answer = Box::pin(connection.sender.send_request(request));
        Self { connection, answer }
    }

    /// Sends the request and waits for the head of its answer, once.
    pub(crate) async fn head(&mut self) -> hyper::Result<Response<Incoming>> {
        self.connection.drive(self.answer.as_mut()).await
    }
}

/// The bytes below HTTP.
pub(crate) enum Wire {
    Plain(TcpStream),
    // Boxed: a TLS session is a few kilobytes, and connections move in and out of the pool.
    Tls(Box<TlsStream<TcpStream>>),
}

/// A wire that notes when something was read from it.
struct Listening {
    wire: Wire,
    was_heard: Arc<AtomicBool>,
}

macro_rules! on_wire {
    ($self:ident, $stream:ident => $call:expr) => {
        match &mut $self.get_mut().wire {
            Wire::Plain(stream) => {
                let $stream = Pin::new(stream);
                $call
            }
            Wire::Tls(stream) => {
                let $stream = Pin::new(stream.as_mut());
                $call
            }
        }
    };
}

impl AsyncRead for Listening {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let was_heard = self.was_heard.clone();
        let before = buffer.filled().len();
        let polled = on_wire!(self, stream => stream.poll_read(cx, buffer));
        if buffer.filled().len() > before {
            was_heard.store(true, Ordering::Relaxed);
        }
        polled
    }
}

impl AsyncWrite for Listening {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        on_wire!(self, stream => stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        on_wire!(self, stream => stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match &self.wire {
            Wire::Plain(stream) => stream.is_write_vectored(),
            Wire::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_wire!(self, stream => stream.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        on_wire!(self, stream => stream.poll_shutdown(cx))
    }
}
