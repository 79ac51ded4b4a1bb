//! The files of a store at one moment, under further names.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk;
use super::listing::HIDDEN_PREFIX;
use crate::private;

/// The folder of the further names. It is in the folder of temporary files, which a start empties.
const HELD_FOLDER: &str = "held";

/// Most looks at one folder. A merge of the delivery log changes one every ten seconds.
const LOOKS_MAX: u32 = 100;

/// The files of a store at one moment, under further names (hard links), until this is dropped.
#[derive(Debug)]
pub struct HeldFiles {
    root: PathBuf,
}

impl HeldFiles {
    /// Links the files below `root` into a folder in `temporary`.
    pub(super) fn link(root: &Path, temporary: &Path) -> io::Result<Self> {
        let held = Self {
            root: temporary.join(HELD_FOLDER),
        };
        disk::ignore_absent(fs::remove_dir_all(&held.root))?;
        // A list instead of recursion, because folders may be nested to any depth.
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            let to = held.root.join(&folder);
            private::make_folder(&to)?;
            let below = link_files(&root.join(&folder), &to)?;
            folders.extend(below.into_iter().map(|name| folder.join(name)));
        }
        Ok(held)
    }

    /// The folder with the further names.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        if let Err(error) = disk::ignore_absent(fs::remove_dir_all(&self.root)) {
            let path = self.root.display();
            tracing::warn!(%path, %error, "further names of files are left; the next start removes them");
        }
    }
}

/// Links the files of one folder, and returns the names of the folders in it. The content of a file
/// may be written to a new one before the file is deleted, so the folder is read until a look shows
/// nothing new.
fn link_files(from: &Path, to: &Path) -> io::Result<Vec<OsString>> {
    let mut known = HashSet::new();
    let mut folders = Vec::new();
    for _ in 0..LOOKS_MAX {
        let entries = match fs::read_dir(from) {
            Err(error) if disk::means_absent(&error) => return Ok(folders),
            entries => entries?,
        };
        let mut is_new = false;
        for entry in entries {
            let entry = entry?;
            let name = entry.file_name();
            if known.contains(&name)
                || name
                    .as_encoded_bytes()
                    .starts_with(HIDDEN_PREFIX.as_bytes())
            {
                continue;
            }
            is_new = true;
            if entry.file_type()?.is_dir() {
                folders.push(name.clone());
            } else {
                match fs::hard_link(entry.path(), to.join(&name)) {
                    // The content of the file is in another one now.
                    Err(error) if disk::means_absent(&error) => continue,
                    linked => linked?,
                }
            }
            known.insert(name);
        }
        if !is_new {
            return Ok(folders);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "the files of a folder change faster than they can be linked",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FileStore;

    fn names(root: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    found.push(path.strip_prefix(root).unwrap().display().to_string());
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn held_files_outlive_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("log");
        let store = FileStore::open(&root).unwrap();
        fs::create_dir_all(root.join("day/hour")).unwrap();
        fs::write(root.join("day/hour/a"), "a").unwrap();
        fs::write(root.join("b"), "b").unwrap();
        let held = store.hold_files().unwrap();
        fs::remove_dir_all(root.join("day")).unwrap();
        fs::write(root.join("c"), "c").unwrap();
        assert_eq!(names(held.root()), ["b", "day/hour/a"]);
        assert_eq!(fs::read(held.root().join("day/hour/a")).unwrap(), b"a");
        // The store itself shows none of it.
        assert!(held.root().starts_with(root.join(".posthaste-tmp")));
        let path = held.root().to_owned();
        drop(held);
        assert!(!path.exists());
        assert_eq!(names(&root), ["b", "c"]);
    }

    #[test]
    fn files_held_by_a_killed_process_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(folder.path()).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        std::mem::forget(store.hold_files().unwrap());
        fs::remove_file(folder.path().join("a")).unwrap();
        fs::write(folder.path().join("b"), "b").unwrap();
        let again = store.hold_files().unwrap();
        assert_eq!(names(again.root()), ["b"]);
        std::mem::forget(again);
        FileStore::open(folder.path()).unwrap();
        assert_eq!(names(folder.path()), ["b"]);
    }
}
