//! Storage of the engine's bytes: the seam at which tests cut the power and fill the device.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use posthaste_system::probe;
use redb::StorageBackend;
use redb::backends::FileBackend;

use crate::identity::FileIdentity;
use crate::private;

/// The name of the engine's file in a data folder.
pub const ENGINE_FILE: &str = "posthaste.redb";

/// The engine's file while a new folder is made.
const NEW_ENGINE_FILE: &str = "posthaste.redb.new";

/// A place for the engine's one file.
pub(super) trait EngineDisk: fmt::Debug + Send + Sync {
    /// Opens the file. Called again after a failure, when the one before is closed.
    fn open(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Returns the bytes that can still be written on the device, or an error if it does not tell.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Bytes the file takes on the device.
    fn used_bytes(&self) -> io::Result<u64>;

    /// The least time between two tries of a disk that failed; opening the file again may read all
    /// of it.
    fn retry_pause(&self) -> Duration;
}

/// Makes a folder and its missing parents; their names survive a power cut, like their content.
pub fn make_folder(dir: &Path) -> io::Result<()> {
    // The parent of a relative path's first folder is an empty path.
    let missing = dir
        .ancestors()
        .take_while(|folder| *folder != Path::new("") && !folder.is_dir());
    let parents: Vec<_> = missing
        .map(|folder| folder.parent().unwrap_or(folder))
        .collect();
    private::make_folders(dir)?;
    parents.into_iter().try_for_each(sync_folder)
}

fn sync_folder(dir: &Path) -> io::Result<()> {
    let dir = if dir == Path::new("") {
        Path::new(".")
    } else {
        dir
    };
    File::open(dir)?.sync_all()
}

/// The file in the data folder.
#[derive(Debug)]
pub(super) struct FolderDisk {
    folder: PathBuf,
    /// The file whose lock this process has. No other is opened.
    locked: OnceLock<FileIdentity>,
}

impl FolderDisk {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            locked: OnceLock::new(),
        }
    }

    /// Opens this file alone from now on. After a failed commit the path is opened again. If
    /// another file were there, it would get the events of a store that this process has not read.
    pub(super) fn keep_to(&self, locked: FileIdentity) {
        // An error means that a file is kept to already.
        let _ = self.locked.set(locked);
    }

    fn engine_path(&self) -> PathBuf {
        self.folder.join(ENGINE_FILE)
    }

    /// True if there is a file.
    pub(super) fn has_engine_file(&self) -> io::Result<bool> {
        self.engine_path().try_exists()
    }

    /// Begins the file of a new folder under another name. A file gets the right name only when it
    /// is whole, so an empty file of that name is damaged and not new.
    pub(super) fn create_new_file(&self) -> io::Result<Box<dyn StorageBackend>> {
        let options = OpenOptions::new()
            .create(true)
            .read(true)
            .write(true)
            .truncate(true)
            .clone();
        file_backend(private::open(&options, &self.folder.join(NEW_ENGINE_FILE))?)
    }

    /// Gives the new file its name, which survives a power cut like the bytes.
    pub(super) fn name_new_file(&self) -> io::Result<()> {
        std::fs::rename(self.folder.join(NEW_ENGINE_FILE), self.engine_path())?;
        sync_folder(&self.folder)
    }
}

fn file_backend(file: File) -> io::Result<Box<dyn StorageBackend>> {
    let backend =
        FileBackend::new(file).map_err(|error| io::Error::other(redb::Error::from(error)))?;
    Ok(Box::new(backend))
}

impl EngineDisk for FolderDisk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let file = private::open(
            OpenOptions::new().read(true).write(true),
            &self.engine_path(),
        )?;
        if let Some(locked) = self.locked.get() {
            locked.expect_same(FileIdentity::from_file(&file)?)?;
        }
        if file.metadata()?.len() == 0 {
            // The engine would take it for a new one.
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the file is empty",
            ));
        }
        file_backend(file)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let disk = probe::disk_usage(&self.folder).ok_or(io::ErrorKind::Unsupported)?;
        Ok(disk.free_bytes())
    }

    fn used_bytes(&self) -> io::Result<u64> {
        /// The unit in which `stat` counts a file's room, for every block size of the file system.
        const BLOCK_BYTES: u64 = 512;
        let stat = rustix::fs::stat(self.engine_path())?;
        Ok(u64::try_from(stat.st_blocks)
            .unwrap_or(0)
            .saturating_mul(BLOCK_BYTES))
    }

    fn retry_pause(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// Any backend, as the one type the engine asks for, which counts the tries to sync. Ranges need no
/// locks: the folder is locked as a whole.
#[derive(Debug)]
pub(super) struct CountingBackend {
    pub(super) backend: Box<dyn StorageBackend>,
    pub(super) syncs: Arc<AtomicU64>,
}

impl StorageBackend for CountingBackend {
    fn len(&self) -> io::Result<u64> {
        self.backend.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.backend.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.backend.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        self.backend.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.backend.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.backend.close()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_made_with_those_above_them_and_twice_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("a/b");
        make_folder(&dir).unwrap();
        make_folder(&dir).unwrap();
        assert!(dir.is_dir());
        std::fs::write(folder.path().join("file"), "x").unwrap();
        let error = make_folder(&folder.path().join("file/c")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_device_tells_its_free_bytes_and_those_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let disk = FolderDisk::new(folder.path());
        assert!(disk.free_bytes().unwrap() > 0);
        assert_eq!(
            disk.used_bytes().unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        std::fs::write(folder.path().join(ENGINE_FILE), [b'x'; 10_000]).unwrap();
        File::open(folder.path().join(ENGINE_FILE))
            .unwrap()
            .sync_all()
            .unwrap();
        assert!((10_000..100_000).contains(&disk.used_bytes().unwrap()));
    }

    #[test]
    fn file_that_is_not_the_locked_one_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ENGINE_FILE);
        let aside = folder.path().join("aside");
        std::fs::write(&path, "x").unwrap();
        let disk = FolderDisk::new(folder.path());
        disk.keep_to(FileIdentity::from_file(&File::open(&path).unwrap()).unwrap());
        disk.open().unwrap();
        std::fs::rename(&path, &aside).unwrap();
        assert_eq!(disk.open().unwrap_err().kind(), io::ErrorKind::NotFound);
        std::fs::copy(&aside, &path).unwrap();
        let error = disk.open().unwrap_err();
        assert_eq!(error.to_string(), "another file has its name");
        std::fs::rename(&aside, &path).unwrap();
        disk.open().unwrap();
    }
}
