//! A small disk of a test's own: a tmpfs, mounted over a data folder and gone in the end, also when
//! the test fails.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::statvfs;

/// Names the file that takes the disk's space.
const BALLAST: &str = "ballast";

/// Bytes that are written at once.
const BLOCK_BYTES: usize = 256 * 1024;

/// A mounted disk. Needs root or `CAP_SYS_ADMIN`, as mounting does.
#[derive(Debug)]
pub struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    /// Mounts an empty disk of this size, in bytes, over a folder.
    pub fn mount(folder: &Path, bytes: u64) -> Self {
        Self::mount_with("tmpfs", &format!("size={bytes},mode=0700"), folder)
    }

    /// Mounts a disk over a folder that tells no size: a `ramfs`.
    pub fn mount_without_size(folder: &Path) -> Self {
        Self::mount_with("ramfs", "mode=0700", folder)
    }

    fn mount_with(file_system: &str, options: &str, folder: &Path) -> Self {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", file_system, "-o", options, "posthaste-test"])
            .arg(folder);
        let output = mount.output().expect("there is a program mount");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "this test mounts a small disk, which needs root or CAP_SYS_ADMIN: {error}"
        );
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Per cent of it that are used, rounded down.
    pub fn percent_used(&self) -> u64 {
        let stat = statvfs(&self.folder).expect("the disk is mounted");
        (stat.f_blocks - stat.f_bavail) * 100 / stat.f_blocks
    }

    /// Fills it to this share, in per cent, with a file that grows.
    pub fn fill_to(&self, percent: u64) {
        let file = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(BALLAST));
        let mut file = file.expect("the disk can be written to");
        while self.percent_used() < percent {
            let written: io::Result<()> = file.write_all(&vec![0; BLOCK_BYTES]);
            written.expect("the disk has room");
        }
    }

    /// Fills it to its end with that file.
    pub fn fill(&self) {
        let file = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join(BALLAST));
        let mut file = file.expect("the disk can be written to");
        let block = vec![0; BLOCK_BYTES];
        while let Ok(written) = file.write(&block) {
            assert!(written > 0, "a file takes bytes or refuses them");
        }
    }

    /// Takes that file away.
    pub fn free(&self) {
        fs::remove_file(self.folder.join(BALLAST)).expect("the disk was filled");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a server that is killed later still has its files open. Nothing more can be done
        // if it fails.
        let _ = Command::new("umount")
            .arg("--lazy")
            .arg(&self.folder)
            .status();
    }
}
