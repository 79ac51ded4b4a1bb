//! The Parquet crate is in the program that reads and writes the delivery log, and not in the
//! other: publish and deliver start often, and a start reads the whole program.

#![expect(
    clippy::unwrap_used,
    reason = "a program that cannot be read has failed"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The place of a crate's sources, as panics of the crate name it: a program that has code of the
/// crate has this text, stripped or not.
const SOURCES: &[u8] = b"/parquet-";

/// Looks into a copy without debug information, which names sources of code that the linker left
/// out.
fn has_parquet(program: &str, folder: &Path) -> bool {
    let stripped = folder.join("stripped");
    let status = Command::new("strip")
        .args(["--strip-debug", "-o"])
        .arg(&stripped)
        .arg(program)
        .status();
    assert!(status.unwrap().success(), "strip {program}");
    fs::read(stripped)
        .unwrap()
        .windows(SOURCES.len())
        .any(|window| window == SOURCES)
}

#[test]
fn the_program_that_delivers_has_no_parquet() {
    let folder = tempfile::tempdir().unwrap();
    assert!(!has_parquet(
        env!("CARGO_BIN_EXE_posthaste-delivery"),
        folder.path()
    ));
    // A mark that no program has would prove nothing.
    assert!(has_parquet(
        env!("CARGO_BIN_EXE_posthaste-log"),
        folder.path()
    ));
}
