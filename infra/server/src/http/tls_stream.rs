//! TLS between the stream of a connection and its requests: the handshake, and what plain HTTP is
//! answered.

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ::http::{Response, StatusCode, header};
use axum::body::Body;
use parking_lot::Mutex;
use posthaste_services::client::RequestClient;
use rustls::ServerConfig;
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// The answer to plain HTTP, as other servers word it. The status is the one by which the commands
/// see that a server speaks TLS.
const PLAIN_HTTP: &str = "This address speaks TLS: use https:// instead of http://\n";

/// The way in which a client began.
pub(super) enum ClientHandshake<S> {
    /// TLS, and the handshake is done.
    Done(SecuredStream<S>),
    /// A request in plain HTTP.
    PlainHttp(S),
}

/// A stream of TLS whose other end can be looked at.
pub(super) struct SecuredStream<S>(Arc<Mutex<TlsStream<S>>>);

/// The other end of a stream of TLS. The task of the connection alone locks it, and looks at it.
struct TlsPeer<S>(Arc<Mutex<TlsStream<S>>>);

/// Makes the handshake over a stream that `wrap` makes of the connection.
pub(super) async fn accept<S>(
    stream: TcpStream,
    wrap: impl FnOnce(TcpStream) -> S,
    config: Arc<ServerConfig>,
) -> Result<ClientHandshake<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut first = [0];
    stream.peek(&mut first).await?;
    // A handshake begins with the byte 22, a request in plain HTTP with the letter of its method.
    if first[0].is_ascii_alphabetic() {
        return Ok(ClientHandshake::PlainHttp(wrap(stream)));
    }
    let stream = TlsAcceptor::from(config).accept(wrap(stream)).await?;
    Ok(ClientHandshake::Done(SecuredStream(Arc::new(Mutex::new(
        stream,
    )))))
}

/// The answer to a request that came without TLS.
pub(super) fn answer_to_plain_http() -> Response<Body> {
    let mut response = Response::new(Body::from(PLAIN_HTTP));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    let headers = response.headers_mut();
    let text = header::HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, text);
    let close = header::HeaderValue::from_static("close");
    headers.insert(header::CONNECTION, close);
    response
}

impl<S> SecuredStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    /// The client at the other end.
    pub(super) fn client(&self) -> Arc<dyn RequestClient> {
        Arc::new(TlsPeer(Arc::clone(&self.0)))
    }
}

impl<S> RequestClient for TlsPeer<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    /// Reads what has come into the stream's own buffer, where the next request is read from. The
    /// end of TLS is an end like that of the connection below.
    fn poll_closed(&self, context: &mut Context<'_>) -> Poll<()> {
        match Pin::new(&mut *self.0.lock()).poll_fill_buf(context) {
            Poll::Ready(Ok([]) | Err(_)) => Poll::Ready(()),
            // With a further request behind the one that is answered, nothing is known of the end.
            Poll::Ready(Ok(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for SecuredStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for SecuredStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut *self.0.lock()).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.lock().is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut *self.0.lock()).poll_shutdown(context)
    }
}
