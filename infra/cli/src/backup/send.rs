//! A data folder as a stream: the database first, then what follows from it.
//!
//! The order is that of decision 0283. An event on its way to its dead letter is in the database,
//! in the folder of dead letters, or in both. The log and the database are of one moment.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use posthaste_core::model::Timestamp;
use posthaste_core::model::time::whole_millis;
use posthaste_local::{HeldFiles, Snapshot, SnapshotError};
use tokio_util::sync::CancellationToken;

use super::error::FolderError;
use super::manifest::FORMAT;
use super::parts::{DEAD_LETTERS, LOG, LOG_ASIDE, is_object};
use super::wire::{PieceWriter, WireLine};
use crate::commands::ADMIN_KEY_FILE;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// A data folder at one moment.
#[derive(Debug)]
pub struct BackupSource {
    /// The moment: all that was answered before is in it.
    pub taken_at: Timestamp,
    /// The database.
    pub snapshot: Snapshot,
    /// The files of the delivery log. `None` if no process uses the folder.
    pub log: Option<HeldFiles>,
    /// The folder.
    pub data_dir: PathBuf,
    /// Cancelled to end the backup before its end, between two pieces.
    pub stop: CancellationToken,
}

/// Error of a data folder that cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The database cannot be read.
    #[error(transparent)]
    Database(#[from] SnapshotError),
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FolderError),
    /// The other end takes nothing more.
    #[error("failed to send the backup")]
    Send(#[from] io::Error),
}

/// Sends a data folder. Returns the number of files. Blocks, for as long as the disk takes to read
/// them and `out` to take them.
pub fn send_backup(source: BackupSource, out: &mut impl Write) -> Result<u64, SendError> {
    let BackupSource {
        taken_at,
        snapshot,
        log,
        data_dir,
        stop,
    } = source;
    let head = WireLine::Backup {
        format: FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_at: taken_at.to_string(),
    };
    head.write(out)?;
    WireLine::Database {}.write(out)?;
    let mut rows = PieceWriter::new(out, &stop);
    snapshot.write_to(&mut rows)?;
    rows.finish()?;
    // From here on the database uses its free room again.
    drop(snapshot);
    let mut sending = BackupSender {
        out,
        stop: &stop,
        files: 1,
        buffer: vec![0; READ_BYTES],
    };
    match log {
        Some(linked) => sending.send_folder(linked.root(), LOG)?,
        None => sending.send_folder(&data_dir.join(LOG), LOG)?,
    }
    for folder in [LOG_ASIDE, DEAD_LETTERS] {
        sending.send_folder(&data_dir.join(folder), folder)?;
    }
    sending.send_file(&data_dir.join(ADMIN_KEY_FILE), ADMIN_KEY_FILE)?;
    let files = sending.files;
    WireLine::End { files }.write(out)?;
    out.flush()?;
    Ok(files)
}

struct BackupSender<'w, W> {
    out: &'w mut W,
    stop: &'w CancellationToken,
    files: u64,
    buffer: Vec<u8>,
}

impl<W: Write> BackupSender<'_, W> {
    /// Sends the objects of a folder. Other files are no part of what posthaste keeps there.
    fn send_folder(&mut self, root: &Path, name: &str) -> Result<(), SendError> {
        // A list instead of recursion, because folders may be nested to any depth.
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for (key, is_folder) in list_objects(root, &folder)? {
                if is_folder {
                    folders.push(key);
                } else {
                    self.send_file(&root.join(&key), &format!("{name}/{key}"))?;
                }
            }
        }
        Ok(())
    }

    /// Sends a file. One that is gone was deleted meanwhile, by a person or for its age.
    fn send_file(&mut self, from: &Path, path: &str) -> Result<(), SendError> {
        let failed = FolderError::failed_to("read", from);
        let mut file = match File::open(from).map_err(failed) {
            Err(error) if error.is_absent() => return Ok(()),
            opened => opened?,
        };
        let modified = file.metadata().and_then(|found| found.modified());
        let since = modified.map_err(failed)?.duration_since(UNIX_EPOCH);
        let line = WireLine::File {
            path: path.to_owned(),
            modified_ms: since.map_or(0, whole_millis),
        };
        line.write(self.out)?;
        let mut pieces = PieceWriter::new(self.out, self.stop);
        loop {
            match file.read(&mut self.buffer).map_err(failed)? {
                0 => break,
                read => pieces.write_all(&self.buffer[..read])?,
            }
        }
        pieces.finish()?;
        self.files += 1;
        Ok(())
    }
}

/// The keys of what is in a folder, in order, and whether each is a folder itself.
fn list_objects(root: &Path, folder: &str) -> Result<Vec<(String, bool)>, FolderError> {
    let path = root.join(folder);
    let failed = FolderError::failed_to("list the folder", &path);
    let entries = match fs::read_dir(&path).map_err(failed) {
        Err(error) if error.is_absent() => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let key = if folder.is_empty() {
            name
        } else {
            format!("{folder}/{name}")
        };
        let kind = entry.file_type().map_err(failed)?;
        if is_object(&key) {
            found.push((key, kind.is_dir()));
        }
    }
    found.sort();
    Ok(found)
}
