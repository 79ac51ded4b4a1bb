use std::collections::BTreeSet;

use axum::body::Body;
use axum::http::Request;
use posthaste_core::api::apply_file_schema;
use serde_json::Value;

use super::{Api, TestPorts};
use crate::router::openapi_document;

/// Every route of every function, and those of the process.
const ROUTES: &[&str] = &[
    "delete /topics/{topic}",
    "delete /topics/{topic}/events/{id}",
    "delete /topics/{topic}/keys/{key}",
    "delete /topics/{topic}/subscriptions/{name}",
    "get /.well-known/webhook-keys",
    "get /audit",
    "get /dead-letters",
    "get /dead-letters/groups",
    "get /dead-letters/{key}",
    "delete /dead-letters/work/{id}",
    "get /dead-letters/work",
    "get /dead-letters/work/{id}",
    "get /doctor",
    "get /events/{id}",
    "get /failing",
    "get /health",
    "get /links",
    "get /livez",
    "get /metrics",
    "get /openapi.json",
    "get /pressure",
    "get /readyz",
    "delete /replays/{id}",
    "get /replays",
    "get /replays/{id}",
    "get /schema.json",
    "get /subscriptions",
    "get /topics",
    "get /topics/{topic}",
    "get /topics/{topic}/dead-letters",
    "get /topics/{topic}/events",
    "get /topics/{topic}/events/{id}",
    "get /topics/{topic}/events/{id}/request",
    "get /topics/{topic}/keys",
    "get /topics/{topic}/subscriptions",
    "get /topics/{topic}/subscriptions/{name}",
    "get /topics/{topic}/subscriptions/{name}/attempts",
    "get /topics/{topic}/subscriptions/{name}/dead-letters",
    "get /validate/{topic}/{subscription}/{code}",
    "get /version",
    "post /dead-letters/import",
    "post /topics/{topic}/events",
    "post /topics/{topic}/subscriptions/{name}/dead-letters/delete",
    "post /topics/{topic}/subscriptions/{name}/dead-letters/replay",
    "post /topics/{topic}/subscriptions/{name}/dead-letters/resolve",
    "post /topics/{topic}/subscriptions/{name}/events/{id}/resend",
    "post /topics/{topic}/keys/{key}/regenerate",
    "post /topics/{topic}/subscriptions/{name}/force",
    "post /topics/{topic}/subscriptions/{name}/rotate-secret",
    "post /topics/{topic}/subscriptions/{name}/test",
    "post /topics/{topic}/subscriptions/{name}/{action}",
    "post /validate/{topic}/{subscription}/{code}",
    "put /topics/{topic}",
    "put /topics/{topic}/subscriptions/{name}",
];

fn document() -> Value {
    serde_json::to_value(openapi_document::<TestPorts>()).unwrap()
}

#[test]
fn the_document_is_as_it_was_reviewed() {
    insta::assert_json_snapshot!("openapi", document());
}

#[test]
fn document_is_openapi_3_1_and_describes_every_route() {
    let document = document();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."));
    let mut described = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        described.extend(
            item.as_object()
                .unwrap()
                .keys()
                .map(|method| format!("{method} {path}")),
        );
    }
    assert_eq!(
        described,
        ROUTES.iter().map(|route| (*route).to_owned()).collect()
    );
}

#[test]
fn every_reference_leads_somewhere() {
    fn check(document: &Value, value: &Value) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    let pointer = reference.strip_prefix('#').unwrap();
                    assert!(document.pointer(pointer).is_some(), "{reference}");
                }
                members.values().for_each(|member| check(document, member));
            }
            Value::Array(items) => items.iter().for_each(|item| check(document, item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let document = document();
    check(&document, &document);
}

#[test]
fn every_operation_has_its_own_id_and_a_summary() {
    let document = document();
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            assert!(operation["summary"].is_string(), "{path}");
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{path}"
            );
        }
    }
}

/// `serve` looks at a request before any function does. Health, metrics and requests with the admin
/// key always have a place.
#[test]
fn responses_of_the_server_itself_are_described() {
    let document = document();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let has = |status: &str| operation["responses"][status].is_object();
            let is_long = operation["parameters"].is_array() || path.contains('{');
            assert_eq!(has("414"), is_long, "{method} {path}");
            let is_always = ["/metrics", "/livez", "/version"].contains(&path.as_str());
            let is_open = operation["security"].is_array() && !is_always;
            assert!(!is_open || has("503"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn document_is_served_without_a_key() {
    let answer = Api::new()
        .send(Request::get("/openapi.json").body(Body::empty()).unwrap())
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(answer.json(), document());
}

#[tokio::test]
async fn the_schema_of_the_yaml_file_is_served_without_a_key() {
    let answer = Api::new()
        .send(Request::get("/schema.json").body(Body::empty()).unwrap())
        .await;
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/json")
    );
    assert_eq!(answer.json(), apply_file_schema());
}
