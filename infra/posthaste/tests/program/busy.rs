//! Servers that are busy, lists that do not end, and changes in between: stood in for by a listener
//! that answers from a script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::common::{failure, run, run_with};

/// A server that answers each request by this function of its line, such as `GET /topics`.
struct Scripted {
    url: String,
    /// The requests that came: each line, with the body.
    seen: Arc<Mutex<Vec<(String, String)>>>,
}

impl Scripted {
    fn start(answer: impl Fn(&str, usize) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (line, body) = request(&stream);
                let count = {
                    let mut lines = lines.lock().unwrap();
                    lines.push((line.clone(), body));
                    lines.iter().filter(|(it, _)| *it == line).count()
                };
                // A client may leave before it is answered.
                let _ = stream.write_all(answer(&line, count).as_bytes());
            }
        });
        Self { url, seen }
    }

    fn seen(&self) -> Vec<(String, String)> {
        self.seen.lock().unwrap().clone()
    }
}

/// Reads a request to its end: its line, and its body.
fn request(stream: &TcpStream) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let words: Vec<_> = first.split(' ').take(2).collect();
    (words.join(" "), String::from_utf8(body).unwrap())
}

fn response(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n{headers}\r\n{body}"
    )
}

fn busy(status: &str) -> String {
    response(status, "retry-after: 0\r\n", "")
}

const NO_TOPICS: &str = r#"{"topics":[]}"#;

#[test]
fn busy_server_is_asked_again_and_the_wait_is_said() {
    let server = Scripted::start(|_, count| match count {
        1 => busy("503 Service Unavailable"),
        2 => busy("429 Too Many Requests"),
        _ => response("200 OK", "", NO_TOPICS),
    });
    let output = run(&["topics", "--key", "k", "--url", &server.url]);
    let (code, said) = failure(&output);
    let expected = "the server is busy (503): the request is sent again in 0 s\n\
                    the server is busy (429): the request is sent again in 0 s\n";
    assert!(code == 0 && said.starts_with(expected), "{code} {said}");
    assert_eq!(server.seen().len(), 3);
}

#[test]
fn server_that_stays_busy_is_asked_six_times() {
    let server = Scripted::start(|_, _| busy("503 Service Unavailable"));
    let (code, said) = failure(&run(&["topics", "--key", "k", "--url", &server.url]));
    assert_eq!((code, server.seen().len()), (7, 6), "{said}");
    assert!(said.contains("HTTP status 503 (503)"), "{said}");
}

#[test]
fn request_that_may_have_been_done_is_not_sent_again() {
    let server = Scripted::start(|_, _| busy("503 Service Unavailable"));
    let arguments = ["topics", "regenerate-key", "orders", "key1", "--key", "k"];
    let output = run(&[&arguments[..], &["--url", &server.url]].concat());
    assert_eq!((failure(&output).0, server.seen().len()), (7, 1));
}

#[test]
fn list_whose_cursor_leads_to_itself_ends() {
    let page = r#"{"topics":[],"cursor":"again"}"#;
    let server = Scripted::start(move |_, _| response("200 OK", "", page));
    let (code, said) = failure(&run(&["topics", "--key", "k", "--url", &server.url]));
    let expected = "is longer than 0 items, or does not end";
    assert!(code == 1 && said.contains(expected), "{code} {said}");
    assert_eq!(server.seen().len(), 2);
}

/// The secrets of a new topic are shown once, so they are shown although its keys are not.
#[test]
fn apply_shows_new_secrets_where_the_keys_cannot_be_read() {
    let server = Scripted::start(|line, _| match line {
        "PUT /topics/orders" => response("201 Created", "etag: \"1\"\r\n", &orders(SECRET)),
        "GET /topics/orders/keys" => response("500 Internal Server Error", "", ""),
        _ => not_found(),
    });
    let (code, said, shown) = apply_orders(&server);
    assert!(
        code == 1 && said.starts_with("error: not everything was applied\n"),
        "{code} {said}"
    );
    assert!(shown.contains("orders  billing       created"), "{shown}");
    assert!(
        shown.contains(&format!("orders/billing  signing secret  {SECRET}")),
        "{shown}"
    );
}

/// The server gave the write up and carried it out: sent again, it meets its own effect.
#[test]
fn write_whose_answer_was_lost_shows_what_it_has_made() {
    let server = Scripted::start(|line, count| match (line, count) {
        ("PUT /topics/orders", 1) => busy("503 Service Unavailable"),
        ("PUT /topics/orders", 2) => response("412 Precondition Failed", "", ""),
        ("GET /topics/orders/keys", _) => response("200 OK", "", KEYS),
        ("GET /topics/orders?secrets=true", _) => topic(&revealed(SECRET)),
        ("GET /topics/orders", 1) => not_found(),
        _ => topic(&orders(MASKED)),
    });
    let (code, said, shown) = apply_orders(&server);
    assert_eq!(code, 0, "{said} {:?}", server.seen());
    for expected in [
        "orders  billing       created",
        &format!("orders/billing  signing secret  {SECRET}"),
        "k-1",
    ] {
        assert!(shown.contains(expected), "{shown}");
    }
}

/// Only the subscription is new: the keys of its topic, and the secrets of others, are not shown.
#[test]
fn topic_write_with_a_lost_response_shows_new_secrets_alone() {
    let empty = r#"{"name":"orders","inputSchema":"CloudEvents","subscriptions":{}}"#;
    let server = Scripted::start(move |line, count| match (line, count) {
        ("PUT /topics/orders", 1) => busy("503 Service Unavailable"),
        ("PUT /topics/orders", 2) => response("412 Precondition Failed", "", ""),
        ("GET /topics/orders?secrets=true", _) => topic(&revealed(SECRET)),
        ("GET /topics/orders", 1) => topic(empty),
        _ => topic(&orders(MASKED)),
    });
    let (code, said, shown) = apply_orders(&server);
    assert_eq!(code, 0, "{said} {:?}", server.seen());
    assert!(shown.contains("orders                unchanged"), "{shown}");
    assert!(shown.contains("orders  billing       created"), "{shown}");
    assert!(shown.contains(SECRET) && !shown.contains("k-1"), "{shown}");
}

/// The secrets cannot be read a second time: what was done is told all the same.
#[test]
fn unreadable_new_secrets_lead_to_advice_on_seeing_them() {
    let server = Scripted::start(|line, count| match (line, count) {
        ("PUT /topics/orders", 1) => busy("503 Service Unavailable"),
        ("PUT /topics/orders", 2) => response("412 Precondition Failed", "", ""),
        ("GET /topics/orders/keys", _) => response("200 OK", "", KEYS),
        ("GET /topics/orders?secrets=true", _) => response("400 Bad Request", "", ""),
        ("GET /topics/orders", 1) => not_found(),
        _ => topic(&orders(MASKED)),
    });
    let (code, said, shown) = apply_orders(&server);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("`posthaste topics export --secrets` shows them"),
        "{said}"
    );
    assert!(shown.contains("orders  billing       created"), "{shown}");
}

/// Somebody else made the topic between the two: that is no effect of this write.
#[test]
fn write_after_a_doubt_that_another_one_beat_is_made_again() {
    let server = Scripted::start(|line, count| match (line, count) {
        ("PUT /topics/orders", 1) => busy("503 Service Unavailable"),
        ("PUT /topics/orders", 2) => response("412 Precondition Failed", "", ""),
        ("PUT /topics/orders", _) => topic(&orders(SECRET)),
        ("GET /topics/orders?secrets=true", _) => topic(&revealed(SECRET)),
        ("GET /topics/orders", 1) => not_found(),
        ("GET /topics/orders/keys", _) => response("200 OK", "", KEYS),
        _ => topic(r#"{"name":"orders"}"#),
    });
    let (code, said, shown) = apply_orders(&server);
    assert_eq!(code, 0, "{said} {:?}", server.seen());
    let puts = server.seen();
    let puts = puts.iter().filter(|(line, _)| line.starts_with("PUT"));
    assert_eq!(puts.count(), 3);
    assert!(shown.contains("orders  billing       created"), "{shown}");
    assert!(shown.contains(SECRET), "{shown}");
}

const MASKED: &str = "(masked:0a1b2c3d)";

fn topic(body: &str) -> String {
    response("200 OK", "etag: \"1\"\r\n", body)
}

/// The topic `orders` with its keys, as it is shown with secrets.
fn revealed(secret: &str) -> String {
    let keys = format!(r#"{{"keys":{KEYS},"#);
    orders(secret).replacen('{', &keys, 1)
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

const KEYS: &str = r#"{"key1":"k-1","key2":"k-2"}"#;

/// The topic `orders` with one subscription, whose signing secret is shown like this.
fn orders(secret: &str) -> String {
    format!(
        r#"{{"name":"orders","inputSchema":"CloudEvents","subscriptions":{{"billing":{{
        "name":"billing","endpoint":{{"url":"https://a.example/"}},"contentMode":"structured",
        "filter":{{"isSubjectCaseSensitive":false}},"retryPolicy":{{}},"deadLetter":{{}},
        "signing":{{"secrets":["{secret}"]}},
        "status":{{"state":"Active","since":"2026-11-29T17:01:00.023Z"}}}}}}}}"#
    )
}

fn not_found() -> String {
    let headers = "content-type: application/problem+json\r\n";
    response("404 Not Found", headers, "{}")
}

/// Applies that topic. Answers the exit code, and what was said and shown.
fn apply_orders(server: &Scripted) -> (i32, String, String) {
    let file = "topics: { orders: { subscriptions: { billing: { endpoint: { url: 'https://a.example/' } } } } }";
    let arguments = ["apply", "-f", "-", "--key", "k", "--url", &server.url];
    let output = run_with(&arguments, file);
    let (code, said) = failure(&output);
    (code, said, String::from_utf8(output.stdout).unwrap())
}

/// The members that are named are laid over the newer version, so that the change in between is
/// kept.
#[test]
fn keep_is_laid_over_a_change_that_comes_between() {
    let topic = |ttl: &str, etag: &str| {
        let body = format!(r#"{{"name":"orders","defaultTimeToLive":"{ttl}"}}"#);
        response("200 OK", &format!("etag: \"{etag}\"\r\n"), &body)
    };
    let server = Scripted::start(move |line, count| match (line, count) {
        ("PUT /topics/orders", 1) => response("412 Precondition Failed", "", ""),
        ("PUT /topics/orders", _) => topic("P3D", "3"),
        // Before it is checked, and before it is written.
        (_, 1 | 2) => topic("P1D", "1"),
        _ => topic("P2D", "2"),
    });
    let arguments = [
        "apply",
        "-f",
        "-",
        "--keep",
        "--key",
        "k",
        "--url",
        &server.url,
    ];
    let output = run_with(&arguments, "topics: { orders: { recordUnmatched: true } }");
    assert_eq!(failure(&output), (0, String::new()));
    let seen = server.seen();
    let puts = seen.iter().filter(|(line, _)| line.starts_with("PUT"));
    let lives: Vec<_> = puts
        .map(|(_, body)| {
            let body: serde_json::Value = serde_json::from_str(body).unwrap();
            assert_eq!(body["recordUnmatched"], true);
            body["defaultTimeToLive"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(lives, ["P1D", "P2D"]);
}
