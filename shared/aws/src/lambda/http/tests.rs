//! Events of Function URLs and HTTP APIs through the whole way: event, request, router, and the
//! response in both forms.

use axum::Extension;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::IntoResponse;
use axum::routing::{any, get};
use posthaste_core::api::PeerAddress;
use serde_json::{Value, json};

use super::*;

const GET: &str = include_str!("fixtures/get.json");
const POST: &str = include_str!("fixtures/post-iam.json");
const HTTP_API: &str = include_str!("fixtures/http-api.json");

/// A router that says what it got, and has responses of every kind.
fn router() -> Router {
    Router::new()
        .route("/empty", any(|| async { StatusCode::NO_CONTENT }))
        .route("/panic", any(panics))
        .route("/large", any(|| async { vec![b'a'; 6 << 20] }))
        .route("/bytes", any(|body: Bytes| async move { body }))
        .route(
            "/json",
            get(|| async {
                (
                    [("content-type", "application/json"), ("etag", "\"1\"")],
                    "{}",
                )
            }),
        )
        .fallback(echo)
}

async fn panics() {
    let yes = true;
    assert!(!yes, "on purpose");
}

async fn echo(
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    peer: Option<Extension<PeerAddress>>,
    body: Bytes,
) -> impl IntoResponse {
    let peer = peer.map(|Extension(PeerAddress(address))| address.to_string());
    let texts = |name: &str| {
        headers
            .get_all(name)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect::<Vec<_>>()
    };
    let got = json!({
        "method": method.as_str(), "path": uri.path(), "query": uri.query(), "body": body.to_vec(),
        "peer": peer,
        "cookie": texts("cookie"), "x-city": texts("x-city"), "x-forwarded-for": texts("x-forwarded-for"),
        "if-none-match": texts("if-none-match"), "aeg-sas-key": texts("aeg-sas-key"),
    });
    got.to_string()
}

fn event(fixture: &str) -> Value {
    serde_json::from_str(fixture).unwrap()
}

fn event_for(path: &str) -> Value {
    let mut event = event(POST);
    event["rawPath"] = json!(path);
    event
}

async fn answer_to(event: &Value) -> Value {
    let request: UrlRequest = serde_json::from_str(&event.to_string()).unwrap();
    serde_json::to_value(respond(router(), request).await).unwrap()
}

#[tokio::test]
async fn a_request_arrives_as_it_was_sent() {
    let answer = answer_to(&event(GET)).await;
    let got: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        got,
        json!({
            "method": "GET",
            "path": "/topics/orders/subscriptions/b%C3%BC/../x%2Fy",
            "query": "limit=10&cursor=a%3D%3D&reason=x%20y",
            "body": [],
            "peer": "203.0.113.7",
            "cookie": ["session=1; theme=dark"],
            "x-city": ["Köln"],
            "x-forwarded-for": ["203.0.113.7"],
            "if-none-match": ["\"a\",\"b\""],
            "aeg-sas-key": [],
        })
    );
}

#[tokio::test]
async fn a_body_arrives_byte_for_byte() {
    let answer = answer_to(&event(POST)).await;
    let got: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        got["body"],
        json!("[{\"id\":\"Grüße \\\"1\\\"\"}]".as_bytes())
    );
    assert_eq!(got["aeg-sas-key"], json!(["c2VjcmV0"]));
    assert_eq!(got["query"], "api-version=2018-01-01");
}

#[tokio::test]
async fn a_request_through_an_http_api_arrives_as_it_was_sent() {
    let answer = answer_to(&event(HTTP_API)).await;
    let got: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        got,
        json!({
            "method": "POST",
            "path": "/topics/orders/events/50%25%20of%20%C3%BC%231",
            "query": "limit=10&cursor=a%3D%3D&reason=x%20y",
            "body": b"{\"1\"}",
            "peer": "203.0.113.7",
            "cookie": ["session=1; theme=dark"],
            "x-city": [],
            "x-forwarded-for": ["203.0.113.7"],
            "if-none-match": ["\"a\",\"b\""],
            "aeg-sas-key": ["c2VjcmV0"],
        })
    );
}

/// An id that looks like an escape arrives as it is, also where the HTTP API decoded its `%25`.
#[tokio::test]
async fn percent_sign_in_a_path_of_an_http_api_is_decoded_once() {
    for raw_path in ["/topics/orders/events/a%41", "/topics/orders/events/a%2541"] {
        let mut event = event(HTTP_API);
        event["rawPath"] = json!(raw_path);
        let answer = answer_to(&event).await;
        let got: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(got["path"], "/topics/orders/events/a%2541", "{raw_path}");
    }
    let answer = answer_to(&event_for("/topics/orders/events/a%41")).await;
    let got: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(
        got["path"], "/topics/orders/events/a%41",
        "a Function URL decodes nothing"
    );
}

#[tokio::test]
async fn a_body_in_base64_goes_in_and_out_byte_for_byte() {
    let mut event = event_for("/bytes");
    event["body"] = json!("AP/+gA==");
    event["isBase64Encoded"] = json!(true);
    let answer = answer_to(&event).await;
    assert_eq!(
        (
            &answer["body"],
            &answer["isBase64Encoded"],
            &answer["headers"]["content-type"]
        ),
        (
            &json!("AP/+gA=="),
            &json!(true),
            &json!("application/octet-stream")
        )
    );
}

#[tokio::test]
async fn text_goes_out_as_text_with_its_headers() {
    let mut event = event_for("/json");
    event["requestContext"]["http"]["method"] = json!("GET");
    assert_eq!(
        answer_to(&event).await,
        json!({
            "statusCode": 200,
            "headers": { "content-type": "application/json", "etag": "\"1\"" },
            "body": "{}",
            "isBase64Encoded": false,
        })
    );
}

#[tokio::test]
async fn an_answer_without_a_body_is_one() {
    let mut event = event_for("/empty");
    event["body"] = Value::Null;
    event["headers"] = Value::Null;
    assert_eq!(
        answer_to(&event).await,
        json!({ "statusCode": 204, "headers": {}, "body": "", "isBase64Encoded": false })
    );
}

#[tokio::test]
async fn a_panic_is_answered_as_a_problem() {
    let answer = answer_to(&event_for("/panic")).await;
    assert_eq!(answer["statusCode"], 500);
    assert_eq!(
        answer["headers"]["content-type"],
        "application/problem+json"
    );
    assert_eq!(
        answer["body"],
        r#"{"type":"about:blank","title":"Internal Server Error","status":500}"#
    );
}

#[tokio::test]
async fn too_large_response_becomes_a_problem() {
    let answer = answer_to(&event_for("/large")).await;
    assert_eq!(answer["statusCode"], 422);
    assert_eq!(
        answer["headers"]["content-type"],
        "application/problem+json"
    );
    let problem: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    assert_eq!(problem["type"], "urn:posthaste:problem:answer-too-large");
    let detail =
        "the answer has 6291456 bytes, more than Lambda carries; read the object from its bucket";
    assert_eq!(problem["detail"], detail);
}

#[tokio::test]
async fn invalid_request_gets_a_problem() {
    let mut body = event_for("/bytes");
    body["isBase64Encoded"] = json!(true);
    let mut header = event_for("/bytes");
    header["headers"]["x"] = json!("a\r\nb");
    let mut cookie = event_for("/bytes");
    cookie["cookies"] = json!(["a\nb"]);
    let mut method = event_for("/bytes");
    method["requestContext"]["http"]["method"] = json!("A B");
    for event in [body, header, cookie, method, event_for("no-slash")] {
        let answer = answer_to(&event).await;
        assert_eq!(answer["statusCode"], 400, "{event}");
        assert_eq!(
            answer["headers"]["content-type"], "application/problem+json",
            "{event}"
        );
    }
}

#[test]
fn an_event_of_something_else_is_not_a_request() {
    for event in [
        "{}",
        r#"{"Records":[]}"#,
        r#"{"source":"aws.events","detail":{}}"#,
    ] {
        assert!(
            serde_json::from_str::<UrlRequest>(event).is_err(),
            "{event}"
        );
    }
}
