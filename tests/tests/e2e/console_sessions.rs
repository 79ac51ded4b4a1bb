//! Sessions of the console over restarts and backups of a data folder.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

use std::process::Command;

use posthaste_tests::binary::posthaste;
use posthaste_tests::home::Home;
use posthaste_tests::server::Server;

const SESSIONS: &str = "/console/sessions";
const SIGN_IN: &str = "/console/sign-in";

/// A page and the cookie that came with it.
struct Page {
    status: u16,
    cookie: String,
    form_token: String,
}

fn send(server: &Server, method: &str, path: &str, cookie: &str, form: &str) -> Page {
    let headers = [
        ("cookie", cookie),
        ("content-type", "application/x-www-form-urlencoded"),
    ];
    let answer = server.api().send(method, path, &headers, form.as_bytes());
    let answer = answer.expect("the server answers");
    let cookie = answer.header("set-cookie").unwrap_or_default();
    let html = String::from_utf8_lossy(&answer.body);
    let token = html.split("name=\"form\" value=\"").nth(1);
    let token = token.and_then(|rest| rest.split('"').next());
    Page {
        status: answer.status,
        cookie: cookie.split(';').next().unwrap().to_owned(),
        form_token: token.unwrap_or_default().to_owned(),
    }
}

/// Signs in, and returns the cookie.
fn sign_in(server: &Server) -> String {
    let page = send(server, "GET", SIGN_IN, "", "");
    let key = server.api().admin_key();
    let form = format!("form={}&key={key}", page.form_token);
    let signed_in = send(server, "POST", SIGN_IN, &page.cookie, &form);
    assert_eq!(signed_in.status, 303);
    signed_in.cookie
}

/// A session outlives a restart, and one that has ended does not come back with a backup.
#[test]
fn backup_brings_no_ended_session_back() {
    let home = Home::new();
    let server = home.serve();
    let cookie = sign_in(&server);
    server.stop();
    let server = home.serve();
    let page = send(&server, "GET", SESSIONS, &cookie, "");
    assert_eq!(page.status, 200, "still signed in after a restart");
    let root = tempfile::tempdir().unwrap();
    let backup = root.path().join("backup");
    let restored = root.path().join("restored");
    home.run_json(&server, &["backup", backup.to_str().unwrap()]);
    let form = format!("form={}", page.form_token);
    let out = send(&server, "POST", "/console/sign-out", &cookie, &form);
    assert_eq!(out.status, 303);
    assert_eq!(send(&server, "GET", SESSIONS, &cookie, "").status, 303);
    server.stop();
    let made = Command::new(posthaste())
        .args(["restore", backup.to_str().unwrap()])
        .args(["--data", restored.to_str().unwrap()])
        .status();
    assert!(made.unwrap().success());
    let server = Server::start(&restored, &[]);
    assert_eq!(send(&server, "GET", SESSIONS, &cookie, "").status, 303);
    let cookie = sign_in(&server);
    server.stop();
    // Later starts on the same folder end nothing.
    let server = Server::start(&restored, &[]);
    assert_eq!(send(&server, "GET", SESSIONS, &cookie, "").status, 200);
    server.stop();
}
