//! Backups of the data folder while the server goes on: `GET /backup`.
//!
//! Work that reads the disk for long has a thread of its own. It ends when the client is gone, and
//! when the server ends. The audit trail has an entry of each: who takes a backup has all secrets.

mod connection;

use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ::http::{Response, header};
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Extension, Router};
use posthaste_cli::backup::{BackupSource, report_failure, send_backup};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditAction, AuditCaller, AuditEntry, AuditOutcome};
use posthaste_core::model::with_causes;
use posthaste_local::{EmbeddedStore, FileStore, StateStore};
use posthaste_ports::{Clock, Entropy, ErrorKind, PortError};
use posthaste_services::audit::{begin_change, end_change};
use posthaste_system::{SystemClock, SystemEntropy};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use self::connection::{ConnectionWriter, to_connection};

/// The path of a backup.
pub(super) const BACKUP: &str = "/backup";

/// The content type of a backup.
const CONTENT_TYPE: &str = "application/vnd.posthaste.backup";

/// Wait that is asked of a second backup at the same time.
const RETRY_AFTER: Duration = Duration::from_secs(30);

/// Wait that is asked of a backup whose entry in the audit trail cannot be written.
const ENTRY_RETRY_AFTER: Duration = Duration::from_secs(5);

/// The text for a client whose backup ends before its end, because the server does.
const ENDING: &str = "the server ends; take the backup once it has started again";

/// The backups of a data folder.
#[derive(Debug)]
pub(super) struct BackupService {
    local: EmbeddedStore<SystemClock>,
    log: FileStore,
    data_dir: PathBuf,
    /// One at a time: each keeps the database from using its free room again.
    places: Arc<Semaphore>,
    /// Cancelled when the server ends.
    stop: CancellationToken,
}

/// A backup's entry in the audit trail.
#[derive(Debug, Clone)]
struct BackupTrail {
    state: StateStore,
    entry: AuditEntry,
}

/// Error of a backup that cannot begin.
#[derive(Debug, thiserror::Error)]
enum BeginError {
    #[error(transparent)]
    Database(#[from] PortError),
    #[error("failed to link the files of the delivery log")]
    Log(#[source] io::Error),
    #[error("failed to begin a thread")]
    Thread(#[source] io::Error),
    #[error("failed inside")]
    Task(#[from] tokio::task::JoinError),
}

/// The route, which needs a guard.
pub(super) fn routes(backups: Arc<BackupService>) -> Router {
    Router::new()
        .route(BACKUP, get(take_backup))
        .with_state(backups)
}

async fn take_backup(
    State(backups): State<Arc<BackupService>>,
    Extension(caller): Extension<AuditCaller>,
) -> Response<Body> {
    let Ok(place) = Arc::clone(&backups.places).try_acquire_owned() else {
        return problem_response(
            ApiProblem::new(ProblemKind::Unavailable)
                .detail("another backup is being taken")
                .retry_after(RETRY_AFTER),
        );
    };
    let trail = match BackupTrail::begin(backups.local.state_store(), caller).await {
        Ok(trail) => trail,
        Err(error) => return problem_response(missing_entry_problem(&error)),
    };
    // Whatever becomes of the client, the entry gets its end.
    let work = async move { backups.begin_backup(place, trail).await };
    let begun = tokio::spawn(work).await;
    match begun.map_err(BeginError::from).flatten() {
        Ok(body) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response(),
        Err(error) => {
            tracing::error!(error = &error as &dyn Error, "a backup cannot begin");
            problem_response(ApiProblem::new(ProblemKind::Internal).detail(with_causes(&error)))
        }
    }
}

impl BackupService {
    pub(super) fn new(
        local: EmbeddedStore<SystemClock>,
        log: FileStore,
        data_dir: PathBuf,
    ) -> Self {
        Self {
            local,
            log,
            data_dir,
            places: Arc::new(Semaphore::new(1)),
            stop: CancellationToken::new(),
        }
    }

    /// Ends the backup that is being taken: its client is told, and takes it again.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Takes hold of what there is now, and begins to send it.
    async fn begin_backup(
        &self,
        place: OwnedSemaphorePermit,
        trail: BackupTrail,
    ) -> Result<Body, BeginError> {
        let local = self.local.clone();
        let log = self.log.clone();
        let data_dir = self.data_dir.clone();
        let stop = self.stop.clone();
        let held = spawn_blocking(move || hold_data_folder(&local, &log, data_dir, stop)).await;
        let source = match held.map_err(BeginError::from).flatten() {
            Ok(source) => source,
            Err(error) => {
                let detail = with_causes(&error);
                trail.end(AuditOutcome::Failed, &detail).await;
                return Err(error);
            }
        };
        let runtime = Handle::current();
        let (out, body) = to_connection(runtime.clone(), self.stop.clone());
        let kept = trail.clone();
        let thread = thread::Builder::new().name("posthaste-backup".to_owned());
        let spawned = thread.spawn(move || {
            run(source, out, &runtime, trail);
            drop(place);
        });
        if let Err(error) = spawned {
            let error = BeginError::Thread(error);
            kept.end(AuditOutcome::Failed, &with_causes(&error)).await;
            return Err(error);
        }
        Ok(body)
    }
}

impl BackupTrail {
    /// Writes the entry of a backup that begins now.
    async fn begin(state: StateStore, caller: AuditCaller) -> Result<Self, PortError> {
        let id = SystemEntropy.uuid().simple().to_string();
        let entry = AuditEntry::new(id, SystemClock.now(), caller, AuditAction::TakeBackup);
        begin_change(&state, &entry).await?;
        Ok(Self { state, entry })
    }

    /// Writes how the backup ended.
    async fn end(self, outcome: AuditOutcome, detail: &str) {
        end_change(&self.state, self.entry.with_detail(detail), outcome).await;
    }
}

/// The problem of a backup of which the audit trail would say nothing.
fn missing_entry_problem(error: &PortError) -> ApiProblem {
    tracing::error!(
        error = error as &dyn Error,
        "a backup has no entry in the audit trail"
    );
    let problem = if error.kind == ErrorKind::Full {
        ApiProblem::new(ProblemKind::StorageFull)
    } else {
        ApiProblem::new(ProblemKind::Unavailable).retry_after(ENTRY_RETRY_AFTER)
    };
    problem.detail("the entry of the backup in the audit trail cannot be written")
}

/// The data folder at this moment: the database, and then at once the files of the log.
fn hold_data_folder(
    local: &EmbeddedStore<SystemClock>,
    log: &FileStore,
    data_dir: PathBuf,
    stop: CancellationToken,
) -> Result<BackupSource, BeginError> {
    let taken_at = SystemClock.now();
    let snapshot = local.snapshot()?;
    let log = Some(log.hold_files().map_err(BeginError::Log)?);
    Ok(BackupSource {
        taken_at,
        snapshot,
        log,
        data_dir,
        stop,
    })
}

/// Sends all of it. The end of the log and the audit trail say how it went, before the last bytes
/// are on their way.
fn run(source: BackupSource, mut out: ConnectionWriter, runtime: &Handle, trail: BackupTrail) {
    let began = SystemClock.monotonic();
    let taken_at = source.taken_at;
    let stop = source.stop.clone();
    tracing::info!(%taken_at, "a backup begins");
    let sent = send_backup(source, &mut out);
    let took_s = SystemClock.monotonic().saturating_sub(began).as_secs_f64();
    let (outcome, detail) = match sent {
        Ok(files) => {
            let bytes = out.bytes_written();
            tracing::info!(%taken_at, files, bytes, took_s, "a backup was sent");
            let detail = format!("{files} files, {bytes} bytes");
            (AuditOutcome::Done, detail)
        }
        Err(error) => {
            tracing::error!(
                %taken_at, took_s, error = &error as &dyn Error, "a backup was not sent to its end"
            );
            let why = if stop.is_cancelled() {
                ENDING.to_owned()
            } else {
                with_causes(&error)
            };
            // A client that is gone needs no reason.
            let _ = report_failure(&mut out, why.clone());
            (AuditOutcome::Failed, why)
        }
    };
    runtime.block_on(trail.end(outcome, &detail));
    out.finish();
}

fn problem_response(problem: ApiProblem) -> Response<Body> {
    problem.into_response().map(Body::from)
}
