//! Connections of clients that send bodies without a length: kept where the body was read to its
//! end, and closed where it was not.

use super::plain_clients::{Plain, world};

const EVENT: &str = r#"{"specversion":"1.0","id":"1","source":"/s","type":"t"}"#;

/// A body in chunks of so many bytes, with what comes behind the last one.
fn chunked(body: &str, chunk_bytes: usize, trailers: &str) -> String {
    let chunks = body.as_bytes().chunks(chunk_bytes).map(|chunk| {
        let chunk = std::str::from_utf8(chunk).expect("the body is ASCII");
        format!("{:x}\r\n{chunk}\r\n", chunk.len())
    });
    let chunks: Vec<_> = chunks.collect();
    format!("{}0\r\n{trailers}\r\n", chunks.concat())
}

/// Requests with their headers, body and status.
fn requests(key: &str, admin_key: &str) -> Vec<(&'static str, String, &'static str, u16)> {
    let publish = format!("aeg-sas-key: {key}\r\ncontent-type: application/cloudevents+json\r\n");
    let admin = format!("authorization: Bearer {admin_key}\r\ncontent-type: application/json\r\n");
    vec![
        ("POST /topics/orders/events", publish.clone(), EVENT, 200),
        ("POST /topics/orders/events", publish, "{", 400),
        ("PUT /topics/orders", admin.clone(), "{}", 200),
        ("PUT /topics/orders", admin.clone(), r#"{"nothing":1}"#, 400),
        // Nothing asks for a body here.
        ("GET /topics", admin.clone(), "", 200),
        ("GET /topics/orders", admin, "nothing", 200),
    ]
}

#[test]
fn chunked_body_that_was_read_keeps_its_connection() {
    let world = world();
    let mut client = Plain::connect(&world.server);
    for (request, headers, body, status) in requests(&world.key, &world.admin_key) {
        for (chunk_bytes, trailers) in [(1, ""), (1000, ""), (1000, "x-checksum: 1\r\n")] {
            client.head(request, &format!("{headers}transfer-encoding: chunked\r\n"));
            client.send(chunked(body, chunk_bytes, trailers).as_bytes());
            let answer = client.read();
            assert_eq!(
                (answer.status, answer.closes()),
                (status, false),
                "{request} {body} {chunk_bytes} {trailers}"
            );
        }
    }
    client.check_is_kept();
}

#[test]
fn chunked_body_after_continue_keeps_its_connection() {
    let world = world();
    let mut client = Plain::connect(&world.server);
    for (request, headers, body, status) in requests(&world.key, &world.admin_key) {
        if body.is_empty() || body == "nothing" {
            continue;
        }
        let expect = "expect: 100-continue\r\ntransfer-encoding: chunked\r\n";
        client.head(request, &format!("{headers}{expect}"));
        assert_eq!(client.read().status, 100, "{request}");
        client.send(chunked(body, 1000, "").as_bytes());
        let answer = client.read();
        assert_eq!(
            (answer.status, answer.closes()),
            (status, false),
            "{request}"
        );
    }
    client.check_is_kept();
}

/// A client that has sent no more than its head is not waited for.
#[test]
fn chunked_body_that_was_not_read_closes_its_connection() {
    let world = world();
    let wrong = "aeg-sas-key: wrong\r\ntransfer-encoding: chunked\r\n";
    for body in [chunked(EVENT, 1000, ""), String::new()] {
        let mut client = Plain::connect(&world.server);
        client.head("POST /topics/orders/events", wrong);
        client.send(body.as_bytes());
        let answer = client.read();
        assert_eq!((answer.status, answer.closes()), (401, true));
        assert!(client.is_closed());
    }
}

/// A length beside chunks may hide a second request from one of two readers (RFC 9112, section
/// 6.3), and two different lengths leave none to go by.
#[test]
fn several_lengths_are_one_length_or_none() {
    let world = world();
    let headers = format!(
        "aeg-sas-key: {}\r\ncontent-type: application/cloudevents+json\r\n",
        world.key
    );
    let length = EVENT.len();
    let ask = |more: &str, body: &str| {
        let mut client = Plain::connect(&world.server);
        client.head("POST /topics/orders/events", &format!("{headers}{more}"));
        client.send(body.as_bytes());
        let answer = client.read();
        (
            answer.status,
            answer.closes() || client_is_closed(&mut client),
        )
    };
    let twice = format!("content-length: {length}\r\ncontent-length: {length}\r\n");
    assert_eq!(ask(&twice, EVENT), (200, false));
    let different = format!("content-length: {length}\r\ncontent-length: 1\r\n");
    assert_eq!(ask(&different, EVENT), (400, true));
    let both = format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n");
    assert_eq!(ask(&both, &chunked(EVENT, 1000, "")), (200, true));
}

/// Whether nothing more can be asked.
fn client_is_closed(client: &mut Plain) -> bool {
    client.head("GET /health", "");
    client.is_closed()
}

#[test]
fn content_coding_that_is_none_is_taken() {
    let world = world();
    let mut client = Plain::connect(&world.server);
    let headers = format!(
        "aeg-sas-key: {}\r\ncontent-type: application/cloudevents+json\r\ncontent-length: {}\r\n",
        world.key,
        EVENT.len()
    );
    let mut check = |codings: &[&str], status: u16| {
        let lines = codings
            .iter()
            .map(|coding| format!("content-encoding: {coding}\r\n"));
        let lines = lines.collect::<Vec<_>>().concat();
        client.head("POST /topics/orders/events", &format!("{headers}{lines}"));
        client.send(EVENT.as_bytes());
        assert_eq!(client.read().status, status, "{codings:?}");
    };
    for none in [
        &[""][..],
        &["identity"],
        &["Identity"],
        &["", "identity"],
        &["identity, identity"],
        &[","],
    ] {
        check(none, 200);
    }
    for coded in [&["br"][..], &["gzip", "gzip"], &["identity, br"]] {
        check(coded, 415);
    }
    // The body is no gzip.
    for packed in [&["gzip"][..], &["identity", "gzip"]] {
        check(packed, 400);
    }
    client.check_is_kept();
}
