//! Folders that are durable before a file is put into them, and that go when the last file has gone.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use super::disk;

/// Most folders remembered as durable; past it the memory is cleared, which costs a sync per folder in use.
const REMEMBERED_MAX: usize = 10_000;

/// The folders whose own names are known to be durable.
///
/// That a folder exists is not enough: it may have been made just before a crash, and its parent never synced.
#[derive(Debug, Default)]
pub(super) struct Folders {
    durable: HashSet<PathBuf>,
}

impl Folders {
    /// Makes the folder and those above it, durably.
    pub(super) fn ensure(&mut self, folder: &Path) -> io::Result<()> {
        let above: Vec<&Path> = folder.ancestors().take_while(|f| !self.durable.contains(*f)).collect();
        for folder in above.into_iter().rev() {
            self.ensure_one(folder)?;
        }
        Ok(())
    }

    fn ensure_one(&mut self, folder: &Path) -> io::Result<()> {
        match std::fs::create_dir(folder) {
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

    /// Forgets what is durable: somebody else removed a folder.
    pub(super) fn forget(&mut self) {
        self.durable.clear();
    }

    /// Removes the folder and those above it, up to `root`, as far as they are empty. That one stays is harmless,
    /// so a failure ends the climb and no more.
    pub(super) fn prune(&mut self, folder: &Path, root: &Path) {
        for folder in folder.ancestors().take_while(|f| *f != root && f.starts_with(root)) {
            if disk::absent_is_fine(std::fs::remove_dir(folder)).is_err() {
                return;
            }
            self.durable.remove(folder);
        }
    }
}
