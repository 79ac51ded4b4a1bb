//! The stream of a connection, which the answer of a request can look at while the connection owns
//! it: has the client closed its side?

use std::io::{IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use posthaste_services::client::RequestClient;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// A stream whose other end can be looked at.
#[derive(Debug)]
pub(super) struct ClientStream {
    /// Locked by the task of the connection alone, which also looks at the other end.
    read: Arc<Mutex<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

/// The other end of a stream.
#[derive(Debug)]
struct TcpPeer(Arc<Mutex<OwnedReadHalf>>);

impl ClientStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        let (read, write) = stream.into_split();
        Self {
            read: Arc::new(Mutex::new(read)),
            write,
        }
    }

    /// The client at the other end.
    pub(super) fn client(&self) -> Arc<dyn RequestClient> {
        Arc::new(TcpPeer(Arc::clone(&self.read)))
    }
}

impl RequestClient for TcpPeer {
    /// Asks the task of the connection to be woken, which reads nothing meanwhile. With a further
    /// request behind the one that is answered, nothing is known of the end.
    fn poll_closed(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut byte = [0; 1];
        let read = self.0.lock();
        match ready!(
            read.as_ref()
                .poll_peek(context, &mut ReadBuf::new(&mut byte))
        ) {
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
        Pin::new(&mut *self.read.lock()).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.write).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        Pin::new(&mut self.write).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.write.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.write).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.write).poll_shutdown(context)
    }
}
