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
use super::manifest::{FORMAT, Manifest};
use super::parts::{DATABASE, part_of};
use super::sums::{CopyError, Sum, Sums, copy};
use super::wire::{Line, ReadPieces, SenderFailed};

/// Keeps a backup in a folder that must be empty or not there. Everything is durable before the
/// folder becomes a backup. Blocks, for as long as the stream takes to come.
pub fn receive(input: &mut impl BufRead, folder: &Path) -> Result<Manifest, BackupError> {
    fresh::make(folder)?;
    let head = Line::read(input).map_err(BackupError::CutOff)?;
    let Line::Backup {
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
    let mut receiving = Receiving {
        folder,
        folders: BTreeSet::from([folder.to_owned()]),
        sums: Sums::begin(folder)?,
        copied: None,
        files: 0,
    };
    receiving.all(input).map_err(with_reason_of_sender)?;
    for folder in receiving.folders.iter().rev() {
        fresh::sync(folder)?;
    }
    let Some(CopyCounts { messages, objects }) = receiving.copied else {
        return Err(BackupError::CutOff(io::ErrorKind::InvalidData.into()));
    };
    let (parts, sums_sha256) = receiving.sums.finish()?;
    let manifest = Manifest {
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

struct Receiving<'a> {
    folder: &'a Path,
    /// The folders in which there are new names.
    folders: BTreeSet<PathBuf>,
    sums: Sums,
    copied: Option<CopyCounts>,
    files: u64,
}

impl Receiving<'_> {
    /// Takes everything up to the end.
    fn all(&mut self, input: &mut impl BufRead) -> Result<(), BackupError> {
        loop {
            match Line::read(input).map_err(BackupError::CutOff)? {
                Line::Database {} if self.copied.is_none() => self.database(input)?,
                Line::File { path, modified_ms } => self.file(input, path, modified_ms)?,
                Line::Failed { reason } => return Err(BackupError::Failed { reason }),
                Line::End { files } if files == self.files => return Ok(()),
                Line::End { .. } | Line::Database {} | Line::Backup { .. } => {
                    return Err(BackupError::CutOff(io::ErrorKind::InvalidData.into()));
                }
            }
        }
    }

    fn database(&mut self, input: &mut impl BufRead) -> Result<(), BackupError> {
        let mut rows = ReadPieces::new(input);
        self.copied =
            Some(rebuild_database(self.folder, &mut rows).map_err(BackupError::Database)?);
        // The end of the rows is followed by that of their pieces.
        io::copy(&mut rows, &mut io::sink()).map_err(BackupError::CutOff)?;
        let path = self.folder.join(DATABASE);
        let failed = || FolderError::of("read", &path);
        let mut file = File::open(&path).map_err(failed())?;
        let copied = copy(&mut file, &mut io::sink());
        let (sha256, bytes) = copied.map_err(|error| failed()(error.into_inner()))?;
        self.add(DATABASE, DATABASE.to_owned(), sha256, bytes)
    }

    fn file(
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
        let failed = || FolderError::of("write", &to);
        let mut file =
            private::open(OpenOptions::new().write(true).create_new(true), &to).map_err(failed())?;
        let copied = copy(&mut ReadPieces::new(input), &mut file);
        let (sha256, bytes) = copied.map_err(|error| match error {
            CopyError::Read(error) => BackupError::CutOff(error),
            CopyError::Write(error) => failed()(error).into(),
        })?;
        // Dead letters are kept for a time that counts from the time of their file.
        let modified = UNIX_EPOCH.checked_add(Duration::from_millis(modified_ms));
        modified
            .map_or(Ok(()), |modified| file.set_modified(modified))
            .and_then(|()| file.sync_all())
            .map_err(failed())?;
        self.add(&part, path, sha256, bytes)
    }

    fn add(
        &mut self,
        part: &str,
        path: String,
        sha256: String,
        bytes: u64,
    ) -> Result<(), BackupError> {
        self.files += 1;
        Ok(self.sums.add(part, &Sum { sha256, path }, bytes)?)
    }
}
