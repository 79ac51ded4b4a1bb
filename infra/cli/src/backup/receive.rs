//! A backup that comes as a stream is kept in a folder.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use posthaste_local::{CopyCounts, private, rebuild_database};

use super::error::{BackupError, FolderError};
use super::fresh;
use super::manifest::{BackupManifest, FORMAT};
use super::parts::{DATABASE, part_of};
use super::sums::{CopyError, FileSum, SumsWriter, copy_with_digest};
use super::wire::{PieceReader, SenderFailed, WireLine};

/// Keeps a backup in a folder that must be empty or not there. Everything is durable before the
/// folder becomes a backup. Blocks, for as long as the stream takes to come.
pub fn receive_backup(
    input: &mut impl BufRead,
    folder: &Path,
) -> Result<BackupManifest, BackupError> {
    fresh::make_empty(folder)?;
    let head = WireLine::read(input).map_err(BackupError::CutOff)?;
    let WireLine::Backup {
        format,
        version,
        taken_at,
    } = head
    else {
        return Err(BackupError::CutOff(io::ErrorKind::InvalidData.into()));
    };
    if format > FORMAT {
        let known = FORMAT;
        return Err(BackupError::Newer { format, known });
    }
    let mut receiving = BackupReceiver {
        folder,
        folders: BTreeSet::from([folder.to_owned()]),
        sums: SumsWriter::create(folder)?,
        copied: None,
        files: 0,
    };
    receiving
        .receive_all(input)
        .map_err(with_reason_of_sender)?;
    for folder in receiving.folders.iter().rev() {
        fresh::sync_folder(folder)?;
    }
    let Some(CopyCounts { messages, objects }) = receiving.copied else {
        return Err(BackupError::CutOff(io::ErrorKind::InvalidData.into()));
    };
    let (parts, sums_sha256) = receiving.sums.finish()?;
    let manifest = BackupManifest {
        format,
        version,
        taken_at,
        messages,
        objects,
        parts,
        sums_sha256,
    };
    manifest.write(folder)?;
    Ok(manifest)
}

/// The same error, or that of the sender where it says why nothing more comes.
fn with_reason_of_sender(error: BackupError) -> BackupError {
    let causes = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
    let mut failures = causes.filter_map(|cause| {
        let inside = cause.downcast_ref::<io::Error>()?.get_ref()?;
        inside.downcast_ref::<SenderFailed>()
    });
    match failures.next() {
        Some(SenderFailed { reason }) => {
            let reason = reason.clone();
            BackupError::Failed { reason }
        }
        None => error,
    }
}

struct BackupReceiver<'a> {
    folder: &'a Path,
    /// The folders in which there are new names.
    folders: BTreeSet<PathBuf>,
    sums: SumsWriter,
    copied: Option<CopyCounts>,
    files: u64,
}

impl BackupReceiver<'_> {
    /// Takes everything up to the end.
    fn receive_all(&mut self, input: &mut impl BufRead) -> Result<(), BackupError> {
        loop {
            match WireLine::read(input).map_err(BackupError::CutOff)? {
                WireLine::Database {} if self.copied.is_none() => self.receive_database(input)?,
                WireLine::File { path, modified_ms } => {
                    self.receive_file(input, path, modified_ms)?;
                }
                WireLine::Failed { reason } => return Err(BackupError::Failed { reason }),
                WireLine::End { files } if files == self.files => return Ok(()),
                WireLine::End { .. } | WireLine::Database {} | WireLine::Backup { .. } => {
                    return Err(BackupError::CutOff(io::ErrorKind::InvalidData.into()));
                }
            }
        }
    }

    fn receive_database(&mut self, input: &mut impl BufRead) -> Result<(), BackupError> {
        let mut rows = PieceReader::new(input);
        self.copied =
            Some(rebuild_database(self.folder, &mut rows).map_err(BackupError::Database)?);
        // The end of the rows is followed by that of their pieces.
        io::copy(&mut rows, &mut io::sink()).map_err(BackupError::CutOff)?;
        let path = self.folder.join(DATABASE);
        let failed = FolderError::failed_to("read", &path);
        let mut file = File::open(&path).map_err(failed)?;
        let copied = copy_with_digest(&mut file, &mut io::sink());
        let (sha256, bytes) = copied.map_err(|error| failed(error.into_inner()))?;
        self.add_sum(DATABASE, DATABASE.to_owned(), sha256, bytes)
    }

    fn receive_file(
        &mut self,
        input: &mut impl BufRead,
        path: String,
        modified_ms: u64,
    ) -> Result<(), BackupError> {
        let part = part_of(&path).filter(|part| *part != DATABASE);
        let Some(part) = part.map(str::to_owned) else {
            return Err(BackupError::Foreign { path });
        };
        let to = self.folder.join(&path);
        fresh::make_above(self.folder, &to, &mut self.folders)?;
        let failed = FolderError::failed_to("write", &to);
        let mut file =
            private::open(OpenOptions::new().write(true).create_new(true), &to).map_err(failed)?;
        let copied = copy_with_digest(&mut PieceReader::new(input), &mut file);
        let (sha256, bytes) = copied.map_err(|error| match error {
            CopyError::Read(error) => BackupError::CutOff(error),
            CopyError::Write(error) => failed(error).into(),
        })?;
        // Dead letters are kept for a time that counts from the time of their file.
        let modified = UNIX_EPOCH.checked_add(Duration::from_millis(modified_ms));
        modified
            .map_or(Ok(()), |modified| file.set_modified(modified))
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        self.add_sum(&part, path, sha256, bytes)
    }

    fn add_sum(
        &mut self,
        part: &str,
        path: String,
        sha256: String,
        bytes: u64,
    ) -> Result<(), BackupError> {
        self.files += 1;
        Ok(self.sums.add(part, &FileSum { sha256, path }, bytes)?)
    }
}
