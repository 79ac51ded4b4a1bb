//! Clients that do not read their answers. A connection is closed once nothing could be written to
//! it for [`WRITE_TIMEOUT`], and sooner where others wait for its place.

use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use posthaste_ports::Clock;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::places::ClientPlace;

/// Time after which a client that has taken nothing counts as one that does not read.
const STALLED_AFTER: Duration = Duration::from_secs(1);

/// Longest time in which a client may read nothing of an answer. Long enough for a network that is
/// gone for a while.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A stream that fails when its other end takes nothing for too long.
pub(super) struct TimedWriteStream<S, C> {
    stream: S,
    place: Arc<ClientPlace>,
    clock: C,
    /// Runs while a write waits.
    stall: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl<S: Unpin, C> Unpin for TimedWriteStream<S, C> {}

impl<S, C: Clock> TimedWriteStream<S, C> {
    pub(super) fn new(stream: S, place: Arc<ClientPlace>, clock: C) -> Self {
        Self {
            stream,
            place,
            clock,
            stall: None,
        }
    }

    /// The same result, or an error once writes have waited for too long.
    fn fail_if_stalled(
        &mut self,
        written: Poll<Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<Result<usize>> {
        if written.is_ready() {
            self.stall = None;
            return written;
        }
        let place = &self.place;
        let clock = &self.clock;
        let stall = self
            .stall
            .get_or_insert_with(|| Box::pin(wait_until_stalled(Arc::clone(place), clock.clone())));
        ready!(stall.as_mut().poll(context));
        self.stall = None;
        Poll::Ready(Err(Error::new(
            ErrorKind::TimedOut,
            "the client reads nothing of its answer",
        )))
    }
}

/// Completes when nothing was read for too long. Before that, the place may go to others.
async fn wait_until_stalled<C: Clock>(place: Arc<ClientPlace>, clock: C) {
    clock.sleep(STALLED_AFTER).await;
    let _stalled = place.mark_stalled();
    clock
        .sleep(WRITE_TIMEOUT.saturating_sub(STALLED_AFTER))
        .await;
    ClientPlace::count_unread();
}

impl<S: AsyncRead + Unpin, C: Clock> AsyncRead for TimedWriteStream<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin, C: Clock> AsyncWrite for TimedWriteStream<S, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.fail_if_stalled(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.fail_if_stalled(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::limits::ConnectionLimits;
    use crate::http::places::ClientPlaces;
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;
    use std::net::Ipv4Addr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::task::JoinHandle;

    /// A connection that takes one byte until it is read from, and a second byte that is being
    /// written to it.
    async fn stalled(clock: &ManualClock) -> (tokio::io::DuplexStream, JoinHandle<Result<()>>) {
        let place = ClientPlaces::new(ConnectionLimits::default())
            .take_place(Ipv4Addr::LOCALHOST.into())
            .await;
        let (client, stream) = tokio::io::duplex(1);
        let mut writing = TimedWriteStream::new(stream, Arc::new(place), clock.clone());
        let written = tokio::spawn(async move { writing.write_all(b"12").await });
        until_asleep(clock).await;
        (client, written)
    }

    async fn until_asleep(clock: &ManualClock) {
        while clock.sleepers() != 1 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_client_that_reads_nothing_has_an_end() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let (_client, written) = stalled(&clock).await;
        for rest in [STALLED_AFTER, WRITE_TIMEOUT.saturating_sub(STALLED_AFTER)] {
            assert!(!written.is_finished());
            until_asleep(&clock).await;
            clock.advance(rest);
        }
        assert_eq!(
            written.await.unwrap().unwrap_err().kind(),
            ErrorKind::TimedOut
        );
    }

    #[tokio::test]
    async fn a_client_that_reads_again_in_time_goes_on() {
        let clock = ManualClock::new(Timestamp::EPOCH);
        let (mut client, written) = stalled(&clock).await;
        clock.advance(STALLED_AFTER);
        tokio::task::yield_now().await;
        until_asleep(&clock).await;
        let mut read = [0; 2];
        client.read_exact(&mut read).await.unwrap();
        written.await.unwrap().unwrap();
        assert_eq!((&read, clock.sleepers()), (b"12", 0));
    }
}
