//! The stream of a connection, which the answer of a request can look at while the connection owns
//! it: has the client closed its side?

use std::io::{Error, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use posthaste_services::client::Client;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// A stream; clones share it. Only one of them may read or write. The last one to go closes it.
#[derive(Debug, Clone)]
pub(super) struct ClientStream(Arc<TcpStream>);

impl ClientStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(Arc::new(stream))
    }

    /// Tries to write whenever the stream takes something.
    fn poll_try_write(
        &self,
        context: &mut Context<'_>,
        mut write: impl FnMut(&TcpStream) -> Result<usize>,
    ) -> Poll<Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(context))?;
            match write(&self.0) {
                // Its readiness is cleared by that.
                Err(error) if would_block(&error) => {}
                written => return Poll::Ready(written),
            }
        }
    }
}

fn would_block(error: &Error) -> bool {
    error.kind() == std::io::ErrorKind::WouldBlock
}

impl Client for ClientStream {
    /// Asks the task of the connection to be woken, which reads nothing meanwhile. With a further
    /// request behind the one that is answered, nothing is known of the end.
    fn poll_closed(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0; 1];
        match ready!(self.0.poll_peek(context, &mut ReadBuf::new(&mut byte))) {
            Ok(0) | Err(_) => Poll::Ready(()),
            Ok(_) => Poll::Pending,
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(context))?;
            match self.0.try_read(buffer.initialize_unfilled()) {
                Ok(bytes) => {
                    buffer.advance(bytes);
                    return Poll::Ready(Ok(()));
                }
                // Its readiness is cleared by that.
                Err(error) if would_block(&error) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        self.poll_try_write(context, |stream| stream.try_write(bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        self.poll_try_write(context, |stream| stream.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Nothing is kept back.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// The stream is closed when it goes, which is next.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}
