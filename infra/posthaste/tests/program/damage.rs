//! A data folder that is damaged: the server says which file, what is wrong and what to do, or runs
//! and sends nothing that is damaged. `check` says the same without a server.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use crate::common::{Server, failure, posthaste, run};
use serde_json::Value;

const EVENT: &str =
    r#"{"specversion":"1.0","id":"1","source":"/t","type":"a.b","data":{"amount":100}}"#;
const TOPICS: &str = "topics:\n  orders:\n    subscriptions:\n      billing: { endpoint: { url: 'http://127.0.0.1:1/' } }\n";
const PAGE_BYTES: usize = 4096;

/// A folder with a topic and events that wait for a retry, and the bytes of its database.
fn fill(dir: &Path) -> Vec<u8> {
    let server = Server::start(dir, &["--allow-endpoints", "127.0.0.0/8"]);
    server.json(&["apply", "-f", "-"], TOPICS);
    for _ in 0..20 {
        server.json(&["publish", "orders", "-f", "-"], EVENT);
    }
    server.signal("TERM");
    assert_eq!(server.end(), Some(0));
    fs::read(dir.join("posthaste.redb")).unwrap()
}

/// The end of a server. One that runs is stopped.
fn serve(dir: &Path) -> Result<(), (Option<i32>, String)> {
    let arguments = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--log",
        "json",
        "--data-dir",
        dir.to_str().unwrap(),
    ];
    let mut child = posthaste(&arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap());
    let mut text = String::new();
    while log.read_line(&mut text).unwrap() > 0 {
        if text
            .lines()
            .last()
            .is_some_and(|line| line.contains(r#""url":"#))
        {
            child.kill().unwrap();
            child.wait().unwrap();
            return Ok(());
        }
    }
    log.read_to_string(&mut text).unwrap();
    Err((child.wait().unwrap().code(), text))
}

fn check(dir: &Path) -> (Option<i32>, Value) {
    let output = run(&["check", dir.to_str().unwrap(), "--json"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!error.contains("panicked at"), "{error}");
    (
        output.status.code(),
        serde_json::from_slice(&output.stdout).unwrap_or_default(),
    )
}

#[test]
fn a_damaged_folder_is_refused_by_its_file_or_served() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fill(&folder.path().join("whole"));
    let pages = whole.len() / PAGE_BYTES;
    // Every page of the front, where the roots are, then some of the rest.
    let page = |n: usize| if n < 8 { n } else { n * 37 % pages };
    let mut refused = 0;
    for n in 0..24 {
        let dir = folder.path().join(n.to_string());
        let mut bytes = whole.clone();
        let at = page(n) * PAGE_BYTES;
        match n % 3 {
            0 => bytes[at..at + PAGE_BYTES].fill(0xa5),
            1 => bytes[at..at + PAGE_BYTES].fill(0),
            _ => bytes.truncate(at + 100),
        }
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("posthaste.redb"), &bytes).unwrap();
        let (code, _) = check(&dir);
        if let Err((ended, text)) = serve(&dir) {
            let file = dir.join("posthaste.redb");
            assert_eq!((ended, code), (Some(1), Some(1)), "{n}: {text}");
            assert!(text.contains(file.to_str().unwrap()), "{n}: {text}");
            // A panic of the engine that was caught is said once, by the error that it became.
            assert!(!text.contains("\"panicked: "), "{n}: {text}");
            assert!(
                text.contains("restore the data folder from a backup"),
                "{n}: {text}"
            );
            refused += 1;
        }
    }
    assert!((8..24).contains(&refused), "{refused}");
}

#[test]
fn an_empty_or_foreign_database_is_no_new_one() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("empty", &b""[..]),
        ("foreign", b"SQLite format 3\0 and so on"),
    ] {
        let dir = folder.path().join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("posthaste.redb"), bytes).unwrap();
        let (code, text) = serve(&dir).unwrap_err();
        assert!(
            code == Some(1) && text.contains("or move the file away"),
            "{name}: {text}"
        );
        assert_eq!(
            fs::read(dir.join("posthaste.redb")).unwrap(),
            bytes,
            "{name}"
        );
    }
}

#[test]
fn payload_altered_on_disk_becomes_a_malformed_dead_letter() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let mut bytes = fill(&dir);
    assert_eq!(check(&dir), (Some(0), check(&dir).1));
    let from = br#""amount":100"#;
    let into = br#""amount":999"#;
    let places: Vec<_> = (0..bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    for at in &places {
        bytes[*at..*at + into.len()].copy_from_slice(into);
    }
    fs::write(dir.join("posthaste.redb"), &bytes).unwrap();
    let (code, report) = check(&dir);
    let damages = report["damages"].as_u64().unwrap();
    assert!(code == Some(1) && damages > 0, "{report}");
    let mut server = Server::start(&dir, &["--allow-endpoints", "127.0.0.0/8"]);
    let mut kept = 0;
    while kept < 20 {
        let line = server.wait_for_line("key");
        kept += u32::from(
            line["key"]
                .as_str()
                .is_some_and(|key| key.starts_with("MALFORMED/")),
        );
    }
    let (code, _) = failure(&run(&["check", dir.to_str().unwrap()]));
    assert_eq!(code, 1, "a folder in use is not checked");
}

/// Damaged topic can be deleted and applied again.
#[test]
fn topic_altered_on_disk_is_named_and_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let mut bytes = fill(&dir);
    let from = br"http://127.0.0.1:1/";
    let into = br"http://127.0.0.1:2/";
    let places: Vec<_> = (0..bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from))
        .collect();
    for at in &places {
        bytes[*at..*at + into.len()].copy_from_slice(into);
    }
    fs::write(dir.join("posthaste.redb"), &bytes).unwrap();
    let server = Server::start(&dir, &["--allow-endpoints", "127.0.0.0/8"]);
    for command in [&["topics", "show", "orders"][..], &["apply", "-f", "-"]] {
        let (_, error) = failure(&server.run_with(command, TOPICS));
        assert!(
            error.contains("the object topics/orders.json is damaged"),
            "{error}"
        );
        assert!(
            error.contains("restore the data folder from a backup, or delete the topic"),
            "{error}"
        );
    }
    let listed = server.run(&["topics"]);
    let text = String::from_utf8(listed.stdout.clone()).unwrap();
    assert!(text.contains("orders  (unreadable)"), "{text}");
    let (code, warning) = failure(&listed);
    assert!(
        code == 0 && warning.starts_with("warning: the topic orders cannot be read: "),
        "{warning}"
    );
    // How much waits is not known.
    server.json(&["topics", "delete", "orders", "--yes"], "");
    server.json(&["apply", "-f", "-"], TOPICS);
    server.json(&["publish", "orders", "-f", "-"], EVENT);
    server.signal("TERM");
    assert_eq!(server.end(), Some(0));
}
