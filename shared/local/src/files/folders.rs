//! Folders that are durable before a file is put into them, and that are removed with their last
//! file.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::disk;
use crate::identity::{DisplacedPath, FileIdentity};
use crate::private;

/// Most folders remembered as durable; past it the memory is cleared, which costs a sync per folder
/// in use.
const REMEMBERED_MAX: usize = 10_000;

/// The folders whose own names are known to be durable.
///
/// A folder that exists is not always durable: it may have been made just before a crash, and its
/// parent never synced.
#[derive(Debug)]
pub(super) struct DurableFolders {
    root: PathBuf,
    /// The root, once it was opened or made.
    opened: Option<FileIdentity>,
    durable: HashSet<PathBuf>,
}

impl DurableFolders {
    /// Begins with no knowledge of the folders at and below `root`.
    pub(super) fn new(root: PathBuf) -> Self {
        Self {
            root,
            opened: None,
            durable: HashSet::new(),
        }
    }

    /// Remembers the folder that the path of the root names, and forgets all that is known of
    /// another one. Returns an error if it is not the one that was opened or made before.
    pub(super) fn check_root(&mut self) -> Result<(), DisplacedPath> {
        let found = FileIdentity::at_path(&self.root)?;
        let Some(opened) = self.opened.replace(found) else {
            return Ok(());
        };
        opened
            .expect_same(found)
            .inspect_err(|_| self.durable.clear())
    }

    /// Makes a folder at or below the root, and those above it, durably.
    pub(super) fn ensure_folder(&mut self, folder: &Path) -> io::Result<()> {
        if !self.durable.contains(&self.root) {
            self.ensure_root()?;
        }
        let above: Vec<&Path> = folder
            .ancestors()
            .take_while(|f| !self.durable.contains(*f))
            .collect();
        for folder in above.into_iter().rev() {
            self.ensure_one(folder)?;
        }
        Ok(())
    }

    /// Makes the root durable. Folders above it belong to others, and may be unreadable: those that
    /// exist stay as they are. Those that are missing are made at the start alone: a person who
    /// moved them away may move them back, and finds their place free.
    fn ensure_root(&mut self) -> io::Result<()> {
        if self.opened.is_some() && self.root.parent().is_some_and(|above| !above.is_dir()) {
            return Err(DisplacedPath::Missing.into());
        }
        let missing: Vec<PathBuf> = self
            .root
            .ancestors()
            .take_while(|f| !f.is_dir())
            .map(Path::to_owned)
            .collect();
        for folder in missing.iter().rev() {
            self.ensure_one(folder)?;
        }
        if missing.is_empty() {
            let parent = self.root.parent().map_or(Ok(()), disk::sync_folder);
            // A folder that this user may not read was made by another user, before us.
            if parent
                .as_ref()
                .is_err_and(|e| e.kind() != io::ErrorKind::PermissionDenied)
            {
                return parent;
            }
            self.durable.insert(self.root.clone());
        } else if self.opened.is_some() {
            self.opened = FileIdentity::at_path(&self.root).ok();
        }
        Ok(())
    }

    fn ensure_one(&mut self, folder: &Path) -> io::Result<()> {
        match private::make_folder(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => {}
            other => other?,
        }
        if let Some(parent) = folder.parent() {
            disk::sync_folder(parent)?;
        }
        if self.durable.len() >= REMEMBERED_MAX {
            self.durable.clear();
        }
        self.durable.insert(folder.to_owned());
        Ok(())
    }

    /// Forgets the durable folders: another process removed one.
    pub(super) fn forget_all(&mut self) {
        self.durable.clear();
    }

    /// Removes the folder and its parents below the root, up to the first that is not empty. A
    /// folder that stays is harmless, so a failure only ends the climb.
    pub(super) fn prune_empty(&mut self, folder: &Path) {
        for folder in folder
            .ancestors()
            .take_while(|f| *f != self.root && f.starts_with(&self.root))
        {
            if disk::ignore_absent(std::fs::remove_dir(folder)).is_err() {
                return;
            }
            self.durable.remove(folder);
        }
    }
}
