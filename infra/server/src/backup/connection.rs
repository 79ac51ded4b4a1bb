//! The way from the thread of a backup to its connection.

use std::io::{self, Write};

use axum::body::{Body, Bytes};
use futures_util::stream::poll_fn;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Bytes that go to the connection at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Pieces that wait for the connection. A client that reads slowly holds the disk up, and not the
/// memory.
const PIECES_WAITING_MAX: usize = 8;

/// Bytes on their way to the connection.
pub(super) struct ConnectionWriter {
    runtime: Handle,
    pieces: mpsc::Sender<io::Result<Bytes>>,
    /// The place of the last piece, for which a slow client is not waited for.
    last: Option<mpsc::OwnedPermit<io::Result<Bytes>>>,
    /// Once it is cancelled, no client is waited for. What is written from then on goes out as the
    /// last piece: the rest of what was begun, and the reason.
    stop: CancellationToken,
    piece: Vec<u8>,
    bytes: u64,
}

/// The way to a connection, and the body that is sent on it.
pub(super) fn to_connection(runtime: Handle, stop: CancellationToken) -> (ConnectionWriter, Body) {
    let (pieces, mut sent) = mpsc::channel(PIECES_WAITING_MAX + 1);
    let out = ConnectionWriter {
        runtime,
        // Nothing is in the channel yet, so there is a place.
        last: pieces.clone().try_reserve_owned().ok(),
        pieces,
        stop,
        piece: Vec::with_capacity(PIECE_BYTES),
        bytes: 0,
    };
    let body = Body::from_stream(poll_fn(move |context| sent.poll_recv(context)));
    (out, body)
}

impl ConnectionWriter {
    /// Bytes that were written.
    pub(super) fn bytes_written(&self) -> u64 {
        self.bytes
    }

    /// Sends what is left, and the end.
    pub(super) fn finish(self) {
        if !self.piece.is_empty()
            && let Some(last) = self.last
        {
            last.send(Ok(self.piece.into()));
        }
    }
}

impl Write for ConnectionWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.piece.len() >= PIECE_BYTES {
            self.flush()?;
        }
        let taken = if self.stop.is_cancelled() {
            bytes.len()
        } else {
            bytes.len().min(PIECE_BYTES - self.piece.len())
        };
        self.piece.extend_from_slice(&bytes[..taken]);
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let place = self.stop.run_until_cancelled(self.pieces.reserve());
        let Some(place) = self.runtime.block_on(place) else {
            // It goes out with the last piece.
            return Ok(());
        };
        let place =
            place.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"))?;
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        place.send(Ok(piece.into()));
        Ok(())
    }
}
