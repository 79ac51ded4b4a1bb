//! The workspace: the roots of its crates.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
    src_path: PathBuf,
}

/// The folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests
        .parent()
        .expect("the tests lie in the workspace")
        .to_owned()
}

/// The first file of each library and program.
pub(crate) fn crate_roots() -> Vec<PathBuf> {
    let arguments = ["metadata", "--locked", "--no-deps", "--format-version", "1"];
    let metadata: Metadata = serde_json::from_str(&answer(env!("CARGO"), &arguments))
        .expect("cargo answers its metadata");
    let targets = metadata
        .packages
        .into_iter()
        .flat_map(|package| package.targets);
    targets
        .filter(|it| it.kind.iter().any(|kind| kind == "lib" || kind == "bin"))
        .map(|it| it.src_path)
        .collect()
}

fn answer(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .expect("it starts");
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("it answers text")
}
