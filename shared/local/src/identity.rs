//! The identity of an open file or folder, and whether its path still names it.
//!
//! An open file outlives its name: what is written to it after that ends with the process.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The device and inode of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    inode: u64,
}

/// A path that does not name the file or folder that was opened there.
#[derive(Debug, thiserror::Error)]
pub enum DisplacedPath {
    /// No file or folder has the name.
    #[error("nothing has its name")]
    Missing,
    /// Another file or folder has the name: a copy, a new one, or the target of a link that was
    /// switched.
    #[error("another file has its name")]
    Other,
    /// The path cannot be looked at.
    #[error("its path cannot be looked at")]
    Unknown(#[source] io::Error),
}

impl FileIdentity {
    /// The identity of an open file.
    pub(crate) fn from_file(file: &File) -> io::Result<Self> {
        Ok(Self::from(&file.metadata()?))
    }

    /// The identity of what a path names; links are followed.
    pub(crate) fn at_path(path: &Path) -> Result<Self, DisplacedPath> {
        match std::fs::metadata(path) {
            Ok(found) => Ok(Self::from(&found)),
            Err(error) => Err(match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => DisplacedPath::Missing,
                _ => DisplacedPath::Unknown(error),
            }),
        }
    }

    /// Returns an error if `found` is another file.
    pub(crate) fn expect_same(self, found: Self) -> Result<(), DisplacedPath> {
        if found == self {
            Ok(())
        } else {
            Err(DisplacedPath::Other)
        }
    }

    /// Returns an error if a path does not name this file.
    pub(crate) fn expect_at(self, path: &Path) -> Result<(), DisplacedPath> {
        self.expect_same(Self::at_path(path)?)
    }
}

impl From<&Metadata> for FileIdentity {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

impl From<DisplacedPath> for io::Error {
    fn from(displaced: DisplacedPath) -> Self {
        let kind = match &displaced {
            DisplacedPath::Missing => io::ErrorKind::NotFound,
            DisplacedPath::Other => io::ErrorKind::Other,
            DisplacedPath::Unknown(error) => error.kind(),
        };
        Self::new(kind, displaced)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a file that is open, by a path that leads through a link.
    struct Opened {
        root: tempfile::TempDir,
        identity: FileIdentity,
    }

    impl Opened {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            fs::create_dir(root.path().join("real")).unwrap();
            fs::write(root.path().join("real/file"), "x").unwrap();
            symlink("real", root.path().join("link")).unwrap();
            let file = File::open(root.path().join("link/file")).unwrap();
            Self {
                root,
                identity: FileIdentity::from_file(&file).unwrap(),
            }
        }

        fn path(&self, name: &str) -> std::path::PathBuf {
            self.root.path().join(name)
        }

        fn look(&self) -> String {
            match self.identity.expect_at(&self.path("link/file")) {
                Ok(()) => "in place".to_owned(),
                Err(displaced) => displaced.to_string(),
            }
        }
    }

    #[test]
    fn file_that_was_moved_is_missing_until_it_is_back() {
        let opened = Opened::new();
        assert_eq!(opened.look(), "in place");
        fs::rename(opened.path("real/file"), opened.path("aside")).unwrap();
        assert_eq!(opened.look(), "nothing has its name");
        fs::rename(opened.path("aside"), opened.path("real/file")).unwrap();
        assert_eq!(opened.look(), "in place");
    }

    #[test]
    fn copy_in_the_place_of_a_file_is_another_file() {
        let opened = Opened::new();
        fs::copy(opened.path("real/file"), opened.path("copy")).unwrap();
        fs::rename(opened.path("copy"), opened.path("real/file")).unwrap();
        assert_eq!(opened.look(), "another file has its name");
    }

    #[test]
    fn file_whose_folder_was_made_again_is_missing() {
        let opened = Opened::new();
        fs::remove_dir_all(opened.path("real")).unwrap();
        assert_eq!(opened.look(), "nothing has its name");
        fs::create_dir(opened.path("real")).unwrap();
        assert_eq!(opened.look(), "nothing has its name");
        fs::remove_dir(opened.path("real")).unwrap();
        fs::write(opened.path("real"), "no folder").unwrap();
        assert_eq!(opened.look(), "nothing has its name");
    }

    #[test]
    fn link_that_was_switched_leads_to_another_file() {
        let opened = Opened::new();
        fs::create_dir(opened.path("other")).unwrap();
        fs::write(opened.path("other/file"), "x").unwrap();
        fs::remove_file(opened.path("link")).unwrap();
        symlink("other", opened.path("link")).unwrap();
        assert_eq!(opened.look(), "another file has its name");
    }

    #[test]
    fn path_that_cannot_be_looked_at_is_not_in_place() {
        let opened = Opened::new();
        fs::remove_file(opened.path("link")).unwrap();
        symlink("link", opened.path("link")).unwrap();
        assert_eq!(opened.look(), "its path cannot be looked at");
    }
}
