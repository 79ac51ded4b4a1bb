//! Where the engine keeps its bytes: the seam at which tests cut the power and fill the device.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::ENGINE_FILE;

/// A place for the engine's one file.
pub(super) trait Disk: fmt::Debug + Send + Sync {
    /// Opens the file, making it if need be. Called again after a failure, when the one before is closed.
    fn open(&self) -> io::Result<Box<dyn StorageBackend>>;

    /// Bytes that can still be written on the device.
    fn free_bytes(&self) -> io::Result<u64>;

    /// The least time between two tries of a disk that failed; opening the file again may read all of it.
    fn retry_pause(&self) -> Duration;
}

/// The file in the data folder.
#[derive(Debug)]
pub(super) struct FolderDisk {
    dir: PathBuf,
}

impl FolderDisk {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }
}

impl Disk for FolderDisk {
    fn open(&self) -> io::Result<Box<dyn StorageBackend>> {
        let path = self.dir.join(ENGINE_FILE);
        let options = OpenOptions::new().create(true).read(true).write(true).truncate(false).clone();
        let is_new = !path.exists();
        let file = options.open(path)?;
        if is_new {
            // The file's name must survive a power cut as its bytes do.
            std::fs::File::open(&self.dir)?.sync_all()?;
        }
        let backend = FileBackend::new(file).map_err(|error| io::Error::other(redb::Error::from(error)))?;
        Ok(Box::new(backend))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let stat = rustix::fs::statvfs(&self.dir)?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn retry_pause(&self) -> Duration {
        Duration::from_millis(200)
    }
}

/// Any backend, as the one type the engine asks for, which counts the tries to sync. Ranges need no locks: the folder
/// is locked as a whole.
#[derive(Debug)]
pub(super) struct AnyBackend {
    pub(super) backend: Box<dyn StorageBackend>,
    pub(super) syncs: Arc<AtomicU64>,
}

impl StorageBackend for AnyBackend {
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
