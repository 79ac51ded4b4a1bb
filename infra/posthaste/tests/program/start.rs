//! A server that does not start says what is wrong with its machine, and what to do.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use crate::common::{failure, posthaste};

/// The report of a server that is to fail, which may open so many files.
fn report(data_dir: &Path, listen: &str, open_files_max: u32) -> String {
    let serve = posthaste(&["serve", "--listen", listen, "--data-dir"]);
    let mut limited = Command::new("/bin/sh");
    let script = format!("ulimit -n {open_files_max} && exec \"$0\" \"$@\"");
    limited.env_clear().args(["-c", &script]);
    limited.arg(serve.get_program()).args(serve.get_args());
    let (code, text) = failure(&limited.arg(data_dir).output().unwrap());
    assert_eq!(code, 1, "{text}");
    text
}

#[test]
fn start_that_fails_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let check = |data_dir: &Path, listen: &str, open_files_max, expected: &str| {
        let text = report(data_dir, listen, open_files_max);
        assert!(text.contains(&format!("\n  try: {expected}")), "{text}");
    };
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let free = "127.0.0.1:0";
    let is_none = format!("a folder; {} is none", file.display());
    let no_folder = format!("--data-dir or POSTHASTE_DATA_DIR with {is_none}");
    check(&file, free, 256, &no_folder);
    check(&file.join("data"), free, 256, &no_folder);
    let data = folder.path().join("data");
    // Too few for the runtime, and too few for the store.
    for open_files_max in [8, 10] {
        check(&data, free, open_files_max, "a higher limit of open files");
    }
    let taken = TcpListener::bind(free).unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    check(&data, &listen, 256, "another port for --listen");
    // Of an address for documentation, no machine has it.
    let elsewhere = "203.0.113.1:8080";
    check(
        &data,
        elsewhere,
        256,
        "an address of this machine for --listen",
    );
}
