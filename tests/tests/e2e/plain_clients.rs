//! Clients that do no more than HTTP asks of them: they send a request whole, and then read its
//! answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use posthaste_tests::home::Home;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

/// Only ends a test that fails.
const PATIENCE: Duration = Duration::from_mins(1);

/// Far more than any request may have, and within what is still read of it.
const LARGE_BYTES: usize = 20_000_000;

/// Longest URL of an endpoint.
const URL_BYTES_MAX: usize = 2048;

/// Longest path and query of a request.
const REQUEST_TARGET_BYTES_MAX: usize = 16_384;

pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found == name)
            .map(|(_, value)| value.as_str())
    }

    pub(super) fn closes(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the answer is JSON")
    }
}

/// One connection, on which every byte is this client's own.
pub(super) struct Plain(BufReader<TcpStream>);

impl Plain {
    pub(super) fn connect(server: &Server) -> Self {
        let address = server
            .url()
            .strip_prefix("http://")
            .expect("it is plain http");
        let stream = TcpStream::connect(address).expect("the server listens");
        stream
            .set_read_timeout(Some(PATIENCE))
            .expect("a timeout is no zero");
        stream
            .set_write_timeout(Some(PATIENCE))
            .expect("a timeout is no zero");
        Self(BufReader::new(stream))
    }

    /// Sends every byte; a connection that is reset meanwhile fails the test.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.0
            .get_mut()
            .write_all(bytes)
            .expect("the server reads what is sent");
    }

    pub(super) fn head(&mut self, request: &str, headers: &str) {
        self.send(format!("{request} HTTP/1.1\r\nhost: h\r\n{headers}\r\n").as_bytes());
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("the server answers");
        line.trim_end().to_owned()
    }

    pub(super) fn read(&mut self) -> Answer {
        let first = self.line();
        let status = first
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status line: {first:?}"));
        let lines = std::iter::from_fn(|| Some(self.line()).filter(|line| !line.is_empty()));
        let split = |line: String| {
            line.split_once(": ")
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let headers: Vec<_> = lines.filter_map(split).collect();
        let mut answer = Answer {
            status,
            headers,
            body: Vec::new(),
        };
        let length = answer
            .header("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        answer.body = vec![0; length];
        self.0
            .read_exact(&mut answer.body)
            .expect("the body is as long as it says");
        answer
    }

    /// Whether the server has closed the connection.
    pub(super) fn is_closed(&mut self) -> bool {
        self.0.fill_buf().is_ok_and(<[u8]>::is_empty)
    }

    /// Asks for something that is always there.
    pub(super) fn check_is_kept(&mut self) {
        self.head("GET /health", "");
        assert_eq!(self.read().status, 200);
    }
}

pub(super) struct World {
    _home: Home,
    pub(super) server: Server,
    pub(super) key: String,
    pub(super) admin_key: String,
}

pub(super) fn world() -> World {
    let home = Home::new();
    let server = home.serve();
    let key = server.api().create_topic("orders", &json!({})).keys[0].clone();
    let admin_key =
        std::fs::read_to_string(home.path().join("admin.key")).expect("there is an admin key");
    World {
        _home: home,
        server,
        key,
        admin_key: admin_key.trim().to_owned(),
    }
}

impl World {
    /// Requests that are refused before their body is read to its end, with their key and the
    /// status they get.
    fn refused(&self) -> Vec<(&'static str, String, u16)> {
        let publish =
            |key: &str| format!("aeg-sas-key: {key}\r\ncontent-type: application/json\r\n");
        vec![
            ("POST /topics/orders/events", publish(&self.key), 413),
            ("POST /topics/orders/events", publish("wrong"), 401),
            ("POST /topics/nowhere/events", publish(&self.key), 401),
            ("PUT /topics/orders/events", String::new(), 405),
            ("POST /nowhere", String::new(), 404),
            (
                "PUT /topics/orders",
                "content-type: application/json\r\n".to_owned(),
                401,
            ),
            (
                "PUT /topics/orders",
                format!("authorization: Bearer {}\r\n", self.admin_key),
                413,
            ),
            ("POST /metrics", String::new(), 405),
        ]
    }
}

/// A refusal reaches a client that sends its body first, and the connection is kept.
#[test]
fn refusal_reaches_a_client_that_sends_all_and_keeps_connection() {
    let world = world();
    let body = vec![b' '; LARGE_BYTES];
    for (request, headers, status) in world.refused() {
        let mut client = Plain::connect(&world.server);
        client.head(
            request,
            &format!("{headers}content-length: {LARGE_BYTES}\r\n"),
        );
        client.send(&body);
        let answer = client.read();
        assert_eq!(
            (answer.status, answer.closes()),
            (status, false),
            "{request}"
        );
        assert_eq!(answer.json()["status"], status, "{request}");
        client.check_is_kept();
        // One that wants no more of the connection reads its answer, too.
        let mut client = Plain::connect(&world.server);
        client.head(
            request,
            &format!("{headers}connection: close\r\ncontent-length: {LARGE_BYTES}\r\n"),
        );
        client.send(&body);
        assert_eq!(client.read().status, status, "{request}");
        assert!(client.is_closed(), "{request}");
    }
}

/// A refusal of a body without a length says that the connection closes.
#[test]
fn refusal_of_a_body_without_a_length_closes_the_connection() {
    let world = world();
    let chunk = [b"100000\r\n".as_slice(), &vec![b' '; 0x0010_0000], b"\r\n"].concat();
    for (request, headers, status) in world.refused() {
        let mut client = Plain::connect(&world.server);
        client.head(request, &format!("{headers}transfer-encoding: chunked\r\n"));
        for _ in 0..8 {
            client.send(&chunk);
        }
        client.send(b"0\r\n\r\n");
        let answer = client.read();
        assert_eq!(
            (answer.status, answer.closes()),
            (status, true),
            "{request}"
        );
        assert!(client.is_closed(), "{request}");
    }
}

/// A body that is not worth reading is refused at once, with the connection said to close.
#[test]
fn body_not_worth_reading_is_refused_at_once_and_closes() {
    let world = world();
    for (request, headers, status) in world.refused() {
        let mut client = Plain::connect(&world.server);
        client.head(
            request,
            &format!("{headers}content-length: 1000000000000\r\n"),
        );
        let answer = client.read();
        assert_eq!(
            (answer.status, answer.closes()),
            (status, true),
            "{request}"
        );
    }
}

/// A client that asks before it sends is not asked to send a body that is refused.
#[test]
fn client_that_asks_first_is_not_told_to_send_refused_bodies() {
    let world = world();
    for (request, headers, status) in world.refused() {
        let mut client = Plain::connect(&world.server);
        client.head(
            request,
            &format!("{headers}expect: 100-continue\r\ncontent-length: {LARGE_BYTES}\r\n"),
        );
        let answer = client.read();
        assert_eq!(
            (answer.status, answer.closes()),
            (status, true),
            "{request}"
        );
        assert!(client.is_closed(), "{request}");
    }
    // One that is taken is asked to go on.
    let mut client = Plain::connect(&world.server);
    let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
    let headers = format!(
        "aeg-sas-key: {}\r\ncontent-type: application/cloudevents+json\r\n",
        world.key
    );
    let length = event.len();
    client.head(
        "POST /topics/orders/events",
        &format!("{headers}expect: 100-continue\r\ncontent-length: {length}\r\n"),
    );
    assert_eq!(client.read().status, 100);
    client.send(event.as_bytes());
    assert_eq!(client.read().status, 200);
    client.check_is_kept();
}

#[test]
fn a_url_has_a_limit_and_the_connection_is_kept() {
    let world = world();
    let mut client = Plain::connect(&world.server);
    for (bytes, status) in [
        (REQUEST_TARGET_BYTES_MAX, 404),
        (REQUEST_TARGET_BYTES_MAX + 1, 414),
        (60_000, 414),
    ] {
        client.head(&format!("GET /{}", "x".repeat(bytes - 1)), "");
        let answer = client.read();
        assert_eq!(
            (answer.status, &answer.json()["status"]),
            (status, &json!(status)),
            "{bytes}"
        );
        client.head(
            &format!("GET /health?{}", "x".repeat(bytes - "/health?".len())),
            "",
        );
        assert_eq!(
            client.read().status,
            if status == 404 { 200 } else { 414 },
            "{bytes}"
        );
    }
    client.check_is_kept();
    // Past what a head may have at all, nothing more of the connection can be read.
    let mut client = Plain::connect(&world.server);
    client.head(&format!("GET /{}", "x".repeat(500_000)), "");
    assert!([414, 431].contains(&client.read().status));
}

#[test]
fn a_host_is_wanted_once() {
    let world = world();
    let ask = |version: &str, headers: &str| {
        let mut client = Plain::connect(&world.server);
        client.send(format!("GET /health HTTP/{version}\r\n{headers}\r\n").as_bytes());
        client.read()
    };
    assert_eq!(ask("1.1", "host: h\r\n").status, 200);
    assert_eq!(ask("1.1", "host:\r\n").status, 200);
    assert_eq!(ask("1.0", "").status, 200);
    for headers in ["", "host: h\r\nhost: i\r\n"] {
        let answer = ask("1.1", headers);
        assert_eq!(
            (answer.status, &answer.json()["member"]),
            (400, &json!("host")),
            "{headers:?}"
        );
    }
}

#[test]
fn an_endless_part_of_a_path_names_nothing() {
    let world = world();
    let api = world.server.api();
    let document = api
        .send("GET", "/openapi.json", &[], b"")
        .expect("it answers")
        .json();
    let paths = document["paths"].as_object().expect("an API has paths");
    // The key of an object may have 1,024 bytes: below it, and above.
    for long in ["x".repeat(900), "x".repeat(1100)] {
        for (template, methods) in paths.iter().filter(|(template, _)| template.contains('{')) {
            let path = template
                .split('/')
                .map(|part| if part.starts_with('{') { &long } else { part });
            let path = path.collect::<Vec<_>>().join("/");
            for method in ["get", "put", "post", "delete"]
                .iter()
                .filter(|it| methods[**it].is_object())
            {
                let answer = api.manage(&method.to_uppercase(), &path, Some(&json!({})));
                if template == "/events/{id}" {
                    // What users have may be of any length. Nothing is found.
                    assert_eq!(answer.status, 200);
                    assert_eq!(answer.json()["events"], json!([]));
                    continue;
                }
                assert!(
                    [400, 401, 404, 414].contains(&answer.status),
                    "{method} {template}: {}",
                    answer.status
                );
            }
        }
        api.manage("GET", &format!("/replays/{long}"), None)
            .problem(404);
    }
}

#[test]
fn an_endpoint_s_url_has_a_limit() {
    let world = world();
    let settings = |bytes: usize| {
        let url = format!(
            "https://a.example/{}",
            "x".repeat(bytes - "https://a.example/".len())
        );
        json!({ "endpoint": { "url": url } })
    };
    let put = |settings: &Value| {
        world.server.api().manage(
            "PUT",
            "/topics/orders/subscriptions/billing",
            Some(settings),
        )
    };
    let problem = put(&settings(URL_BYTES_MAX + 1)).problem(400);
    assert_eq!(problem["member"], "endpoint.url");
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("2048")),
        "{problem}"
    );
    let mut with_fallback = settings(100);
    with_fallback["endpoint"]["fallbackUrl"] = settings(500_000)["endpoint"]["url"].clone();
    assert_eq!(
        put(&with_fallback).problem(400)["member"],
        "endpoint.fallbackUrl"
    );
    put(&settings(URL_BYTES_MAX)).expect(201);
}

/// The client has nothing more to send, and says so; then it reads.
#[test]
fn client_that_closed_its_side_reads_its_answer() {
    let world = world();
    let event = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;
    let publish = format!(
        "aeg-sas-key: {}\r\ncontent-type: application/cloudevents+json\r\ncontent-length: {}\r\n",
        world.key,
        event.len()
    );
    let admin = format!("authorization: Bearer {}\r\n", world.admin_key);
    for (request, headers, body, status) in [
        ("GET /health", "", "", 200),
        ("GET /metrics", "", "", 200),
        ("GET /topics", &admin, "", 200),
        ("GET /console/sign-in", "", "", 200),
        ("POST /topics/orders/events", &publish, event, 200),
        (
            "PUT /topics/more",
            &format!("{admin}content-type: application/json\r\ncontent-length: 2\r\n"),
            "{}",
            201,
        ),
    ] {
        for last in ["", "connection: close\r\n"] {
            let mut client = Plain::connect(&world.server);
            client.head(request, &format!("{headers}{last}"));
            client.send(body.as_bytes());
            let stream = client.0.get_ref();
            stream
                .shutdown(Shutdown::Write)
                .expect("the connection is there");
            let answer = client.read();
            let put_again = status == 201 && answer.status == 200;
            assert!(
                answer.status == status || put_again,
                "{request} {}",
                answer.status
            );
            assert!(client.is_closed(), "{request}");
        }
    }
}
