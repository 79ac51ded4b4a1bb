//! Folders that are to be filled, which must be empty.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use posthaste_local::{make_folder, private};

use super::error::{BackupError, FolderError};

/// The folder at the root of a new file system. A mounted volume is as good as empty with it.
pub(super) const LOST_AND_FOUND: &str = "lost+found";

/// Makes a folder for its owner alone, or takes one that is empty.
pub(super) fn make_empty(folder: &Path) -> Result<(), BackupError> {
    make_folder(folder).map_err(FolderError::failed_to("make the folder", folder))?;
    check_empty(folder)
}

/// Refuses a folder that holds something. One that is not there is as good as empty.
pub fn check_empty(folder: &Path) -> Result<(), BackupError> {
    if !folder.exists() || is_empty(folder)? {
        Ok(())
    } else {
        Err(BackupError::NotEmpty {
            path: folder.to_owned(),
        })
    }
}

fn is_empty(folder: &Path) -> Result<bool, FolderError> {
    let failed = FolderError::failed_to("look into the folder", folder);
    for entry in fs::read_dir(folder).map_err(failed)? {
        if entry.map_err(failed)?.file_name() != LOST_AND_FOUND {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Makes the folders above a file that are not `made` yet, below a root that is.
pub(super) fn make_above(
    root: &Path,
    file: &Path,
    made: &mut BTreeSet<PathBuf>,
) -> Result<(), FolderError> {
    let above = file.ancestors().skip(1);
    let missing: Vec<_> = above
        .take_while(|folder| *folder != root && !made.contains(*folder))
        .collect();
    for folder in missing.into_iter().rev() {
        private::make_folder(folder).map_err(FolderError::failed_to("make the folder", folder))?;
        made.insert(folder.to_owned());
    }
    Ok(())
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(folder: &Path) -> Result<(), FolderError> {
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(FolderError::failed_to("sync the folder", folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_with_anything_in_it_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("a/b");
        make_empty(&folder).unwrap();
        make_empty(&folder).unwrap();
        fs::create_dir(folder.join("lost+found")).unwrap();
        make_empty(&folder).unwrap();
        fs::write(folder.join(".hidden"), "x").unwrap();
        let error = make_empty(&folder).unwrap_err();
        assert!(matches!(error, BackupError::NotEmpty { .. }), "{error}");
        let error = make_empty(&folder.join(".hidden")).unwrap_err();
        assert!(matches!(error, BackupError::File(_)), "{error}");
    }
}
