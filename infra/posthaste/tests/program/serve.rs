//! A server as a process: its life, and the commands against it. Delivery itself is tested end to
//! end in `tests/`.

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{Server, failure, run};
use serde_json::{Value, json};
use tempfile::TempDir;

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/t","type":"a.b","data":{}}"#;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn topics(url: &str, types: &str) -> String {
    format!(
        "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: {{ url: '{url}' }}\n\
        \x20       filter: {{ includedEventTypes: [{types}] }}\n"
    )
}

/// The answer of the server to a request without a key.
fn get(server: &Server, path: &str) -> String {
    let address = server
        .url
        .strip_prefix("http://")
        .unwrap()
        .trim_end_matches('/')
        .to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn changes(applied: &Value) -> Vec<&str> {
    applied["applied"]
        .as_array()
        .unwrap()
        .iter()
        .map(|what| what["change"].as_str().unwrap())
        .collect()
}

#[test]
fn apply_says_what_it_did_and_shows_new_secrets_once() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let first = server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    assert_eq!(changes(&first), ["created", "created"]);
    let new: Vec<_> = first["new"]
        .as_array()
        .unwrap()
        .iter()
        .map(|new| (&new["of"], &new["kind"]))
        .collect();
    assert_eq!(
        new,
        [
            (&json!("orders/billing"), &json!("signing secret")),
            (&json!("orders"), &json!("publish key")),
            (&json!("orders"), &json!("publish key")),
        ]
    );
    let again = server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    assert_eq!(
        (changes(&again), &again["new"]),
        (vec!["unchanged", "unchanged"], &json!([]))
    );
    let other = server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a, b"));
    assert_eq!(
        (changes(&other), &other["new"]),
        (vec!["unchanged", "changed"], &json!([]))
    );
}

#[test]
fn rotated_signing_secret_has_its_public_key_published() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    let rotate = [
        "subscriptions",
        "rotate-secret",
        "orders",
        "billing",
        "--kind",
        "v1a",
    ];
    let rotated = server.json(&rotate, "");
    assert!(rotated["secret"].as_str().unwrap().starts_with("whsk_"));
    let masks = rotated["signing"]["secrets"].as_array().unwrap();
    assert!(
        masks.len() == 2
            && masks
                .iter()
                .all(|mask| mask.as_str().unwrap().starts_with("(masked:"))
    );
    let keys = get(
        &server,
        "/.well-known/webhook-keys?topic=orders&subscription=billing",
    );
    assert!(
        keys.starts_with("HTTP/1.1 200") && keys.contains(rotated["publicKey"].as_str().unwrap()),
        "{keys}"
    );
    let output = server.run_with(
        &[
            "subscriptions",
            "rotate-secret",
            "orders",
            "billing",
            "--overlap",
            "P8D",
        ],
        "",
    );
    let (code, error) = failure(&output);
    assert!(code == 3 && error.contains("overlap"), "{code} {error}");
}

#[test]
fn topics_applied_before_a_refusal_are_shown_with_secrets() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let private =
        "  zone:\n    subscriptions:\n      a: { endpoint: { url: 'https://10.0.0.1/' } }\n";
    let text = topics("https://a.example/", "a") + private;
    let output = server.run_with(&["apply", "-f", "-", "--json"], &text);
    let (code, error) = failure(&output);
    assert!(code == 3 && error.contains("10.0.0.1"), "{code} {error}");
    let done: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (changes(&done), done["new"].as_array().unwrap().len()),
        (vec!["created", "created"], 3)
    );
}

#[test]
fn a_notices_topic_that_does_not_exist_is_a_warning() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let check = |file: &str, expected: &str| {
        let output = server.run_with(&["apply", "-f", "-"], file);
        assert_eq!(failure(&output), (0, expected.to_owned()), "{file}");
    };
    check(
        "topics: { orders: { noticesTopic: ops } }",
        "warning: -: topics.orders.noticesTopic: there is no topic ops; no notices are sent until you create \
            it\n",
    );
    check("topics: { ops: {}, orders: { noticesTopic: OPS } }", "");
    check("topics: { orders: { noticesTopic: Ops } }", "");
}

#[test]
fn the_schema_of_the_file_is_served_without_a_key() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let answer = get(&server, "/schema.json");
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.contains("\"noticesTopic\""),
        "{answer}"
    );
}

#[test]
fn applied_topics_are_listed_shown_and_deleted() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    assert_eq!(server.json(&["topics"], "")["topics"][0]["name"], "orders");
    assert_eq!(
        server.json(&["topics", "show", "orders"], "")["subscriptions"]["billing"]["name"],
        "billing"
    );
    let shown = server.json(&["subscriptions", "show", "orders", "billing"], "");
    assert_eq!(shown["endpoint"]["url"], "https://a.example/");
    let listed = server.json(&["subscriptions", "list", "orders"], "");
    assert_eq!(listed["subscriptions"], json!([shown]));
    let text = String::from_utf8(server.run(&["subscriptions", "list", "orders"]).stdout).unwrap();
    assert!(
        text.starts_with("SUBSCRIPTION  ENDPOINT")
            && text.contains("billing       https://a.example/"),
        "{text}"
    );
    let dead = server.json(&["dead-letters", "list", "orders", "billing"], "");
    assert_eq!(dead, json!({ "deadLetters": [] }));
    assert!(server.json(&["pressure"], "").is_object());
    server.json(&["subscriptions", "delete", "orders", "billing"], "");
    server.json(&["topics", "delete", "orders"], "");
    assert_eq!(
        server.json(&["topics", "list"], ""),
        json!({ "topics": [] })
    );
}

#[test]
fn a_key_of_another_tier_is_made_shown_and_taken_away() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    let before = server.json(&["topics", "keys", "orders"], "");
    assert_eq!(
        before.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["key1", "key2"]
    );
    let after = server.json(&["topics", "regenerate-key", "orders", "bulkKey1"], "");
    assert_eq!(
        (&after["key1"], after["bulkKey1"].is_string()),
        (&before["key1"], true)
    );
    assert_eq!(server.json(&["topics", "keys", "orders"], ""), after);
    let deleted = server.json(&["topics", "delete-key", "orders", "bulkKey1"], "");
    assert_eq!(
        deleted,
        json!({ "deleted": { "topic": "orders", "key": "bulkKey1" } })
    );
    assert_eq!(server.json(&["topics", "keys", "orders"], ""), before);
}

#[test]
fn every_refusal_has_its_exit_code() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    let check = |arguments: &[&str], input: &str, code, words: &str| {
        let (found, text) = failure(&server.run_with(arguments, input));
        assert_eq!(found, code, "{arguments:?}: {text}");
        assert!(text.contains(words), "{arguments:?}: {text}");
    };
    check(&["publish", "orders", "--file", "-"], EVENT, 0, "");
    check(
        &["publish", "orders", "--file", "-"],
        &EVENT.replace("\"a.b\"", "7"),
        3,
        "type",
    );
    check(
        &["publish", "orders", "--file", "-", "--key", "wrong"],
        EVENT,
        5,
        "key",
    );
    check(&["publish", "nothing", "--file", "-"], EVENT, 4, "topic");
    check(&["topics", "show", "nothing"], "", 4, "topic");
    check(&["topics", "--key", "wrong"], "", 5, "key");
    check(
        &["topics", "delete-key", "orders", "key1"],
        "",
        3,
        "can be replaced",
    );
    check(
        &["topics", "delete-key", "orders", "bulkKey1"],
        "",
        4,
        "no bulkKey1",
    );
    check(
        &["topics", "regenerate-key", "orders", "key3"],
        "",
        2,
        "bulkKey2",
    );
    check(
        &["dead-letters", "show", "NO/SUCH/2026/1/1/1/x.json"],
        "",
        4,
        "",
    );
    check(
        &["apply", "-f", "-"],
        &topics("http://127.0.0.1:1/", "a"),
        3,
        "url",
    );
}

/// Publish says how many events were accepted, and how many subscriptions matched.
#[test]
fn publish_reports_accepted_events_and_matches() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a.b"));
    let counts = |published: &Value| {
        let published = &published["published"];
        ["acceptedEvents", "matchedSubscriptions", "unmatchedEvents"]
            .map(|name| published[name].clone())
    };
    let other = EVENT.replace("\"a.b\"", "\"other\"");
    let both = format!("[{EVENT},{other}]");
    let said = |input: &str| {
        String::from_utf8(
            server
                .run_with(&["publish", "orders", "-f", "-"], input)
                .stdout,
        )
        .unwrap()
    };
    assert_eq!(
        counts(&server.json(&["publish", "orders", "-f", "-"], &both)),
        [2, 1, 1].map(|n| json!(n))
    );
    assert_eq!(
        said(EVENT),
        "accepted 1 event; 1 subscription of orders matched\n"
    );
    assert_eq!(
        said(&both),
        "accepted 2 events; 1 subscription of orders matched, and 1 event matched none\n"
    );
    let nothing = said(&other);
    let expected = "accepted 1 event; no subscription of orders matched";
    assert!(
        nothing.starts_with(expected)
            && nothing.contains("\n  try: `posthaste topics show orders`"),
        "{nothing}"
    );
    let paced = server.json(&["publish", "orders", "-f", "-", "--rate", "auto"], &both);
    assert_eq!(paced["published"]["matchedSubscriptionsMax"], 1);
    assert_eq!(paced["published"]["unmatchedEvents"], 1);
}

#[test]
fn the_admin_key_is_made_once_and_opens_the_next_run_too() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let path = folder.path().join("admin.key");
    let key = fs::read_to_string(&path).unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    server.signal("TERM");
    assert_eq!(server.end(), Some(0));
    let server = Server::start(folder.path(), &[]);
    assert_eq!(fs::read_to_string(&path).unwrap(), key);
    let output = run(&[
        "topics",
        "--json",
        "--url",
        &server.url,
        "--key",
        key.trim(),
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["topics"][0]["name"], "orders");
}

#[test]
fn a_closed_terminal_ends_the_server_in_order() {
    let folder = folder();
    // As from a shell that ignores no signal; under `nohup` SIGHUP would be ignored.
    let mut command = Command::new("/usr/bin/env");
    command.env_clear().args([
        "--default-signal=HUP",
        env!("CARGO_BIN_EXE_posthaste"),
        "serve",
    ]);
    command.args([
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        folder.path().to_str().unwrap(),
    ]);
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    assert!(log.any(|line| line.contains("listening on")));
    assert!(
        Command::new("kill")
            .args(["-s", "HUP", &child.id().to_string()])
            .status()
            .unwrap()
            .success()
    );
    log.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn second_server_on_a_folder_is_refused_and_first_continues() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let path = folder.path().to_str().unwrap();
    let (code, text) = failure(&run(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        path,
    ]));
    assert_eq!(code, 1);
    assert!(
        text.contains("is open in another posthaste") && text.contains(path),
        "{text}"
    );
    assert_eq!(server.json(&["topics"], ""), json!({ "topics": [] }));
}

#[test]
fn an_address_that_is_taken_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = folder();
    let path = folder.path().to_str().unwrap();
    let (code, text) = failure(&run(&["serve", "--listen", &address, "--data-dir", path]));
    assert!(code == 1 && text.contains(&address), "{code} {text}");
}

/// Configuration with a typo prevents the start.
#[test]
fn configuration_is_applied_at_start_unless_it_has_a_typo() {
    let files = folder();
    let folder = folder();
    let good = files.path().join("good.yaml");
    fs::write(&good, topics("https://a.example/", "a")).unwrap();
    let mut server = Server::start(folder.path(), &["--config", good.to_str().unwrap()]);
    assert_eq!(server.wait_for_log("change"), "created");
    assert_eq!(server.json(&["topics"], "")["topics"][0]["name"], "orders");
    let bad = files.path().join("bad.yaml");
    fs::write(&bad, "topics:\n  orders: { bogus: 1 }\n").unwrap();
    let (code, text) = failure(&run(&["serve", "--config", bad.to_str().unwrap()]));
    assert!(code == 3 && text.contains("bad.yaml:2:13"), "{code} {text}");
}

#[test]
fn sigterm_drains_and_a_second_one_ends_at_once() {
    let folder = folder();
    let endpoint = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", endpoint.local_addr().unwrap());
    let mut server = Server::start(folder.path(), &["--allow-endpoints", "127.0.0.0/8"]);
    server.json(&["apply", "-f", "-"], &topics(&url, "a.b"));
    server.json(&["publish", "orders", "--file", "-"], EVENT);
    // The attempt is under way: its connection is made, and no answer ever comes.
    let _attempt = endpoint.accept().unwrap();
    server.signal("TERM");
    server.wait_for_log("timeout_s");
    server.signal("TERM");
    assert_eq!(server.end(), Some(143));
}

/// A load balancer sees 503 while everything is still answered.
#[test]
fn server_answers_while_its_shutdown_is_delayed() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &["--shutdown-delay", "PT1H"]);
    for path in ["/livez", "/readyz", "/version"] {
        let answer = get(&server, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    assert_eq!(server.json(&["health"], ""), json!({ "status": "ok" }));
    server.signal("TERM");
    server.wait_for_log("delay_s");
    let (code, said) = failure(&server.run(&["health"]));
    assert_eq!(code, 7, "{said}");
    let answer = get(&server, "/readyz");
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("the server is ending"), "{answer}");
    for path in ["/livez", "/health", "/metrics"] {
        let answer = get(&server, path);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
    server.json(&["apply", "-f", "-"], &topics("https://a.example/", "a"));
    server.json(&["publish", "orders", "--file", "-"], EVENT);
    server.signal("TERM");
    assert_eq!(server.end(), Some(143));
}

/// The drain follows once the delay is over.
#[test]
fn delayed_shutdown_ends_in_order() {
    let folder = folder();
    let mut server = Server::start(folder.path(), &["--shutdown-delay", "PT0.1S"]);
    server.signal("TERM");
    server.wait_for_log("delay_s");
    server.wait_for_log("timeout_s");
    server.wait_for_log("took_s");
    assert_eq!(server.end(), Some(0));
}

/// Takes the next request to an endpoint, and returns its body and the connection.
fn request(endpoint: &TcpListener) -> (String, TcpStream) {
    let (stream, _) = endpoint.accept().unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (String::from_utf8(body).unwrap(), reader.into_inner())
}

#[test]
fn delivery_under_way_at_sigterm_is_finished_and_not_resent() {
    let folder = folder();
    let endpoint = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", endpoint.local_addr().unwrap());
    let mut server = Server::start(folder.path(), &["--allow-endpoints", "127.0.0.0/8"]);
    server.json(&["apply", "-f", "-"], &topics(&url, "a.b"));
    server.json(&["publish", "orders", "--file", "-"], EVENT);
    let (first, mut connection) = request(&endpoint);
    server.signal("TERM");
    server.wait_for_log("timeout_s");
    connection
        .write_all(b"HTTP/1.1 204 No Content\r\n\r\n")
        .unwrap();
    assert_eq!(server.end(), Some(0));
    let server = Server::start(folder.path(), &["--allow-endpoints", "127.0.0.0/8"]);
    let second = EVENT.replace(r#""id":"1""#, r#""id":"2""#);
    server.json(&["publish", "orders", "--file", "-"], &second);
    assert_eq!((first.as_str(), request(&endpoint).0), (EVENT, second));
}

#[test]
fn unknown_paths_and_methods_are_problems_and_metrics_are_text() {
    let folder = folder();
    let server = Server::start(folder.path(), &[]);
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .build()
        .into();
    let missing = agent.get(format!("{}/nothing", server.url)).call().unwrap();
    assert_eq!(
        (
            missing.status().as_u16(),
            &missing.headers()["content-type"]
        ),
        (404, &"application/problem+json".parse().unwrap())
    );
    let method = agent
        .delete(format!("{}/health", server.url))
        .call()
        .unwrap();
    assert_eq!(
        (method.status().as_u16(), &method.headers()["content-type"]),
        (405, &"application/problem+json".parse().unwrap())
    );
    let method = agent
        .delete(format!("{}/metrics", server.url))
        .call()
        .unwrap();
    assert_eq!(
        (method.status().as_u16(), &method.headers()["allow"]),
        (405, &"GET, HEAD".parse().unwrap())
    );
    let metrics = agent.get(format!("{}/metrics", server.url)).call().unwrap();
    assert_eq!(
        metrics.headers()["content-type"],
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let metrics = agent
        .get(format!("{}/metrics", server.url))
        .header(
            "accept",
            "application/openmetrics-text;version=1.0.0,*/*;q=0.1",
        )
        .call()
        .unwrap();
    assert_eq!(
        metrics.headers()["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert_eq!(metrics.headers()["vary"], "accept");
}

/// Settings by which a few hundred waiting messages are Medium, with short delays for producers.
const SMALL_QUEUE: &str = "\
ResourceMonitoringInterval: 00:00:00.200
SubmissionQueueNormalThreshold: 100
SubmissionQueueMediumThreshold: 200
SMTPStartThrottlingDelayInterval: 00:00:00.100
SMTPStepThrottlingDelayInterval: 00:00:00.100
SMTPMaxThrottlingDelayInterval: 00:00:00.500
";

#[test]
fn pressure_trims_caches_and_logs_the_freed_bytes() {
    let files = folder();
    let folder = folder();
    let settings = files.path().join("pressure.yaml");
    fs::write(&settings, SMALL_QUEUE).unwrap();
    let arguments = [
        "--pressure-profile",
        "exchange-2013",
        "--pressure-settings",
        settings.to_str().unwrap(),
        "--allow-endpoints",
        "127.0.0.0/8",
    ];
    let mut server = Server::start(folder.path(), &arguments);
    // No answer ever comes. At most a thousand messages are in flight, so some of three for each
    // subscription wait.
    let endpoint = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", endpoint.local_addr().unwrap());
    let named = (0..500).map(|n| (format!("s{n}"), json!({ "endpoint": { "url": url } })));
    let subscriptions: serde_json::Map<_, _> = named.collect();
    let topics = json!({ "topics": { "orders": { "subscriptions": subscriptions } } });
    server.json(&["apply", "-f", "-"], &topics.to_string());
    for id in 1..=3 {
        let event = EVENT.replace(r#""id":"1""#, &format!(r#""id":"{id}""#));
        server.json(&["publish", "orders", "--file", "-"], &event);
    }
    let trimmed = server.wait_for_line("resident_bytes_after");
    let number = |member: &str| {
        trimmed[member]
            .as_u64()
            .unwrap_or_else(|| panic!("{trimmed}"))
    };
    // Bodies that wait for their receiver, each as long as its event at least.
    assert!(
        number("entries") > 0 && number("bytes") >= EVENT.len() as u64,
        "{trimmed}"
    );
    assert!(
        number("resident_bytes_before") > 0 && number("resident_bytes_after") > 0,
        "{trimmed}"
    );
    let metrics = get(&server, "/metrics");
    assert!(
        metrics.contains(&format!(
            "\nposthaste_trimmed_bytes_total {}\n",
            number("bytes")
        )),
        "{metrics}"
    );
}

#[test]
fn concurrent_requests_are_limited_by_open_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    command.env_clear().args([
        "-c",
        r#"ulimit -n 256; exec "$@""#,
        "sh",
        env!("CARGO_BIN_EXE_posthaste"),
    ]);
    command
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "json",
            "--data-dir",
        ])
        .arg(folder.path());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let log = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let until_listening: Vec<_> = log
        .take_while(|line| !line.contains("listening on"))
        .collect();
    child.kill().unwrap();
    child.wait().unwrap();
    // A quarter is kept for requests to endpoints and 64 for operators.
    let said = until_listening
        .iter()
        .filter(|line| line.contains(r#""requests_max":128"#))
        .count();
    assert_eq!(said, 1, "{until_listening:?}");
}

/// The system gives the process too few threads: that says nothing of the folder, which is whole.
#[test]
fn too_few_threads_are_a_sentence_and_the_folder_stays_whole() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let server = Server::start(&dir, &[]);
    server.signal("TERM");
    assert_eq!(server.end(), Some(0));
    // Another user may not reach the program where it was built.
    let built = env!("CARGO_BIN_EXE_posthaste");
    let program = folder.path().join("program");
    if fs::hard_link(built, &program).is_err() {
        fs::copy(built, &program).unwrap();
    }
    let user = 54_321;
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        give(&dir, user);
    }
    let before = fs::read(dir.join("posthaste.redb")).unwrap();
    for limit in ["1", "2", "3"] {
        // The limit counts the threads of a user, and does not bind root.
        let mut command = if is_root {
            let mut command = Command::new("setpriv");
            command.args([&format!("--reuid={user}"), "--clear-groups", "prlimit"]);
            command
        } else {
            Command::new("prlimit")
        };
        command.env("TOKIO_WORKER_THREADS", "1");
        command.arg(format!("--nproc={limit}")).arg(&program);
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
        let ended = command.arg(&dir).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(1), "{limit}: {said}");
        assert!(said.contains("ulimit -u"), "{limit}: {said}");
        assert!(!said.contains("panicked"), "{limit}: {said}");
        assert!(!said.contains("move the file away"), "{limit}: {said}");
    }
    assert!(fs::read(dir.join("posthaste.redb")).unwrap() == before);
}

/// Gives a folder and what is in it to another user.
fn give(path: &Path, user: u32) {
    chown(path, Some(user), None).unwrap();
    if path.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            give(&entry.unwrap().path(), user);
        }
    }
}
