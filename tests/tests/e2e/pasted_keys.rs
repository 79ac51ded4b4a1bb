//! Keys and files as they come from editors, pages and stores of secrets: with line ends, spaces and
//! byte order marks around them.

#![allow(
    clippy::unwrap_used,
    reason = "the settings of clippy.toml for tests do not reach their helpers"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use posthaste_tests::binary::posthaste;
use posthaste_tests::endpoint::Endpoint;
use posthaste_tests::events::{cloud_event, subscription};
use posthaste_tests::home::Home;
use posthaste_tests::server::Server;
use serde_json::json;

/// Texts that stand around a key that was pasted or read from a file.
const AROUND: [(&str, &str); 7] = [
    ("", "\n"),
    ("", "\r\n"),
    ("\u{feff}", ""),
    ("\u{feff}", "\r\n"),
    (" ", " "),
    ("\t", "\u{a0}"),
    ("\n", "\u{200b}\n"),
];

/// A key of words, as a person may choose it.
const OF_WORDS: &str = "correct horse  battery staple";

/// A root certificate of nobody.
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----
MIIBiDCCAS+gAwIBAgIUY1Quwof7mqcjWEdYlZwFV85iOw8wCgYIKoZIzj0EAwIw
GTEXMBUGA1UEAwwOcG9zdGhhc3RlIHRlc3QwIBcNMjYxMTI3MTgxMzE3WhgPMjEy
NjExMDMxODEzMTdaMBkxFzAVBgNVBAMMDnBvc3RoYXN0ZSB0ZXN0MFkwEwYHKoZI
zj0CAQYIKoZIzj0DAQcDQgAErGIYnlgFcxl171qAXu2LgzT68r6kfCxaaoo5facq
AshXxMH0tn8PXGHKQ8DBp6JmqcOcYLewUCdqlgrRD9ZcD6NTMFEwHQYDVR0OBBYE
FF6pxtDqezaX79H4IbN+40spID82MB8GA1UdIwQYMBaAFF6pxtDqezaX79H4IbN+
40spID82MA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDRwAwRAIgbYe5P3td
IeJx5415P7cOh/V/EMJBo6aNiJaNK2VtSPoCIECfBC0R36OPGotXjYN7Zkcd8DSu
Dhzt4Oo5nPf7l38A
-----END CERTIFICATE-----
";

/// Runs a command with this key in the environment. No data folder has another.
fn with_key(server: &Server, key: &str, arguments: &[&str]) -> Output {
    let nowhere = Home::new();
    let mut command = Command::new(posthaste());
    command
        .env("POSTHASTE_KEY", key)
        .args(["--url", server.url(), "--data-dir"])
        .arg(nowhere.path())
        .args(arguments);
    command.output().unwrap()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server that finds this key in its environment.
fn serve_with_key(home: &Home, key: &str) -> Server {
    let mut command = Command::new("env");
    command.arg(format!("POSTHASTE_KEY={key}")).arg(posthaste());
    Server::start_by(command, home.path(), &[])
}

/// A file that begins with a byte order mark.
fn marked(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, format!("\u{feff}{text}")).unwrap();
    path
}

#[test]
fn key_of_the_environment_is_taken_without_what_is_around_it() {
    let home = Home::new();
    let server = home.serve();
    let key = fs::read_to_string(home.path().join("admin.key")).unwrap();
    let event = marked(home.path(), "event.json", &cloud_event("1").to_string());
    server.api().create_topic("orders", &json!({}));
    for (before, after) in AROUND {
        let pasted = format!("{before}{}{after}", key.trim());
        for arguments in [
            &["topics"][..],
            &["links"],
            &["pressure"],
            &["replays"],
            &["events", "list", "orders"],
            &["publish", "orders", "--file", event.to_str().unwrap()],
        ] {
            let output = with_key(&server, &pasted, arguments);
            assert!(output.status.success(), "{pasted:?} {}", error(&output));
        }
    }
}

#[test]
fn key_with_a_hidden_character_is_refused_by_its_name() {
    let home = Home::new();
    let server = home.serve();
    let key = fs::read_to_string(home.path().join("admin.key")).unwrap();
    let hidden = format!("{}\u{200b}{}", &key[..12], key[12..].trim());
    let output = with_key(&server, &hidden, &["topics"]);
    assert_eq!(output.status.code(), Some(5));
    let error = error(&output);
    assert!(error.contains("ZERO WIDTH SPACE (U+200B)"), "{error}");
}

#[test]
fn server_takes_its_key_from_the_environment_likewise() {
    let home = Home::new();
    home.serve().stop();
    for (before, after) in AROUND {
        let server = serve_with_key(&home, &format!("{before}{OF_WORDS}{after}"));
        // Without the key there would be no such list.
        let output = with_key(&server, OF_WORDS, &["topics"]);
        assert!(output.status.success(), "{before:?} {}", error(&output));
        server.stop();
    }
}

#[test]
fn key_of_words_opens_commands_and_api() {
    let home = Home::new();
    fs::write(home.path().join("admin.key"), format!("{OF_WORDS}\n")).unwrap();
    let server = home.serve();
    home.run_json(&server, &["topics"]);
    for pasted in [OF_WORDS.to_owned(), format!(" {OF_WORDS}\r\n")] {
        let output = with_key(&server, &pasted, &["topics"]);
        assert!(output.status.success(), "{pasted:?} {}", error(&output));
    }
    let status = |key: &str| {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str())];
        let answer = server.api().send("GET", "/topics", &headers, b"");
        answer.unwrap().status
    };
    assert_eq!(status(OF_WORDS), 200);
    // Another number of spaces is another key.
    assert_eq!(status("correct horse battery staple"), 401);
}

/// A key that was cut off by a copy, a full disk or a power cut.
#[test]
fn made_key_that_was_cut_off_is_named_by_its_file() {
    let home = Home::new();
    home.serve().stop();
    let path = home.path().join("admin.key");
    let key = fs::read_to_string(&path).unwrap();
    let key = key.trim();
    for end in [0, 1, 12, 20, key.len() - 1] {
        fs::write(&path, &key[..end]).unwrap();
        let (code, log) = Server::fail_to_start(home.path(), &[]);
        assert_eq!(code, Some(1), "{log}");
        let name = path.display().to_string();
        assert!(log.contains(&name), "{log}");
        assert!(log.contains("write the whole key into it"), "{log}");
        assert_eq!(fs::read_to_string(&path).unwrap(), key[..end]);
    }
    // A command finds it out without the server.
    fs::write(&path, key).unwrap();
    let server = home.serve();
    fs::write(&path, &key[..30]).unwrap();
    let output = home.run(&server, &["topics"]);
    assert_eq!(output.status.code(), Some(5));
    let refused = error(&output);
    assert!(
        refused.contains("admin.key") && refused.contains("not whole"),
        "{refused}"
    );
    let output = with_key(&server, &key[..30], &["topics"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(error(&output).contains("not whole"), "{}", error(&output));
    // Without its line end it is the same key.
    fs::write(&path, key).unwrap();
    home.run_json(&server, &["topics"]);
}

#[test]
fn files_of_commands_may_begin_with_a_byte_order_mark() {
    let home = Home::new();
    let endpoint = Endpoint::start();
    let server = home.serve();
    let url = endpoint.url("/a");
    let yaml = format!(
        "topics:\n  orders:\n    subscriptions:\n      a: {{ endpoint: {{ url: {url} }} }}\n"
    );
    let topics = marked(home.path(), "topics.yaml", &yaml);
    let event = marked(home.path(), "event.json", &cloud_event("1").to_string());
    let lines = format!("{}\n{}\n", cloud_event("2"), cloud_event("3"));
    let lines = marked(home.path(), "lines.json", &lines);
    let topics = topics.to_str();
    let event = event.to_str();
    let lines = lines.to_str();
    let topics = topics.unwrap();
    let event = event.unwrap();
    let lines = lines.unwrap();
    for arguments in [
        &["apply", "--file", topics, "--dry-run"][..],
        &["apply", "--file", topics],
        &["publish", "orders", "--file", event],
        &["publish", "orders", "--file", lines, "--rate", "auto"],
        &["subscriptions", "test", "orders", "a", "--file", event],
    ] {
        let output = home.run(&server, arguments);
        assert!(output.status.success(), "{arguments:?} {}", error(&output));
    }
    endpoint.wait_for("/a", 4);
    // The file of the key, as an editor saved it.
    let key = fs::read_to_string(home.path().join("admin.key")).unwrap();
    marked(home.path(), "admin.key", &key);
    home.run_json(&server, &["topics"]);
    server.stop();
}

#[test]
fn files_of_serve_may_begin_with_a_byte_order_mark() {
    let home = Home::new();
    let files = Home::new();
    let folder = files.path();
    let endpoint = subscription("http://127.0.0.1:9/");
    let topics = json!({ "topics": { "orders": { "subscriptions": { "a": endpoint } } } });
    marked(home.path(), "admin.key", "a-key-of-my-own-choice\r\n");
    let options = [
        (
            "--config",
            marked(folder, "topics.yaml", &topics.to_string()),
        ),
        (
            "--link-settings",
            marked(folder, "links.yaml", "refusalsInRow: 0\n"),
        ),
        (
            "--pressure-settings",
            marked(
                folder,
                "pressure.yaml",
                "ResourceMonitoringInterval: 00:00:02\n",
            ),
        ),
        ("--extra-ca", marked(folder, "roots.pem", CERTIFICATE)),
    ];
    let arguments: Vec<_> = options
        .iter()
        .flat_map(|(option, file)| [*option, file.to_str().unwrap()])
        .collect();
    let server = Server::start(home.path(), &arguments);
    posthaste_tests::patience::wait_until("a server that is ready", || {
        let health = server.api().send("GET", "/health", &[], b"").unwrap();
        (health.status == 200).then_some(())
    });
    let topics = home.run_json(&server, &["topics"]);
    assert_eq!(topics["topics"][0]["name"], "orders");
    server.stop();
}
