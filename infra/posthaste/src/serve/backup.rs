//! Backups of the data folder while the server goes on: `GET /backup`.
//!
//! What reads the disk for long has a thread of its own. It ends when the client is gone.

use std::error::Error;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ::http::{Response, header};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use futures_util::stream::poll_fn;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_local::{FileStore, Local};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::spawn_blocking;

use crate::backup::{Source, report_failure, send};

/// The path of a backup.
pub(super) const BACKUP: &str = "/backup";

/// The content type of a backup.
const CONTENT_TYPE: &str = "application/vnd.posthaste.backup";

/// Bytes that go to the connection at once.
const PIECE_BYTES: usize = 64 * 1024;

/// Pieces that wait for the connection. A client that reads slowly holds the disk up, and not the
/// memory.
const PIECES_WAITING_MAX: usize = 8;

/// Wait that is asked of a second backup at the same time.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// The backups of a data folder.
#[derive(Debug)]
pub(super) struct Backups {
    local: Local<SystemClock>,
    log: FileStore,
    data_dir: PathBuf,
    /// One at a time: each keeps the database from using its free room again.
    places: Arc<Semaphore>,
}

/// Error of a backup that cannot begin.
#[derive(Debug, thiserror::Error)]
enum BeginError {
    #[error(transparent)]
    Database(#[from] posthaste_ports::PortError),
    #[error("failed to link the files of the delivery log")]
    Log(#[source] io::Error),
    #[error("failed to begin a thread")]
    Thread(#[source] io::Error),
    #[error("failed inside")]
    Task(#[from] tokio::task::JoinError),
}

/// Bytes on their way to the connection.
struct ToConnection {
    pieces: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
    bytes: u64,
}

/// The route, which needs a guard.
pub(super) fn routes(backups: Arc<Backups>) -> Router {
    Router::new().route(BACKUP, get(take)).with_state(backups)
}

async fn take(State(backups): State<Arc<Backups>>) -> Response<Body> {
    let Ok(place) = Arc::clone(&backups.places).try_acquire_owned() else {
        return answered(
            Problem::new(ProblemKind::Unavailable)
                .detail("another backup is being taken")
                .retry_after(RETRY_AFTER),
        );
    };
    match backups.begin(place).await {
        Ok(body) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response(),
        Err(error) => {
            tracing::error!(error = &error as &dyn Error, "a backup cannot begin");
            answered(Problem::new(ProblemKind::Internal).detail(reason(&error)))
        }
    }
}

impl Backups {
    pub(super) fn new(local: Local<SystemClock>, log: FileStore, data_dir: PathBuf) -> Self {
        Self {
            local,
            log,
            data_dir,
            places: Arc::new(Semaphore::new(1)),
        }
    }

    /// Takes hold of what there is now, and begins to send it.
    async fn begin(&self, place: OwnedSemaphorePermit) -> Result<Body, BeginError> {
        let (local, log, data_dir) = (self.local.clone(), self.log.clone(), self.data_dir.clone());
        let source = spawn_blocking(move || hold(&local, &log, data_dir)).await??;
        let (pieces, mut sent) = mpsc::channel(PIECES_WAITING_MAX);
        let out = ToConnection {
            pieces,
            piece: Vec::with_capacity(PIECE_BYTES),
            bytes: 0,
        };
        let work = move || {
            run(source, out);
            drop(place);
        };
        thread::Builder::new()
            .name("posthaste-backup".to_owned())
            .spawn(work)
            .map_err(BeginError::Thread)?;
        Ok(Body::from_stream(poll_fn(move |context| {
            sent.poll_recv(context)
        })))
    }
}

/// The data folder at this moment: the database, and then at once the files of the log.
fn hold(
    local: &Local<SystemClock>,
    log: &FileStore,
    data_dir: PathBuf,
) -> Result<Source, BeginError> {
    let taken_at = SystemClock.now();
    let snapshot = local.snapshot()?;
    let log = Some(log.hold().map_err(BeginError::Log)?);
    Ok(Source {
        taken_at,
        snapshot,
        log,
        data_dir,
    })
}

/// Sends all of it. The end of the log says how it went.
fn run(source: Source, mut out: ToConnection) {
    let began = SystemClock.monotonic();
    let taken_at = source.taken_at;
    tracing::info!(%taken_at, "a backup begins");
    let sent = send(source, &mut out);
    let took_s = SystemClock.monotonic().saturating_sub(began).as_secs_f64();
    match sent {
        Ok(files) => {
            let bytes = out.bytes;
            tracing::info!(%taken_at, files, bytes, took_s, "a backup was sent");
        }
        Err(error) => {
            tracing::error!(
                %taken_at, took_s, error = &error as &dyn Error, "a backup was not sent to its end"
            );
            // A client that is gone needs no reason.
            let _ = report_failure(&mut out, reason(&error)).and_then(|()| out.flush());
        }
    }
}

/// The error with its causes, in a line.
fn reason(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    let mut texts: Vec<_> = causes.map(ToString::to_string).collect();
    texts.dedup();
    texts.join(": ")
}

impl Write for ToConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..taken]);
        if self.piece.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        self.bytes += piece.len() as u64;
        let sent = self.pieces.blocking_send(Ok(piece.into()));
        sent.map_err(|_| io::Error::new(io::ErrorKind::BrokenPipe, "the client is gone"))
    }
}

fn answered(problem: Problem) -> Response<Body> {
    problem.into_response().map(Body::from)
}
