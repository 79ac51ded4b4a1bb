//! The folder in which a world keeps its data.

use std::path::Path;

use posthaste_system::probe;
use tempfile::TempDir;

/// The folder in which Linux keeps files in memory.
const IN_MEMORY: &str = "/dev/shm";

/// The room that it must have, in bytes: many times what the tests that run at once keep there.
const ROOM_MIN: u64 = 1 << 30;

/// An empty folder for the data of a world. It is in memory where there is room: a simulated crash is
/// none of the machine, and two thirds of a run's time went into waiting for a real disk.
pub fn data_folder() -> TempDir {
    let in_memory = Path::new(IN_MEMORY);
    let has_room = probe::disk_usage(in_memory).is_some_and(|it| it.total - it.used >= ROOM_MIN);
    // It may be forbidden, or be gone by now.
    let folder = has_room.then(|| tempfile::tempdir_in(in_memory).ok());
    folder
        .flatten()
        .unwrap_or_else(|| tempfile::tempdir().expect("a temporary folder"))
}
