//! The Parquet crate is in the programs that read or write the delivery log, and in no other: publish and
//! deliver start often, and a start reads the whole program.

#![expect(clippy::unwrap_used, reason = "a program that cannot be read has failed")]

use std::fs;
use std::path::Path;
use std::process::Command;

/// The place of a crate's sources, as panics of the crate name it: a program that has code of the crate has
/// this text, stripped or not.
const SOURCES: &[u8] = b"/parquet-";

/// Looks into a copy without debug information. That names sources of code which the linker left out.
fn has_parquet(program: &str, folder: &Path) -> bool {
    let stripped = folder.join("stripped");
    let status = Command::new("strip").args(["--strip-debug", "-o"]).arg(&stripped).arg(program).status();
    assert!(status.unwrap().success(), "strip {program}");
    fs::read(stripped).unwrap().windows(SOURCES.len()).any(|window| window == SOURCES)
}

#[test]
fn programs_that_do_not_touch_the_delivery_log_s_files_have_no_parquet() {
    let folder = tempfile::tempdir().unwrap();
    for program in [
        env!("CARGO_BIN_EXE_publish"),
        env!("CARGO_BIN_EXE_deliver"),
        env!("CARGO_BIN_EXE_deadletter"),
        env!("CARGO_BIN_EXE_monitor"),
    ] {
        assert!(!has_parquet(program, folder.path()), "{program}");
    }
    // A mark that no program has would prove nothing.
    assert!(has_parquet(env!("CARGO_BIN_EXE_record"), folder.path()));
}
