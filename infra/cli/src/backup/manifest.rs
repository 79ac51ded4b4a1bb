//! The file that makes a folder a backup. It is written last, so a folder without it was cut off.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use posthaste_local::private;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::error::{BackupError, FolderError};
use super::fresh;
use super::parts::MANIFEST_FILE;

/// The name of the file until it is whole.
const UNFINISHED_FILE: &str = "backup.json.new";

/// The layout of backups that this code writes. It rises only with what an older version cannot
/// put back.
pub(super) const FORMAT: u32 = 1;

/// A backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupManifest {
    /// The layout of the backup.
    pub format: u32,
    /// The version of the program whose data folder it is.
    pub version: String,
    /// The moment of the backup, in RFC 3339.
    pub taken_at: String,
    /// Messages in the database.
    pub messages: u64,
    /// State objects in the database.
    pub objects: u64,
    /// The parts of the data folder, as far as it had them.
    pub parts: Vec<BackupPart>,
    /// The SHA-256 of the list of files and their own digests.
    pub sums_sha256: String,
}

/// A part of a data folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BackupPart {
    /// The name of the file or folder.
    pub name: String,
    /// Number of files.
    pub files: u64,
    /// Bytes of all of them.
    pub bytes: u64,
}

/// The part that is read first: whatever else a newer version writes, it has this.
#[derive(Debug, Deserialize)]
struct ManifestFormat {
    format: u32,
}

impl BackupManifest {
    /// The number of files and their bytes.
    pub fn files_and_bytes(&self) -> (u64, u64) {
        let files = self.parts.iter().map(|part| part.files).sum();
        let bytes = self.parts.iter().map(|part| part.bytes).sum();
        (files, bytes)
    }

    /// Writes the file, which makes the folder a backup. All else must be durable.
    pub(super) fn write(&self, folder: &Path) -> Result<(), FolderError> {
        let unfinished = folder.join(UNFINISHED_FILE);
        let failed = FolderError::failed_to("write", &unfinished);
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(error.into()))?;
        let mut file = private::open(OpenOptions::new().write(true).create_new(true), &unfinished)
            .map_err(failed)?;
        file.write_all(format!("{text}\n").as_bytes())
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        fs::rename(&unfinished, folder.join(MANIFEST_FILE)).map_err(failed)?;
        fresh::sync_folder(folder)
    }

    /// Reads the file of a backup.
    pub(super) fn read(folder: &Path) -> Result<Self, BackupError> {
        let path = folder.join(MANIFEST_FILE);
        let read = fs::read(&path).map_err(FolderError::failed_to("read", &path));
        let bytes = match read {
            Err(error) if error.is_absent() => {
                return Err(BackupError::Unfinished {
                    path: folder.to_owned(),
                });
            }
            read => read?,
        };
        let ManifestFormat { format } = parse_manifest(&path, &bytes)?;
        if format > FORMAT {
            return Err(BackupError::Newer {
                format,
                known: FORMAT,
            });
        }
        parse_manifest(&path, &bytes)
    }
}

fn parse_manifest<T: DeserializeOwned>(path: &Path, bytes: &[u8]) -> Result<T, BackupError> {
    serde_json::from_slice(bytes).map_err(|source| BackupError::Manifest {
        path: path.to_owned(),
        source,
    })
}
