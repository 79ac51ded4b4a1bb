//! Whole requests, through the routers of the functions: the target, the query, headers, keys,
//! cursors, forms and bodies.
//!
//! An input is the text of a request, without the version of HTTP.

use std::collections::{BTreeMap, HashMap};

use axum::body::Body;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE, HOST, SET_COOKIE};
use http::{HeaderValue, Method, Request, Uri};
use posthaste_core::stored::dead_letter::MovedObject;
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::{ResolvedLetters, TopicRecord, layout};
use url::form_urlencoded;

use super::events;
use super::world::{Answer, World};
use crate::target::Target;

/// The targets.
pub(super) const TARGETS: &[Target] = &[
    target(
        "publish-request",
        &["tests/parsers/corpus/requests/publish"],
        publish,
    ),
    target(
        "manage-request",
        &["tests/parsers/corpus/requests/manage"],
        manage,
    ),
    target(
        "console-request",
        &["tests/parsers/corpus/requests/console"],
        console,
    ),
];

const fn target(
    name: &'static str,
    corpus: &'static [&'static str],
    check: fn(&[u8]) -> String,
) -> Target {
    let weight = 40;
    Target {
        name,
        corpus,
        check,
        weight,
    }
}

/// The request that a text is. `None` where no server would take it for one.
fn request(bytes: &[u8]) -> Option<Request<Body>> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    let rest = &bytes[end + 1..];
    let space = line.iter().position(|byte| *byte == b' ')?;
    let method = Method::from_bytes(&line[..space]).ok()?;
    let target = Uri::try_from(&line[space + 1..]).ok()?;
    let (headers, body) = events::request(rest);
    let mut request = Request::new(Body::from(body));
    *request.method_mut() = method;
    *request.uri_mut() = target;
    *request.headers_mut() = headers;
    Some(request)
}

/// Nothing that a client sends is a fault of the server.
fn check(answer: &Answer) {
    let text = String::from_utf8_lossy(&answer.body);
    assert!(answer.status < 500, "{}: {text}", answer.status);
    let content_type = answer.headers.get(CONTENT_TYPE);
    let is_json = content_type.is_some_and(|it| it.as_bytes().ends_with(b"json"));
    if is_json && !answer.body.is_empty() {
        let body: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(&answer.body);
        assert!(body.is_ok(), "{text}");
    }
}

/// Every message that is sent is read as it was written.
fn check_messages(world: &World) {
    for message in world.queue.messages() {
        let delivery = parse_delivery(&message.body).expect("a message of ours");
        assert_eq!(render_delivery(&delivery), message.body);
    }
}

/// Every topic that is written can be used.
fn check_topics(world: &World) {
    for (key, bytes) in world.state.objects_under("topics/") {
        let record = TopicRecord::parse(&bytes).expect("a record of ours");
        assert!(record.compile().is_ok(), "{key}: {bytes:?}");
    }
}

/// Every dead-letter object that is put in can be moved on, with what is resolved in it.
fn check_dead_letters(world: &World) {
    let resolved: BTreeMap<_, _> = world
        .dead_letters
        .objects_under(layout::RESOLVED)
        .into_iter()
        .collect();
    for (key, bytes) in world.dead_letters.objects_under("") {
        if key.starts_with(layout::RESOLVED) {
            continue;
        }
        let states = resolved.get(&layout::resolved_letters_key(&key));
        let states = states.map(|list| ResolvedLetters::parse(list).expect("a list of ours"));
        let moved = MovedObject::read(&key, &bytes, &states.unwrap_or_default());
        assert!(moved.is_ok(), "{key}: {moved:?}");
    }
}

fn word(answer: &Answer) -> String {
    let text = String::from_utf8_lossy(&answer.body);
    let start: String = text.chars().take(300).collect();
    format!("{} {start}", answer.status)
}

fn publish(bytes: &[u8]) -> String {
    let Some(request) = request(bytes) else {
        return "no request".to_owned();
    };
    let world = World::new();
    let answer = world.publish(request);
    check(&answer);
    check_messages(&world);
    if answer.status != 200 {
        assert_eq!(world.queue.messages().len(), 0, "{answer:?}");
    }
    word(&answer)
}

fn manage(bytes: &[u8]) -> String {
    let Some(request) = request(bytes) else {
        return "no request".to_owned();
    };
    let world = World::new();
    let answer = world.manage(request);
    check(&answer);
    check_topics(&world);
    check_messages(&world);
    check_dead_letters(&world);
    word(&answer)
}

/// A browser signs in, and sends a page's form: the fields that the input's body is.
fn console(bytes: &[u8]) -> String {
    let Some(request) = request(bytes) else {
        return "no request".to_owned();
    };
    let world = World::new();
    let (head, body) = request.into_parts();
    let page = world.console(visit(
        Request::get("/console/sign-in").body(Body::empty()),
        "",
    ));
    let cookies = kept(&page, HashMap::new());
    let form = form(&page, b"key=the-admin-key-of-tests");
    let entered = Request::post("/console/sign-in").body(Body::from(form));
    let entered = world.console(visit(entered, &line(&cookies)));
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookies = kept(&entered, cookies);
    let above = world.console(visit(
        Request::get("/console/topics/new").body(Body::empty()),
        &line(&cookies),
    ));
    let body = futures_util::FutureExt::now_or_never(axum::body::to_bytes(body, usize::MAX));
    let body = body.and_then(Result::ok).unwrap_or_default();
    let mut sent = Request::from_parts(head, Body::from(form_of(&above, &body)));
    sent.headers_mut()
        .insert(HOST, HeaderValue::from_static("localhost:8080"));
    if let Ok(cookies) = HeaderValue::try_from(line(&cookies)) {
        sent.headers_mut().append(COOKIE, cookies);
    }
    let answer = world.console(sent);
    check(&answer);
    check_topics(&world);
    check_messages(&world);
    word(&answer)
}

fn visit(request: http::Result<Request<Body>>, cookies: &str) -> Request<Body> {
    let mut request = request.expect("a request");
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("localhost:8080"));
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("application/x-www-form-urlencoded"),
    );
    if let Ok(cookies) = HeaderValue::try_from(cookies) {
        headers.insert(COOKIE, cookies);
    }
    request
}

fn form(page: &Answer, fields: &[u8]) -> Bytes {
    form_of(page, fields)
}

/// The fields, behind the token of the page's forms.
fn form_of(page: &Answer, fields: &[u8]) -> Bytes {
    let html = String::from_utf8_lossy(&page.body);
    let token = html
        .split_once(r#"name="form" value=""#)
        .and_then(|(_, rest)| rest.split_once('"'))
        .map(|(token, _)| token);
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("form", token.unwrap_or_default());
    let mut form = form.finish().into_bytes();
    form.push(b'&');
    form.extend_from_slice(fields);
    Bytes::from(form)
}

fn kept(answer: &Answer, mut cookies: HashMap<String, String>) -> HashMap<String, String> {
    for set in answer.headers.get_all(SET_COOKIE) {
        let set = String::from_utf8_lossy(set.as_bytes());
        let pair = set.split(';').next().and_then(|pair| pair.split_once('='));
        if let Some((name, value)) = pair {
            cookies.insert(name.to_owned(), value.to_owned());
        }
    }
    cookies
}

fn line(cookies: &HashMap<String, String>) -> String {
    let pairs: Vec<_> = cookies
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("; ")
}
