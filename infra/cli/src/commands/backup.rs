//! `backup`: a data folder of one moment, from a server that runs or from a folder of one that has
//! ended.

use std::io::{self, BufReader, BufWriter, Write};
use std::path::Path;
use std::thread;
use std::time::Duration;

use posthaste_core::model::with_causes;
use posthaste_local::{OpenError, Snapshot};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use ureq::http::Method;

use super::session::AdminSession;
use crate::backup::{
    BackupManifest, BackupSource, check_empty, receive_backup, report_failure, send_backup,
};
use crate::client::ClientError;
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;

/// Longest time of a backup, from the request to the last byte.
const BACKUP_TIMEOUT: Duration = Duration::from_hours(24);

/// Bytes that are read at once.
const READ_BYTES: usize = 256 * 1024;

/// Error of a backup that does not begin.
#[derive(Debug, thiserror::Error)]
enum BeginError {
    /// The server has no backups.
    #[error("the server has no backups")]
    Unknown(#[source] ClientError),
    /// The server does not give one now.
    #[error("failed to begin the backup")]
    Asked(#[source] ClientError),
    /// The folder cannot be read, or a server uses it.
    #[error("failed to back up the data folder")]
    Folder(#[source] OpenError),
    /// There is no way for the bytes.
    #[error("failed to begin the backup")]
    Pipe(#[source] io::Error),
}

/// Asks a server for a backup, and keeps it in a folder.
pub fn of_running(session: &AdminSession, folder: &Path) -> Result<CommandReply, CommandError> {
    // Before the server begins for nothing.
    check_empty(folder)?;
    let call = session.call(Method::GET, &["backup"]);
    let stream = session.client.send_streaming(call.timeout(BACKUP_TIMEOUT));
    let stream = stream.map_err(|error| match error {
        ClientError::Refused(refusal) if refusal.status == 404 => {
            BeginError::Unknown(ClientError::Refused(refusal))
        }
        error => BeginError::Asked(error),
    })?;
    let mut stream = BufReader::with_capacity(READ_BYTES, stream);
    let manifest = receive_backup(&mut stream, folder)?;
    Ok(backup_reply(&manifest, folder))
}

/// Copies a data folder that no server uses.
pub fn of_stopped(data_dir: &Path, folder: &Path) -> Result<CommandReply, CommandError> {
    let taken_at = SystemClock.now();
    let source = BackupSource {
        taken_at,
        snapshot: Snapshot::of_stopped(data_dir).map_err(BeginError::Folder)?,
        log: None,
        data_dir: data_dir.to_owned(),
        stop: CancellationToken::new(),
    };
    let (input, out) = io::pipe().map_err(BeginError::Pipe)?;
    let received = thread::scope(|scope| {
        scope.spawn(move || {
            let mut out = BufWriter::with_capacity(READ_BYTES, out);
            if let Err(error) = send_backup(source, &mut out) {
                // Where the other end is gone, it knows why.
                let _ = report_failure(&mut out, with_causes(&error)).and_then(|()| out.flush());
            }
        });
        receive_backup(&mut BufReader::with_capacity(READ_BYTES, input), folder)
    });
    Ok(backup_reply(&received?, folder))
}

fn backup_reply(manifest: &BackupManifest, folder: &Path) -> CommandReply {
    let (files, bytes) = manifest.files_and_bytes();
    let BackupManifest {
        taken_at,
        messages,
        objects,
        parts,
        version,
        ..
    } = manifest;
    CommandReply::new(json!({
        "folder": folder, "takenAt": taken_at, "version": version, "messages": messages,
        "objects": objects, "files": files, "bytes": bytes, "parts": parts,
    }))
    .line(format!(
        "{} is a backup of {taken_at}: {messages} messages and {objects} objects, {files} files, \
         {bytes} bytes",
        folder.display()
    ))
}

impl CommandFailure for BeginError {
    fn exit_code(&self) -> Option<u8> {
        matches!(self, Self::Unknown(_)).then_some(4)
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Unknown(_) => {
                "a server of this version, run by `posthaste serve`; on AWS the buckets and queues \
                 have their own ways to keep copies"
            }
            Self::Folder(OpenError::Locked { .. }) => {
                "without --data: the server that uses the folder gives the backup"
            }
            Self::Asked(ClientError::Unreachable { .. }) => {
                "is `posthaste serve` running there? --url or POSTHASTE_URL says where to look; \
                 --data DIR backs up the data folder of a server that has ended"
            }
            Self::Asked(_) | Self::Folder(_) | Self::Pipe(_) => return None,
        };
        Some(hint.to_owned())
    }
}
