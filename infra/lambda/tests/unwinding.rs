//! The guard of the build, shown to the compiler by itself.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, helpers included, an error is a failed test"
)]

use std::path::Path;
use std::process::Command;

/// Compiles the guard with this panic strategy, and returns what the compiler says if it refuses.
fn refusal(strategy: &str) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    let guard = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/unwinding.rs");
    let mut rustc = Command::new("rustc");
    rustc
        .args(["--crate-type", "lib", "--emit", "metadata", "--out-dir"])
        .arg(folder.path());
    rustc.args(["-C", &format!("panic={strategy}")]).arg(guard);
    let output = rustc.output().unwrap();
    (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_program_that_would_end_at_a_panic_is_not_built() {
    assert_eq!(refusal("unwind"), None);
    let said = refusal("abort").unwrap();
    assert!(
        said.contains("the functions need `panic = \"unwind\"`"),
        "{said}"
    );
}
