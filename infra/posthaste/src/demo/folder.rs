//! The demo's data folder: new every time, and never a folder that holds something else.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use posthaste_local::private;

/// The file that says that a folder was made by the demo, and may be removed by the next one.
const MARKER: &str = ".posthaste-demo";

/// Error of the demo's folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// The folder holds something else.
    #[error("{} holds something that no demo has made; name another folder with --data-dir", path.display())]
    NotOurs { path: PathBuf },
    /// The folder cannot be made, or an earlier demo's cannot be removed.
    #[error("failed to prepare the folder {}", path.display())]
    Io {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

/// Makes the folder, and removes an earlier demo's.
pub(super) fn recreate(path: &Path) -> Result<(), FolderError> {
    let failed = |source| FolderError::Io {
        path: path.to_owned(),
        source,
    };
    if !is_disposable(path).map_err(failed)? {
        return Err(FolderError::NotOurs {
            path: path.to_owned(),
        });
    }
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    private::make_folders(path).map_err(failed)?;
    private::write(
        &path.join(MARKER),
        b"posthaste demo made this folder; the next demo removes it\n",
    )
    .map_err(failed)
}

/// True if nothing is lost with the folder: it does not exist, is empty, or has the marker.
fn is_disposable(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none() || path.join(MARKER).is_file()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_of_an_earlier_demo_is_replaced() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/demo");
        recreate(&path).unwrap();
        fs::write(path.join("queue"), "old").unwrap();
        recreate(&path).unwrap();
        assert!(path.join(MARKER).is_file() && !path.join("queue").exists());
    }

    #[test]
    fn a_folder_or_file_of_somebody_else_is_left_alone() {
        let parent = tempfile::tempdir().unwrap();
        let file = parent.path().join("file");
        fs::write(&file, "mine").unwrap();
        for path in [parent.path(), &file] {
            assert!(
                matches!(recreate(path), Err(FolderError::NotOurs { .. })),
                "{}",
                path.display()
            );
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
    }
}
