//! Every class of refusal, with the exact answer. Nothing of a refused request is written.

use std::fmt::Write;

use axum::body::Body;
use futures_util::stream;
use http::{Request, header};

use crate::world::{Answer, BATCH, KEY, MINIMAL, STRUCTURED, World, event_of, one, request, send};

const NO_KEY: (&str, &str) = ("x-no-key", "");

struct Case {
    name: &'static str,
    request: Request<Body>,
}

/// A request with the right key.
fn bad(header: (&'static str, &'static str), name: &'static str, body: String) -> Case {
    case(name, EVENTS, &[KEY, header], body)
}

fn case(name: &'static str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Case {
    Case {
        name,
        request: request(path, headers, body),
    }
}

const EVENTS: &str = "/topics/orders/events";

/// Requests that are refused whatever their body says.
fn refused_heads() -> Vec<Case> {
    let mut get = case("a method that is not taken", EVENTS, &[KEY], "");
    *get.request.method_mut() = http::Method::GET;
    vec![
        case(
            "a topic that is not there",
            "/topics/nope/events",
            &[KEY, STRUCTURED],
            MINIMAL,
        ),
        case(
            "a topic that is not there, without a key",
            "/topics/nope/events",
            &[NO_KEY],
            MINIMAL,
        ),
        case(
            "a path that is no topic's name",
            "/topics/a%2Fb/events",
            &[KEY, STRUCTURED],
            MINIMAL,
        ),
        case(
            "a path that is not UTF-8",
            "/topics/%ff/events",
            &[KEY, STRUCTURED],
            MINIMAL,
        ),
        get,
        case("no key", EVENTS, &[NO_KEY, STRUCTURED], MINIMAL),
        case(
            "a wrong key",
            EVENTS,
            &[("aeg-sas-key", "wrong"), STRUCTURED],
            MINIMAL,
        ),
        bad(
            ("posthaste-hops", "8"),
            "events that went round a loop",
            MINIMAL.to_owned(),
        ),
        case(
            "a loop without a key",
            EVENTS,
            &[NO_KEY, STRUCTURED, ("posthaste-hops", "8")],
            MINIMAL,
        ),
        bad(
            ("posthaste-hops", "two"),
            "hops that are no number",
            MINIMAL.to_owned(),
        ),
    ]
}

/// Requests that are refused for their body.
fn refused_bodies() -> Vec<Case> {
    let pieces = || stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 100_000]));
    let broken = || {
        stream::iter([Err::<Vec<u8>, _>(std::io::Error::from(
            std::io::ErrorKind::ConnectionReset,
        ))])
    };
    vec![
        bad(STRUCTURED, "an empty body", String::new()),
        bad(STRUCTURED, "no JSON", "{".to_owned()),
        bad(
            STRUCTURED,
            "a batch where one event belongs",
            format!("[{MINIMAL}]"),
        ),
        bad(
            BATCH,
            "one bad event in a batch",
            format!("[{MINIMAL},{}]", MINIMAL.replace("\"/s\"", "7")),
        ),
        bad(
            BATCH,
            "one event that is no object",
            format!("[{MINIMAL},5]"),
        ),
        bad(
            STRUCTURED,
            "a missing member",
            MINIMAL.replace(r#","type":"t""#, ""),
        ),
        bad(
            ("content-type", "text/xml"),
            "a content type that is not taken",
            MINIMAL.to_owned(),
        ),
        case("no content type", EVENTS, &[KEY], MINIMAL),
        case(
            "an encoding",
            EVENTS,
            &[KEY, STRUCTURED, ("content-encoding", "br")],
            MINIMAL,
        ),
        case(
            "a body that is no gzip",
            EVENTS,
            &[KEY, STRUCTURED, ("content-encoding", "gzip")],
            MINIMAL,
        ),
        bad(
            STRUCTURED,
            "a request that says it is too large",
            event_of(1_000_001),
        ),
        case(
            "a request that turns out too large",
            EVENTS,
            &[KEY, STRUCTURED],
            Body::from_stream(pieces()),
        ),
        // As base64 it takes a third more.
        case(
            "an event that grows too large",
            EVENTS,
            &[&[KEY], &BINARY_IMAGE[..]].concat(),
            vec![0; 800_000],
        ),
        case(
            "a connection that breaks",
            EVENTS,
            &[KEY, STRUCTURED],
            Body::from_stream(broken()),
        ),
    ]
}

/// The answer as text: status, the headers that matter, body.
pub(crate) fn shown(answer: &Answer) -> String {
    let names = [
        header::CONTENT_TYPE,
        header::ALLOW,
        header::RETRY_AFTER,
        header::WWW_AUTHENTICATE,
    ]
    .into_iter();
    let mut text = answer.status.to_string();
    for name in names {
        for value in answer.headers.get_all(&name) {
            write!(text, "\n{name}: {}", value.to_str().unwrap()).unwrap();
        }
    }
    write!(text, "\n{}", answer.body).unwrap();
    text
}

/// The headers of an image in binary mode.
const BINARY_IMAGE: [(&str, &str); 5] = [
    ("content-type", "image/png"),
    ("ce-specversion", "1.0"),
    ("ce-id", "1"),
    ("ce-source", "/s"),
    ("ce-type", "t"),
];

#[tokio::test]
async fn every_refusal_is_a_problem_and_nothing_is_written() {
    let world = World::new(one()).await;
    let app = posthaste_publish::router(world.publish().into());
    let mut text = String::new();
    for Case { name, request } in refused_heads().into_iter().chain(refused_bodies()) {
        let answer = send(app.clone(), request).await;
        assert!(answer.status >= 400, "{name}");
        writeln!(text, "# {name}\n{}\n", shown(&answer)).unwrap();
        world.assert_untouched();
    }
    insta::assert_snapshot!(text);
}

#[tokio::test]
async fn the_whole_request_is_refused_for_its_last_event() {
    let world = World::new(one()).await;
    let good = vec![MINIMAL; 999].join(",");
    let answer = world.post(&[BATCH], format!("[{good},{{}}]")).await;
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains(r#""index":999"#), "{}", answer.body);
    world.assert_untouched();
}

#[tokio::test]
async fn a_topic_that_cannot_be_looked_up_is_not_unknown() {
    let world = World::new(one()).await;
    world
        .put_topic(
            serde_json::json!({ "inputSchema": 7 }),
            "key-one",
            "key-two",
        )
        .await;
    insta::assert_snapshot!(shown(&world.post(&[STRUCTURED], MINIMAL).await));
}
