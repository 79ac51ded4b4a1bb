//! A data folder is made of a backup.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use posthaste_core::model::Timestamp;
use posthaste_local::private;

use super::error::{BackupError, FolderError};
use super::fresh;
use super::manifest::BackupManifest;
use super::parts::DATABASE;
use super::restored::{RESTORED_FILE, RestoreNote};
use super::sums::{self, CopyError, FileSum, copy_with_digest};

/// The name of the database until all else is there.
const UNFINISHED_DATABASE: &str = "posthaste.redb.new";

/// Makes a data folder of a backup. The folder must be empty or not there. While it is filled, its
/// database is an empty file, with which no server starts, so what is half done is never used. If
/// it fails, what was made is removed. Blocks, for as long as the disks take.
pub fn restore_backup(
    backup: &Path,
    folder: &Path,
    now: Timestamp,
) -> Result<BackupManifest, BackupError> {
    let manifest = BackupManifest::read(backup)?;
    let sums = sums::read(backup, &manifest.sums_sha256)?;
    if !sums.iter().any(|sum| sum.path == DATABASE) {
        return Err(BackupError::Damaged {
            path: backup.join(DATABASE),
        });
    }
    let was_there = folder.exists();
    fresh::make_empty(folder)?;
    let filled = fill_folder(backup, folder, &manifest, &sums, now);
    if filled.is_err() {
        clear_folder(folder, was_there);
    }
    filled.map(|()| manifest)
}

fn fill_folder(
    backup: &Path,
    folder: &Path,
    manifest: &BackupManifest,
    sums: &[FileSum],
    now: Timestamp,
) -> Result<(), BackupError> {
    let database = folder.join(DATABASE);
    let options = OpenOptions::new().write(true).create_new(true).clone();
    private::open(&options, &database).map_err(FolderError::failed_to("make", &database))?;
    let mut folders = BTreeSet::from([folder.to_owned()]);
    for sum in sums {
        let name = if sum.path == DATABASE {
            UNFINISHED_DATABASE
        } else {
            &sum.path
        };
        let to = folder.join(name);
        fresh::make_above(folder, &to, &mut folders)?;
        copy_file(&backup.join(&sum.path), &to, &sum.sha256)?;
    }
    write_note(folder, manifest, now)?;
    for folder in folders.iter().rev() {
        fresh::sync_folder(folder)?;
    }
    fs::rename(folder.join(UNFINISHED_DATABASE), &database)
        .map_err(FolderError::failed_to("write", &database))?;
    Ok(fresh::sync_folder(folder)?)
}

/// Copies a file with its time, if it has this digest.
fn copy_file(from: &Path, to: &Path, sha256: &str) -> Result<(), BackupError> {
    let not_read = FolderError::failed_to("read", from);
    let not_written = FolderError::failed_to("write", to);
    let mut source = match File::open(from).map_err(not_read) {
        Err(error) if error.is_absent() => return Err(damaged_file_error(from)),
        opened => opened?,
    };
    let modified = source.metadata().and_then(|found| found.modified());
    let modified = modified.map_err(not_read)?;
    let mut file =
        private::open(OpenOptions::new().write(true).create_new(true), to).map_err(not_written)?;
    let (found, _) = copy_with_digest(&mut source, &mut file).map_err(|error| match error {
        CopyError::Read(error) => not_read(error),
        CopyError::Write(error) => not_written(error),
    })?;
    if found != sha256 {
        return Err(damaged_file_error(from));
    }
    file.set_modified(modified)
        .and_then(|()| file.sync_all())
        .map_err(not_written)?;
    Ok(())
}

fn damaged_file_error(path: &Path) -> BackupError {
    BackupError::Damaged {
        path: path.to_owned(),
    }
}

fn write_note(folder: &Path, manifest: &BackupManifest, now: Timestamp) -> Result<(), FolderError> {
    let path = folder.join(RESTORED_FILE);
    let failed = FolderError::failed_to("write", &path);
    let note = RestoreNote {
        taken_at: manifest.taken_at.clone(),
        version: manifest.version.clone(),
        restored_at: now.to_string(),
    };
    let text = serde_json::to_string_pretty(&note).map_err(|error| failed(error.into()))?;
    let mut file =
        private::open(OpenOptions::new().write(true).create_new(true), &path).map_err(failed)?;
    file.write_all(format!("{text}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .map_err(failed)
}

/// Removes what was made in a folder that was empty. What stays is never used: the database in it
/// is an empty file.
fn clear_folder(folder: &Path, was_there: bool) {
    if !was_there {
        let _ = fs::remove_dir_all(folder);
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && entry.file_name() != fresh::LOST_AND_FOUND {
            let _ = fs::remove_dir_all(path);
        } else {
            let _ = fs::remove_file(path);
        }
    }
}
