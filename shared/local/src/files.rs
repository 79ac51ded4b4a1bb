//! An object store over plain files: the object `a/b.json` is the file `b.json` in the folder `a`,
//! so that a person can open it. For dead letters; not for objects that change many times a second.
//!
//! A put writes a temporary file, syncs it, moves it into place and syncs the folder, so a reader
//! sees all of an object or nothing and a power cut loses nothing that was acknowledged. Conditions
//! are decided under a lock of this process, so one process must own the folder.

mod disk;
mod folders;
mod hold;
mod listing;

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::pressure::ByteUsage;
use posthaste_ports::{
    ETag, ErrorKind, ListPage, ObjectStore, PortError, PutCondition, RevalidatedObject,
    StoredObject, ends_early_error, validate,
};
use posthaste_system::probe::disk_usage as usage;
use sha2::{Digest, Sha256};

use self::disk::{FilePart, TemporaryFile};
use self::folders::DurableFolders;
pub use self::hold::HeldFiles;
use self::listing::HIDDEN_PREFIX;
use crate::identity::DisplacedPath;
use crate::private;

/// The folder in which objects are written before they are moved into place; on the same file
/// system, emptied at start.
const TEMPORARY_FOLDER: &str = ".posthaste-tmp";

/// Keeps objects as files in one folder. Clones share it.
///
/// The file system adds two limits: a segment of a key has at most 255 bytes, and a key cannot also
/// be the folder of another (`a` beside `a/b`). Both are refused with kind `Invalid`, as is a
/// segment that begins with `.posthaste-`. An [`ETag`] is the SHA-256 of the content, as S3's is a
/// hash of it: writing the same bytes again gives the same version.
#[derive(Debug, Clone)]
pub struct FileStore {
    shared: Arc<SharedFiles>,
}

#[derive(Debug)]
struct SharedFiles {
    root: PathBuf,
    /// Bytes of the disk that no object takes.
    kept_free: u64,
    temporaries_ever: AtomicU64,
    /// Locked from the check of a condition until the change is durable: writers take turns to
    /// commit, not to write. A folder is remembered only after the fact, so what is remembered is
    /// right even if a holder panicked.
    folders: Mutex<DurableFolders>,
}

impl FileStore {
    /// Opens the store in `root`, makes the folder if it is missing, and removes files that a crash
    /// left half written.
    ///
    /// Blocks; meant for the start of a process. At most one store may be open on a folder.
    pub fn open(root: &Path) -> Result<Self, PortError> {
        Self::open_keeping_free(root, 0)
    }

    /// Opens a store that refuses, as `Full`, each object with which less than so many bytes of its
    /// disk would be free.
    pub fn open_keeping_free(root: &Path, kept_free: u64) -> Result<Self, PortError> {
        let doing = "open the folder of objects";
        let root = std::path::absolute(root).map_err(|e| disk::port_error(doing, e))?;
        let mut folders = DurableFolders::new(root.clone());
        let temporary = root.join(TEMPORARY_FOLDER);
        disk::ignore_absent(std::fs::remove_dir_all(&temporary))
            .and_then(|()| folders.ensure_folder(&temporary))
            .and_then(|()| private::narrow_all(&root))
            .and_then(|()| Ok(folders.check_root()?))
            .map_err(|e| disk::port_error(doing, e))?;
        let temporaries_ever = AtomicU64::new(0);
        let folders = Mutex::new(folders);
        let shared = SharedFiles {
            root,
            kept_free,
            temporaries_ever,
            folders,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// The folder, from the root.
    pub fn root(&self) -> &Path {
        &self.shared.root
    }

    /// Checks that the path of the folder still names the folder of the last look. Another folder
    /// is an error once: from then on it is the folder of the store. Blocks.
    pub fn check_path(&self) -> Result<(), DisplacedPath> {
        self.shared.folders.lock().check_root()
    }

    /// Gives the files that are there now further names, so that they stay until the result is
    /// dropped, whatever this store does with them. Only the result of the last call holds. Blocks.
    ///
    /// # Errors
    ///
    /// The file system has no hard links, or refuses them.
    pub fn hold_files(&self) -> std::io::Result<HeldFiles> {
        let temporary = self.shared.root.join(TEMPORARY_FOLDER);
        self.shared.folders.lock().ensure_folder(&temporary)?;
        HeldFiles::link(&self.shared.root, &temporary)
    }

    /// File calls block, so they run on the runtime's blocking threads. Dropping the future does
    /// not stop them.
    async fn run_blocking<T: Send + 'static>(
        &self,
        doing: &'static str,
        work: impl FnOnce(&SharedFiles) -> Result<T, PortError> + Send + 'static,
    ) -> Result<T, PortError> {
        let shared = self.shared.clone();
        tokio::task::spawn_blocking(move || work(&shared))
            .await
            .map_err(|e| PortError::with_cause(doing, ErrorKind::Other, e))?
    }
}

impl ObjectStore for FileStore {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        let doing = "read an object's file";
        let path = self.shared.path_for_key(doing, key)?;
        self.run_blocking(doing, move |_| {
            read_object(&path).map_err(|e| disk::port_error(doing, e))
        })
        .await
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        Ok(match self.get(key).await? {
            None => RevalidatedObject::Missing,
            Some(object) if object.etag == *known => RevalidatedObject::Unchanged,
            Some(object) => RevalidatedObject::Changed(object),
        })
    }

    async fn get_range(&self, key: &str, range: Range<u64>) -> Result<Bytes, PortError> {
        let doing = "read a range of an object's file";
        let path = self.shared.path_for_key(doing, key)?;
        validate::byte_range(&range).map_err(|refusal| refusal.into_port_error(doing))?;
        self.run_blocking(doing, move |_| read_range(doing, &path, &range))
            .await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        let doing = "write an object's file";
        let path = self.shared.path_for_key(doing, key)?;
        self.run_blocking(doing, move |shared| {
            shared.put_file(doing, &path, &bytes, &condition)
        })
        .await
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        let doing = "delete an object's file";
        let path = self.shared.path_for_key(doing, key)?;
        self.run_blocking(doing, move |shared| {
            shared
                .delete_file(&path)
                .map_err(|e| disk::port_error(doing, e))
        })
        .await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        let doing = "list the files of objects";
        validate::page_size(max).map_err(|refusal| refusal.into_port_error(doing))?;
        let prefix = prefix.to_owned();
        let after = after.unwrap_or_default().to_owned();
        self.run_blocking(doing, move |shared| {
            listing::page(&shared.root, &prefix, &after, max)
                .map_err(|e| disk::port_error(doing, e))
        })
        .await
    }
}

impl SharedFiles {
    fn path_for_key(&self, doing: &'static str, key: &str) -> Result<PathBuf, PortError> {
        validate::object_key(key).map_err(|refusal| refusal.into_port_error(doing))?;
        if key
            .split('/')
            .any(|segment| segment.starts_with(HIDDEN_PREFIX))
        {
            return Err(validate::LimitRefusal::Key.into_port_error(doing));
        }
        Ok(self.root.join(key))
    }

    fn put_file(
        &self,
        doing: &'static str,
        path: &Path,
        bytes: &[u8],
        condition: &PutCondition,
    ) -> Result<ETag, PortError> {
        self.check_room_for(bytes)
            .map_err(|e| disk::port_error(doing, e))?;
        let mut temporary = self
            .write_temporary(bytes)
            .map_err(|e| disk::port_error(doing, e))?;
        let mut folders = self.folders.lock();
        if !condition_holds(condition, path).map_err(|e| disk::port_error(doing, e))? {
            return Err(PortError::new(doing, ErrorKind::PreconditionFailed));
        }
        let folder = path.parent().unwrap_or(&self.root);
        let mut committed = move_into_folder(&mut temporary, path, folder, &mut folders);
        if committed
            .as_ref()
            .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
        {
            // A person who tidies up may have removed a folder that was remembered.
            folders.forget_all();
            committed = move_into_folder(&mut temporary, path, folder, &mut folders);
        }
        committed.map_err(|e| disk::port_error(doing, e))?;
        Ok(content_etag(bytes))
    }

    /// Returns an error if the disk has no room for an object of these bytes. Where the room is
    /// unknown, the disk itself will refuse the object.
    fn check_room_for(&self, bytes: &[u8]) -> std::io::Result<()> {
        if self.kept_free == 0 {
            return Ok(());
        }
        let free = usage(&self.root).map_or(u64::MAX, ByteUsage::free_bytes);
        if free.saturating_sub(bytes.len() as u64) >= self.kept_free {
            return Ok(());
        }
        let error = NoRoom {
            free,
            kept_free: self.kept_free,
        };
        Err(std::io::Error::new(std::io::ErrorKind::StorageFull, error))
    }

    fn write_temporary(&self, bytes: &[u8]) -> std::io::Result<TemporaryFile> {
        let folder = self.root.join(TEMPORARY_FOLDER);
        let number = self.temporaries_ever.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(number.to_string());
        let written = TemporaryFile::write(path.clone(), bytes);
        if written
            .as_ref()
            .is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound)
        {
            let mut folders = self.folders.lock();
            folders.forget_all();
            folders.ensure_folder(&folder)?;
            drop(folders);
            return TemporaryFile::write(path, bytes);
        }
        written
    }

    fn delete_file(&self, path: &Path) -> std::io::Result<()> {
        let mut folders = self.folders.lock();
        if !disk::is_file(path)? {
            return Ok(());
        }
        disk::ignore_absent(std::fs::remove_file(path))?;
        let folder = path.parent().unwrap_or(&self.root);
        disk::ignore_absent(disk::sync_folder(folder))?;
        folders.prune_empty(folder);
        Ok(())
    }
}

/// The reason for which a store that keeps room free refuses an object.
#[derive(Debug, thiserror::Error)]
#[error("{free} bytes of the disk are free, expected at least {kept_free} beside the object")]
struct NoRoom {
    free: u64,
    kept_free: u64,
}

fn move_into_folder(
    temporary: &mut TemporaryFile,
    path: &Path,
    folder: &Path,
    folders: &mut DurableFolders,
) -> std::io::Result<()> {
    folders.ensure_folder(folder)?;
    temporary.move_to(path)?;
    disk::sync_folder(folder)
}

fn condition_holds(condition: &PutCondition, path: &Path) -> std::io::Result<bool> {
    Ok(match condition {
        PutCondition::Always => true,
        PutCondition::IfAbsent => !disk::is_file(path)?,
        PutCondition::IfMatch(known) => {
            read_object(path)?.is_some_and(|object| object.etag == *known)
        }
    })
}

fn read_object(path: &Path) -> std::io::Result<Option<StoredObject>> {
    Ok(disk::read_file(path)?.map(|bytes| StoredObject {
        etag: content_etag(&bytes),
        bytes: bytes.into(),
    }))
}

fn read_range(doing: &'static str, path: &Path, range: &Range<u64>) -> Result<Bytes, PortError> {
    let part = disk::read_range(path, range).map_err(|e| disk::port_error(doing, e))?;
    match part.ok_or_else(|| PortError::new(doing, ErrorKind::NotFound))? {
        FilePart::Whole(bytes) => Ok(bytes.into()),
        FilePart::Short { length } => Err(ends_early_error(doing, range, length)),
    }
}

fn content_etag(bytes: &[u8]) -> ETag {
    ETag(format!(
        "{:x}",
        Bytes::copy_from_slice(&Sha256::digest(bytes))
    ))
}

#[cfg(test)]
mod tests;
