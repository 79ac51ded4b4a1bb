//! The list of the files of a backup with their digests, in the form of `sha256sum`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use posthaste_local::private;
use sha2::{Digest, Sha256};

use super::error::{BackupError, FolderError};
use super::manifest::BackupPart;
use super::parts::part_of;

/// The name of the file.
pub(super) const SUMS_FILE: &str = "SHA256SUMS";

/// Bytes that are read at once.
const PIECE_BYTES: usize = 256 * 1024;

/// The list while it is written.
pub(super) struct SumsWriter {
    path: PathBuf,
    file: BufWriter<File>,
    digest: Sha256,
    parts: Vec<BackupPart>,
}

/// A file of the list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileSum {
    pub(super) sha256: String,
    /// The path in the data folder.
    pub(super) path: String,
}

impl SumsWriter {
    /// Begins the list of a folder that has none.
    pub(super) fn create(folder: &Path) -> Result<Self, FolderError> {
        let path = folder.join(SUMS_FILE);
        let file = private::open(OpenOptions::new().write(true).create_new(true), &path)
            .map_err(FolderError::failed_to("make", &path))?;
        Ok(Self {
            path,
            file: BufWriter::new(file),
            digest: Sha256::new(),
            parts: Vec::new(),
        })
    }

    /// Adds a file.
    pub(super) fn add(&mut self, part: &str, sum: &FileSum, bytes: u64) -> Result<(), FolderError> {
        let FileSum { sha256, path } = sum;
        let line = format!("{sha256}  {path}\n");
        self.digest.update(&line);
        self.file
            .write_all(line.as_bytes())
            .map_err(FolderError::failed_to("write", &self.path))?;
        match self.parts.iter_mut().find(|known| known.name == part) {
            Some(known) => (known.files, known.bytes) = (known.files + 1, known.bytes + bytes),
            None => self.parts.push(BackupPart {
                name: part.to_owned(),
                files: 1,
                bytes,
            }),
        }
        Ok(())
    }

    /// Makes the list durable. Returns the parts, and the digest of the list.
    pub(super) fn finish(self) -> Result<(Vec<BackupPart>, String), FolderError> {
        let file = self
            .file
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        file.and_then(|file| file.sync_all())
            .map_err(FolderError::failed_to("write", &self.path))?;
        Ok((self.parts, hex_digest(self.digest)))
    }
}

/// Reads the list of a backup, which must have this digest.
pub(super) fn read(folder: &Path, sha256: &str) -> Result<Vec<FileSum>, BackupError> {
    let path = folder.join(SUMS_FILE);
    let bytes = fs::read(&path).map_err(FolderError::failed_to("read", &path))?;
    let mut digest = Sha256::new();
    digest.update(&bytes);
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|_| hex_digest(digest) == sha256);
    let text = text.ok_or(BackupError::Damaged { path })?;
    text.lines().map(read_line).collect()
}

fn read_line(line: &str) -> Result<FileSum, BackupError> {
    let sum = line.split_once("  ");
    let sum = sum.filter(|(_, path)| part_of(path).is_some());
    let (sha256, path) = sum.ok_or_else(|| BackupError::Foreign {
        path: line.to_owned(),
    })?;
    Ok(FileSum {
        sha256: sha256.to_owned(),
        path: path.to_owned(),
    })
}

/// Copies bytes, and returns their digest and their number. An error says whether it is of what is
/// read.
pub(super) fn copy_with_digest(
    from: &mut impl Read,
    to: &mut impl Write,
) -> Result<(String, u64), CopyError> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut bytes = 0;
    loop {
        let read = match from.read(&mut piece) {
            Ok(0) => return Ok((hex_digest(digest), bytes)),
            Ok(read) => &piece[..read],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        digest.update(read);
        to.write_all(read).map_err(CopyError::Write)?;
        bytes += read.len() as u64;
    }
}

/// Error of a copy.
pub(super) enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

impl CopyError {
    pub(super) fn into_inner(self) -> io::Error {
        match self {
            Self::Read(error) | Self::Write(error) => error,
        }
    }
}

fn hex_digest(digest: Sha256) -> String {
    format!("{:x}", Bytes::copy_from_slice(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_read_as_it_was_written_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let sum = |path: &str| FileSum {
            sha256: "ab".to_owned(),
            path: path.to_owned(),
        };
        let first = sum("log/a");
        let second = sum("log/b");
        let mut sums = SumsWriter::create(folder.path()).unwrap();
        sums.add("log", &first, 3).unwrap();
        sums.add("log", &second, 4).unwrap();
        let (parts, digest) = sums.finish().unwrap();
        let part = BackupPart {
            name: "log".to_owned(),
            files: 2,
            bytes: 7,
        };
        assert_eq!(parts, [part]);
        assert_eq!(read(folder.path(), &digest).unwrap(), [first, second]);
        let path = folder.path().join(SUMS_FILE);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("log/b", "log/c")).unwrap();
        let error = read(folder.path(), &digest).unwrap_err();
        assert!(matches!(error, BackupError::Damaged { .. }), "{error}");
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for line in ["ab  ../x", "ab  log/../../x", "ab", "ab  lock", ""] {
            let error = read_line(line).unwrap_err();
            assert!(matches!(error, BackupError::Foreign { .. }), "{line}");
        }
    }

    #[test]
    fn digest_is_that_of_sha256sum() {
        let mut copied = Vec::new();
        let Ok((sha256, bytes)) = copy_with_digest(&mut &b"abc"[..], &mut copied) else {
            panic!("it is copied")
        };
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            (sha256.as_str(), bytes, &copied[..]),
            (expected, 3, &b"abc"[..])
        );
    }
}
