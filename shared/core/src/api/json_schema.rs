//! The JSON Schema of the YAML file, with which editors complete and check it. It has the same
//! parts as the description of the HTTP API.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::{PartialSchema, ToSchema};

use super::ApplyFile;

/// The place of parts in the description of an API.
const API_PARTS: &str = "#/components/schemas/";
/// The place of parts in a JSON Schema.
const SCHEMA_PARTS: &str = "#/$defs/";

/// The JSON Schema of an [`ApplyFile`].
/// <https://json-schema.org/draft/2020-12>
pub fn apply_file_schema() -> Value {
    let mut parts = Vec::new();
    ApplyFile::schemas(&mut parts);
    let parts: BTreeMap<_, _> = parts.into_iter().collect();
    let mut schema = json!(ApplyFile::schema());
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    schema["title"] = "Topics and subscriptions of posthaste".into();
    schema["$defs"] = json!(parts);
    move_references(&mut schema);
    schema
}

/// Lets references lead to the parts of the schema.
fn move_references(value: &mut Value) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref") {
                *reference = reference.replace(API_PARTS, SCHEMA_PARTS);
            }
            members.values_mut().for_each(move_references);
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::{env, fs};

    #[test]
    fn the_file_of_the_documents_is_the_schema() {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/posthaste.schema.json");
        let schema = serde_json::to_string_pretty(&apply_file_schema()).unwrap() + "\n";
        if env::var_os("POSTHASTE_RENEW").is_some() {
            fs::write(&path, &schema).unwrap();
        }
        let written = fs::read_to_string(path).unwrap_or_default();
        let renew = "docs/src/posthaste.schema.json is stale: POSTHASTE_RENEW=1 cargo test -p posthaste-core \
            json_schema renews it";
        assert!(written == schema, "{renew}");
    }

    #[test]
    fn every_reference_leads_to_a_part_that_refuses_unknown_members() {
        fn check(schema: &Value, value: &Value) {
            if let Some(reference) = value.get("$ref") {
                let pointer = reference.as_str().unwrap().strip_prefix('#').unwrap();
                assert!(schema.pointer(pointer).is_some(), "{reference}");
            }
            if value["properties"].is_object() {
                assert_eq!(value["additionalProperties"], false, "{value}");
            }
            match value {
                Value::Object(members) => members.values().for_each(|member| check(schema, member)),
                Value::Array(items) => items.iter().for_each(|item| check(schema, item)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let schema = apply_file_schema();
        check(&schema, &schema);
        assert!(schema["$defs"]["SubscriptionSettings"]["properties"]["retryPolicy"].is_object());
    }
}
