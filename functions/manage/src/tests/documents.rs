//! One rule for all bodies and queries of the API, tried on every member that its description has.

use posthaste_testkit::documents::{DocumentFault, SampleDocument, SpoiledDocument};
use serde_json::Value;

use super::{Answer, Api, TestPorts};
use crate::router::openapi_document;

/// Words that no message says: names of types of the program, and of the libraries that read for
/// it.
const FOREIGN: [&str; 12] = [
    "Option<",
    "struct ",
    "sequence",
    " map",
    "invalid type",
    "u8",
    "u16",
    "u32",
    "u64",
    "f64",
    "variant",
    "Settings",
];

/// The parameters of paths, with values that can be read.
const PARAMETERS: [(&str, &str); 7] = [
    ("{topic}", "orders"),
    ("{name}", "billing"),
    ("{id}", "5e7"),
    ("{key}", "key1"),
    ("{action}", "pause"),
    ("{subscription}", "billing"),
    ("{code}", "x"),
];

/// An operation: its method, its path, and its description.
struct Operation<'a> {
    method: String,
    path: String,
    described: &'a Value,
}

fn document() -> Value {
    serde_json::to_value(openapi_document::<TestPorts>()).unwrap()
}

/// All operations of this function.
fn operations(document: &Value) -> Vec<Operation<'_>> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, described) in item.as_object().unwrap() {
            let mut filled = path.clone();
            for (name, value) in PARAMETERS {
                filled = filled.replace(name, value);
            }
            // What an endpoint calls takes whatever its program adds.
            let is_callback = path.starts_with("/validate/");
            if described["tags"][0] != "publish" && !is_callback {
                found.push(Operation {
                    method: method.to_uppercase(),
                    path: filled,
                    described,
                });
            }
        }
    }
    found
}

/// The members that an answer names, with what it says of them.
fn errors(answer: &Answer) -> Vec<(String, String)> {
    let problem: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match problem["errors"].as_array() {
        Some(errors) => errors
            .iter()
            .map(|error| (text(&error["member"]), text(&error["detail"])))
            .collect(),
        None => vec![(text(&problem["member"]), text(&problem["detail"]))],
    }
}

/// The words in which each fault is said.
fn is_said(fault: DocumentFault, text: &str) -> bool {
    match fault {
        DocumentFault::ListForObject => text == "expected an object, found a list",
        DocumentFault::OtherKind => {
            text.starts_with("expected ")
                && (text.ends_with(", found an object") || text.ends_with(", found a number"))
        }
        DocumentFault::Twice => text == "is there twice, remove or rename one",
        DocumentFault::NullForRequired => {
            text.starts_with("expected ") && text.ends_with(", found nothing")
        }
    }
}

#[tokio::test]
async fn every_fault_of_every_body_is_named_by_its_member() {
    let document = document();
    let mut tried = 0;
    for operation in operations(&document) {
        let schema = &operation.described["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        for spoiled in SampleDocument::of_schema(&document, schema).spoiled() {
            let SpoiledDocument {
                member,
                fault,
                text,
            } = spoiled;
            let api = Api::with_billing().await;
            let answer = api
                .call(&operation.method, &operation.path, &[], text.clone())
                .await;
            let found = errors(&answer);
            let is_named = found
                .iter()
                .any(|(named, said)| *named == member && is_said(fault, said));
            assert!(
                answer.status == 400 && is_named,
                "{} {}: {member} {fault:?}: {} {found:?}\n{text}",
                operation.method,
                operation.path,
                answer.status,
            );
            for (_, said) in found {
                let foreign = FOREIGN.iter().find(|word| said.contains(**word));
                assert_eq!(foreign, None, "{said}");
            }
            tried += 1;
        }
    }
    assert!(tried > 400, "{tried}");
}

#[tokio::test]
async fn null_for_an_optional_member_is_as_if_left_out() {
    let document = document();
    let mut tried = 0;
    for operation in operations(&document) {
        let schema = &operation.described["requestBody"]["content"]["application/json"]["schema"];
        if schema.is_null() {
            continue;
        }
        for (member, texts) in SampleDocument::of_schema(&document, schema).optional() {
            let mut answers = Vec::new();
            for text in texts {
                let api = Api::with_billing().await;
                let answer = api
                    .call(&operation.method, &operation.path, &[], text)
                    .await;
                answers.push((
                    answer.status,
                    String::from_utf8_lossy(&answer.body).into_owned(),
                ));
            }
            assert_eq!(answers[0], answers[1], "{}: {member}", operation.path);
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

#[tokio::test]
async fn every_fault_of_every_query_is_named_by_its_member() {
    let document = document();
    let mut tried = 0;
    for operation in operations(&document) {
        let parameters = operation.described["parameters"].as_array();
        for parameter in parameters.into_iter().flatten() {
            if parameter["in"] != "query" {
                continue;
            }
            let name = parameter["name"].as_str().unwrap();
            let kinds = parameter["schema"]["type"].to_string();
            let mut queries = vec![(format!("{name}=a&{name}=a"), DocumentFault::Twice)];
            if ["integer", "number", "boolean"]
                .iter()
                .any(|kind| kinds.contains(kind))
            {
                queries.push((format!("{name}=many"), DocumentFault::OtherKind));
            }
            for (query, fault) in queries {
                let api = Api::with_billing().await;
                let path = format!("{}?{query}", operation.path);
                let answer = api.call(&operation.method, &path, &[], "").await;
                let found = errors(&answer);
                let is_named = found.iter().any(|(named, said)| {
                    let is_said = match fault {
                        DocumentFault::OtherKind => {
                            said.starts_with("expected ") && said.ends_with(", found a text")
                        }
                        fault => is_said(fault, said),
                    };
                    named == name && is_said
                });
                assert!(is_named, "{path}: {} {found:?}", answer.status);
                tried += 1;
            }
        }
    }
    assert!(tried > 30, "{tried}");
}
