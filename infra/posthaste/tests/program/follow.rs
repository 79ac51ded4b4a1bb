//! `attempts list --follow` beside a server that fails, goes away, comes back, and forgets the
//! subscription.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::common::{failure, run};
use serde_json::json;

/// A page with one attempt.
fn page(id: &str, second: u8) -> String {
    let at = |second: u8| format!("2026-11-21T10:00:{second:02}.000Z");
    let record = json!({
        "recordId": id, "time": at(second), "kind": "attempt", "id": id, "subscription": "billing",
        "result": "delivered", "status": 200, "attempt": 1, "origin": "first", "key": "k-0",
        "acceptedAt": at(second),
    });
    json!({ "records": [record], "completeUntil": at(second + 1) }).to_string()
}

/// Reads one request and answers it; with no answer, the connection just ends.
fn answer(mut stream: &TcpStream, answer: Option<(&str, String)>) {
    let mut lines = BufReader::new(stream).lines();
    while lines
        .next()
        .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
    {}
    let Some((status, body)) = answer else { return };
    let head = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
}

/// Tail continues when the server is back, and ends when the subscription is gone.
#[test]
fn tail_outlives_an_outage_and_ends_with_the_subscription() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = [
        Some(("200 OK", page("first", 1))),
        Some(("503 Service Unavailable", String::new())),
        None,
        Some(("200 OK", page("second", 5))),
        Some(("404 Not Found", String::new())),
    ];
    let server = thread::spawn(move || {
        for (text, connection) in answers.into_iter().zip(listener.incoming()) {
            answer(&connection.unwrap(), text);
        }
    });
    let output = run(&[
        "attempts", "list", "orders", "billing", "--follow", "--url", &url, "--key", "k",
    ]);
    server.join().unwrap();
    let printed = String::from_utf8(output.stdout.clone()).unwrap();
    let events = printed
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().nth(4).unwrap());
    assert_eq!(events.collect::<Vec<_>>(), ["first", "second"], "{printed}");
    let (code, told) = failure(&output);
    assert_eq!(code, 4, "{told}");
    for line in [
        "(503); the next try is in 2 s",
        "failed to reach",
        "the next try is in 4 s",
        "(404)",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}
