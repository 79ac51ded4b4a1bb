//! Files that the program writes are for their owner alone, under any umask. Files that an earlier
//! version left open are narrowed.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Server, failure, run};

/// The mode of a folder and of everything in it.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = vec![(folder.to_owned(), mode(folder))];
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(modes(&path));
        } else {
            found.push((path.clone(), mode(&path)));
        }
    }
    found
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn assert_private(folder: &Path) {
    for (path, mode) in modes(folder) {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{} {mode:o}", path.display());
    }
}

/// The demo under a umask: a server, topics with secrets, and dead letters.
fn demo(umask: &str, data_dir: &Path) -> Output {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        r#"umask "$1"; exec "$2" demo --data-dir "$3""#,
        "sh",
        umask,
    ]);
    command
        .env_clear()
        .arg(env!("CARGO_BIN_EXE_posthaste"))
        .arg(data_dir)
        .output()
        .unwrap()
}

fn has_dead_letters(data_dir: &Path) -> bool {
    modes(&data_dir.join("dead-letters"))
        .iter()
        .any(|(path, _)| path.extension() == Some("json".as_ref()))
}

#[test]
fn data_folder_is_private_whatever_the_umask() {
    for umask in ["000", "022", "177"] {
        let folder = tempfile::tempdir().unwrap();
        let made = folder.path().join("made");
        let data_dir = made.join("demo");
        let output = demo(umask, &data_dir);
        assert!(
            output.status.success(),
            "{umask}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(has_dead_letters(&data_dir) && data_dir.join("posthaste.redb").exists());
        assert!(data_dir.join("log").is_dir());
        assert_private(&data_dir);
        let allowed = 0o777 & !u32::from_str_radix(umask, 8).unwrap();
        assert_eq!(mode(&made), allowed | 0o700, "{umask}");
    }
}

/// Server narrows the permissions of its files when it starts.
#[test]
fn open_permissions_of_an_earlier_version_are_narrowed() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    assert!(demo("022", &data_dir).status.success() && has_dead_letters(&data_dir));
    fs::remove_file(data_dir.join(".posthaste-demo")).unwrap();
    for (path, _) in modes(&data_dir) {
        let mode = if path.is_dir() { 0o755 } else { 0o644 };
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }
    let server = Server::start(&data_dir, &[]);
    assert_private(&data_dir);
    drop(server);
}

#[test]
fn second_server_is_refused_without_the_lock_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    fs::remove_file(folder.path().join("lock")).unwrap();
    let data_dir = folder.path().to_str().unwrap();
    let second = run(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data_dir]);
    let (code, text) = failure(&second);
    assert!(
        code == 1 && text.contains("is open in another posthaste"),
        "{code} {text}"
    );
    assert!(server.run(&["topics", "list"]).status.success());
}
