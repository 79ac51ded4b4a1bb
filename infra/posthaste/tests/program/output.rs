//! Output without a reader or without room: a server goes on, and a command ends as it should.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::{Server, failure, posthaste};
use posthaste_tests::api::Api;
use posthaste_tests::patience::wait_until;
use serde_json::json;
use tempfile::TempDir;

/// Everything is logged, so that a request has a line.
const LOUD: [&str; 4] = ["--log", "json", "--log-filter", "debug"];

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A device without room.
fn full() -> File {
    OpenOptions::new().write(true).open("/dev/full").unwrap()
}

/// A pipe whose reader is gone.
fn closed() -> io::PipeWriter {
    io::pipe().unwrap().1
}

fn admin_key(data_dir: &Path) -> String {
    std::fs::read_to_string(data_dir.join("admin.key"))
        .unwrap()
        .trim()
        .to_owned()
}

/// Makes the server log again and again. It must still answer, and count the lost lines.
fn check_goes_on(api: &Api) {
    let topic = api.create_topic("orders", &json!({}));
    for _ in 0..10 {
        let kind = ("content-type", "application/cloudevents+json");
        topic
            .send_with(&[kind, ("aeg-sas-key", "wrong")], b"{}")
            .problem(401);
        api.send("GET", "/health", &[], b"").unwrap().expect(200);
    }
    assert!(
        api.metric("posthaste_log_lines_lost_total") >= 10.0,
        "{}",
        api.metric("posthaste_log_lines_lost_total")
    );
}

#[test]
fn a_server_goes_on_when_the_reader_of_its_log_is_gone() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &LOUD[2..]);
    server.close_log();
    check_goes_on(&Api::new(server.url.clone(), &admin_key(folder.path())));
    server.signal("TERM");
    assert_eq!(server.end(), Some(0));
}

/// A server that cannot say where it listens. No other process has its address, so a port that was
/// free there stays so.
struct Unheard {
    child: Child,
    api: Api,
    _folder: TempDir,
}

impl Unheard {
    fn start(log: impl Into<Stdio>) -> Self {
        let folder = folder();
        let number = std::process::id();
        let address = format!(
            "127.{}.{}.{}:0",
            64 + number / 65_536 % 64,
            number / 256 % 256,
            number % 256
        );
        let address = TcpListener::bind(address)
            .unwrap()
            .local_addr()
            .unwrap()
            .to_string();
        let arguments = [
            "serve",
            "--listen",
            &address,
            "--data-dir",
            folder.path().to_str().unwrap(),
        ];
        let mut command = posthaste(&[&arguments[..], &LOUD].concat());
        let mut child = command.stdout(closed()).stderr(log).spawn().unwrap();
        let key = wait_until("an admin key", || {
            assert_eq!(child.try_wait().unwrap(), None, "the server ended");
            File::open(folder.path().join("admin.key")).ok()
        });
        drop(key);
        let api = Api::new(format!("http://{address}"), &admin_key(folder.path()));
        wait_until("a server that answers", || {
            assert_eq!(child.try_wait().unwrap(), None, "the server ended");
            api.send("GET", "/health", &[], b"").ok()
        });
        Self {
            child,
            api,
            _folder: folder,
        }
    }
}

impl Drop for Unheard {
    fn drop(&mut self) {
        // It is of no use any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn server_runs_without_room_or_a_reader_for_its_log() {
    check_goes_on(&Unheard::start(full()).api);
    check_goes_on(&Unheard::start(closed()).api);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let data_dir = folder.path().to_str().unwrap();
    let of_server = ["--url", &server.url, "--data-dir", data_dir];
    let api = Api::new(server.url.clone(), &admin_key(folder.path()));
    for n in 0..20 {
        api.create_topic(&format!("t{n}"), &json!({}));
    }
    for command in [
        &["topics", "list"][..],
        &["topics", "list", "--json"],
        &["pressure"],
        &["links"],
    ] {
        let output = posthaste(&[command, &of_server].concat())
            .stdout(closed())
            .output()
            .unwrap();
        assert_eq!(failure(&output), (0, String::new()), "{command:?}");
    }
    for command in [&["--help"][..], &["--version"], &["serve", "--help"]] {
        let output = posthaste(command).stdout(closed()).output().unwrap();
        assert_eq!(failure(&output), (0, String::new()), "{command:?}");
    }
}

#[test]
fn output_without_room_is_a_failure_that_says_so() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let data_dir = folder.path().to_str().unwrap();
    let command = ["pressure", "--url", &server.url, "--data-dir", data_dir];
    let (code, error) = failure(&posthaste(&command).stdout(full()).output().unwrap());
    assert_eq!(code, 1, "{error}");
    assert!(
        error.contains("standard output") && error.contains("space"),
        "{error}"
    );
}

#[test]
fn an_error_that_cannot_be_told_still_has_its_exit_code() {
    let unreachable = [
        "topics",
        "list",
        "--url",
        "http://127.0.0.1:1",
        "--key",
        "k",
    ];
    for command in [&unreachable[..], &["topics", "paint"]] {
        let code = |stderr: Stdio| {
            let child = posthaste(command)
                .stdout(Stdio::null())
                .stderr(stderr)
                .spawn();
            child.unwrap().wait().unwrap().code()
        };
        let expected = code(Stdio::null());
        assert_eq!(
            [code(closed().into()), code(full().into())],
            [expected, expected],
            "{command:?}"
        );
    }
}
