//! The Parquet crate is in the programs that read or write the delivery log, and in no other: publish and
//! deliver start often, and a start reads the whole program.

#![expect(clippy::unwrap_used, reason = "a program that cannot be read has failed")]

use std::fs;

/// The place of a crate's sources, as panics of the crate name it: a program that has code of the crate has
/// this text, stripped or not.
const SOURCES: &[u8] = b"/parquet-";

fn has_parquet(program: &str) -> bool {
    fs::read(program).unwrap().windows(SOURCES.len()).any(|window| window == SOURCES)
}

#[test]
fn programs_that_do_not_touch_the_delivery_log_s_files_have_no_parquet() {
    for program in [
        env!("CARGO_BIN_EXE_publish"),
        env!("CARGO_BIN_EXE_deliver"),
        env!("CARGO_BIN_EXE_deadletter"),
        env!("CARGO_BIN_EXE_monitor"),
    ] {
        assert!(!has_parquet(program), "{program}");
    }
    // A mark that no program has would prove nothing.
    assert!(has_parquet(env!("CARGO_BIN_EXE_record")));
}
