//! The README's first command, as a process.

use crate::common::{failure, run};
use serde_json::Value;

#[test]
fn the_demo_delivers_retries_and_dead_letters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demo");
    let output = run(&["demo", "--json", "--data-dir", path.to_str().unwrap()]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        summary["attempts"].as_array().unwrap().len(),
        5 + 2 * 3 + 1 + 3 + 1 + 3
    );
    assert!(
        summary["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .all(|attempt| attempt["signatureVerified"] == true)
    );
    let dead = summary["deadLetters"].as_array().unwrap();
    assert_eq!(dead.len(), 2);
    for path in dead {
        let events: Vec<Value> =
            serde_json::from_slice(&std::fs::read(path.as_str().unwrap()).unwrap()).unwrap();
        assert_eq!(events.len(), 1);
    }
}

#[test]
fn a_folder_with_something_of_somebody_else_in_it_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "mine").unwrap();
    let (code, text) = failure(&run(&[
        "demo",
        "--data-dir",
        folder.path().to_str().unwrap(),
    ]));
    assert!(code == 1 && text.contains("--data-dir"), "{code} {text}");
    assert!(folder.path().join("mine").exists());
}
