//! `backup` and `restore`: what is refused, and what is left behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::common::{failure, run};
use posthaste_local::{EmbeddedStore, LocalOptions};
use posthaste_ports::{ObjectStore, PutCondition};
use posthaste_system::{SystemClock, SystemEntropy};
use serde_json::Value;

/// A data folder of a server that has ended, and where its backups and copies go.
struct World {
    root: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let world = Self {
            root: tempfile::tempdir().unwrap(),
        };
        let data = world.path("data");
        let local = EmbeddedStore::open(&data, LocalOptions::default(), SystemClock, SystemEntropy)
            .unwrap();
        let state = local.state_store();
        let put = state.put("topics/a.json", "{}".into(), PutCondition::Always);
        put.await.unwrap();
        drop(state);
        local.close().await;
        for (path, text) in [
            ("dead-letters/ORDERS/BILLING/2026/1/1/1/x.json", "[]"),
            ("dead-letters/.posthaste-tmp/1", "half"),
            ("log/date=2026-11-29/hour=09/a.parquet", "records"),
            ("log-summary/2026-11-29", "again"),
            ("admin.key", "the-admin-key-of-this-folder\n"),
        ] {
            let path = data.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// Takes a backup of the folder.
    fn back_up(&self, to: &str) -> (i32, String) {
        failure(&run(&[
            "backup",
            &self.text(to),
            "--data",
            &self.text("data"),
        ]))
    }

    fn restore(&self, from: &str, to: &str) -> (i32, String) {
        failure(&run(&[
            "restore",
            &self.text(from),
            "--data",
            &self.text(to),
        ]))
    }
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", path.display());
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
            }
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn backup_and_restore_keep_every_part() {
    let world = World::new().await;
    let letter = "dead-letters/ORDERS/BILLING/2026/1/1/1/x.json";
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000);
    let file = fs::File::options()
        .append(true)
        .open(world.path("data").join(letter));
    file.unwrap().set_modified(old).unwrap();
    assert_eq!(world.back_up("backup"), (0, String::new()));
    let parts = [
        "admin.key",
        letter,
        "log/date=2026-11-29/hour=09/a.parquet",
        "posthaste.redb",
    ];
    let described = ["SHA256SUMS", "backup.json"];
    let mut expected = [&described[..], &parts[..]].concat();
    expected.sort_unstable();
    assert_eq!(files(&world.path("backup")), expected);
    let manifest = fs::read(world.path("backup/backup.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(
        [
            &manifest["format"],
            &manifest["messages"],
            &manifest["objects"]
        ],
        [1, 0, 1]
    );

    assert_eq!(world.restore("backup", "restored"), (0, String::new()));
    let mut expected = [&["restored.json"][..], &parts[..]].concat();
    expected.sort_unstable();
    assert_eq!(files(&world.path("restored")), expected);
    let restored = world.path("restored");
    let note = fs::read(restored.join("restored.json")).unwrap();
    let note: Value = serde_json::from_slice(&note).unwrap();
    assert_eq!(note["takenAt"], manifest["takenAt"]);
    // Dead letters are deleted by the age of their file.
    let modified = fs::metadata(restored.join(letter)).unwrap().modified();
    assert_eq!(modified.unwrap(), old);
    let key = fs::read_to_string(restored.join("admin.key")).unwrap();
    assert_eq!(key, "the-admin-key-of-this-folder\n");
    let local = EmbeddedStore::open(
        &restored,
        LocalOptions::default(),
        SystemClock,
        SystemEntropy,
    );
    let object = local
        .unwrap()
        .state_store()
        .get("topics/a.json")
        .await
        .unwrap();
    assert_eq!(object.unwrap().bytes, b"{}"[..]);
}

#[tokio::test]
async fn folders_that_hold_something_are_refused() {
    let world = World::new().await;
    assert_eq!(world.back_up("backup").0, 0);
    let before = files(&world.path("backup"));
    let (code, said) = world.back_up("backup");
    assert_eq!(code, 1);
    assert!(
        said.contains("is not empty, expected an empty one or none"),
        "{said}"
    );
    assert_eq!(files(&world.path("backup")), before);
    fs::create_dir(world.path("taken")).unwrap();
    fs::write(world.path("taken/x"), "mine").unwrap();
    let (code, said) = world.restore("backup", "taken");
    assert_eq!(code, 1);
    assert!(said.contains("is not empty"), "{said}");
    assert_eq!(fs::read_dir(world.path("taken")).unwrap().count(), 1);
}

#[tokio::test]
async fn backup_that_is_not_whole_is_never_restored() {
    let world = World::new().await;
    assert_eq!(world.back_up("backup").0, 0);
    let check = |damage: &dyn Fn(&Path), expected: &str| {
        let copy = world.path("copy");
        let copied = std::process::Command::new("cp")
            .arg("-a")
            .args([&world.path("backup"), &copy])
            .status();
        assert!(copied.unwrap().success());
        damage(&copy);
        let (code, said) = world.restore("copy", "restored");
        assert_eq!(code, 1, "{said}");
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(!world.path("restored").exists(), "{expected}");
        // Nor is anything left in a folder that was there.
        fs::create_dir(world.path("restored")).unwrap();
        assert_eq!(world.restore("copy", "restored").0, 1);
        assert_eq!(fs::read_dir(world.path("restored")).unwrap().count(), 0);
        fs::remove_dir(world.path("restored")).unwrap();
        fs::remove_dir_all(copy).unwrap();
    };
    let write = |name: &'static str, text: &'static str| {
        move |copy: &Path| fs::write(copy.join(name), text).unwrap()
    };
    let remove = |name: &'static str| move |copy: &Path| fs::remove_file(copy.join(name)).unwrap();
    check(&remove("backup.json"), "holds no whole backup");
    check(&write("backup.json", "{"), "does not describe a backup");
    check(&write("backup.json", r#"{"format":2}"#), "a newer version");
    check(&remove("SHA256SUMS"), "failed to read");
    check(&write("SHA256SUMS", ""), "the backup is damaged");
    check(&write("admin.key", "another"), "the backup is damaged");
    check(&remove("posthaste.redb"), "the backup is damaged");
    check(
        &remove("log/date=2026-11-29/hour=09/a.parquet"),
        "the backup is damaged",
    );
    // The whole one still is.
    assert_eq!(world.restore("backup", "restored").0, 0);
}

#[tokio::test]
async fn half_restored_folder_is_not_started_on() {
    let world = World::new().await;
    fs::create_dir(world.path("half")).unwrap();
    fs::write(world.path("half/posthaste.redb"), "").unwrap();
    fs::copy(
        world.path("data/posthaste.redb"),
        world.path("half/posthaste.redb.new"),
    )
    .unwrap();
    let opened = EmbeddedStore::open(
        &world.path("half"),
        LocalOptions::default(),
        SystemClock,
        SystemEntropy,
    );
    let error = opened.unwrap_err().to_string();
    assert!(
        error.contains("restore the data folder from a backup"),
        "{error}"
    );
    assert!(world.path("half/posthaste.redb.new").exists());
}

#[test]
fn server_that_is_not_there_says_how_to_back_up_its_folder() {
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("backup").display().to_string();
    let key = "the-admin-key-of-nobody-at-all";
    let asked = ["--url", "http://127.0.0.1:9", "backup", &to, "--key", key];
    let (code, said) = failure(&run(&asked));
    assert_eq!(code, 7, "{said}");
    assert!(said.contains("--data DIR"), "{said}");
    assert!(!Path::new(&to).exists());
}
