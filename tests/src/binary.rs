//! The path of the program.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The variable that names a program which is built already, for instance an optimised one.
pub const BINARY_VARIABLE: &str = "POSTHASTE_BIN";

/// The `posthaste` program: the one that [`BINARY_VARIABLE`] names. Without the variable it is built,
/// once per process: for tests as the tests were, for benches with the profile `dist`.
pub fn posthaste() -> &'static PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| env::var_os(BINARY_VARIABLE).map_or_else(build, PathBuf::from))
}

fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args([
        "build",
        "--locked",
        "--package",
        "posthaste",
        "--message-format",
        "json-render-diagnostics",
    ]);
    if !cfg!(debug_assertions) {
        cargo.args(["--profile", "dist"]);
    }
    let output = cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output();
    let output = output.expect("cargo starts");
    assert!(output.status.success(), "failed to build posthaste");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let executable = messages
        .filter(|message| message["target"]["name"] == "posthaste")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    executable.expect("cargo names the program it built")
}
