//! Members of settings on the command line: `retryPolicy.schedule=[PT1M, PT5M]`. A member is named as
//! in a file, and its value is YAML, which JSON is too.

use posthaste_core::api::WrittenValue;

use crate::error::CommandFailure;

/// Error of an argument that sets no member. It shows no value, which may be a secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AssignError {
    /// There is no member before an equals sign.
    #[error("expected MEMBER=VALUE as setting {number}")]
    NoMember {
        /// The number of the setting, from 1.
        number: usize,
    },
    /// The value is no YAML.
    #[error("{member}: {fault}")]
    Value {
        /// The member.
        member: String,
        /// The fault of its value.
        fault: String,
    },
}

impl CommandFailure for AssignError {
    fn exit_code(&self) -> Option<u8> {
        Some(match self {
            Self::NoMember { .. } => 2,
            Self::Value { .. } => 3,
        })
    }

    fn hint(&self) -> Option<String> {
        let hint = "name members as in a file: retryPolicy.maxDeliveryAttempts=8, \
                    'filter.includedEventTypes=[order.paid]', recordUnmatched=true";
        Some(hint.to_owned())
    }
}

/// The object in which these arguments set members.
pub(super) fn parse_members(arguments: &[String]) -> Result<WrittenValue, AssignError> {
    let mut members = Vec::new();
    for (index, argument) in arguments.iter().enumerate() {
        let (member, value) = argument
            .split_once('=')
            .filter(|(member, _)| !member.is_empty())
            .ok_or(AssignError::NoMember { number: index + 1 })?;
        let value = parse_value(member, value)?;
        let steps: Vec<_> = member.split('.').collect();
        set_member(&mut members, &steps, value);
    }
    Ok(WrittenValue::Object(members))
}

/// Adds a member to an object.
pub(super) fn add_member(object: &mut WrittenValue, steps: &[&str], value: WrittenValue) {
    if let WrittenValue::Object(members) = object {
        set_member(members, steps, value);
    }
}

/// The value of a member. Nothing is null, which takes a value away.
fn parse_value(member: &str, value: &str) -> Result<WrittenValue, AssignError> {
    if value.trim().is_empty() {
        return Ok(WrittenValue::from(&serde_json::Value::Null));
    }
    posthaste_yaml::read_value(value.as_bytes()).map_err(|mistake| AssignError::Value {
        member: member.to_owned(),
        fault: mistake.text,
    })
}

/// Sets a member. One that is set already is there twice then, which its reader names.
fn set_member(members: &mut Vec<(String, WrittenValue)>, steps: &[&str], value: WrittenValue) {
    let Some((first, rest)) = steps.split_first() else {
        return;
    };
    if rest.is_empty() {
        members.push(((*first).to_owned(), value));
        return;
    }
    let inner = members.iter_mut().find_map(|(name, member)| match member {
        WrittenValue::Object(inner) if name == first => Some(inner),
        _ => None,
    });
    if let Some(inner) = inner {
        set_member(inner, rest, value);
    } else {
        let mut inner = Vec::new();
        set_member(&mut inner, rest, value);
        members.push(((*first).to_owned(), WrittenValue::Object(inner)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn arguments(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn check(texts: &[&str], expected: &Value) {
        let read = parse_members(&arguments(texts)).unwrap();
        let found = plain(&read);
        assert_eq!(&found, expected, "{texts:?}");
    }

    fn plain(written: &WrittenValue) -> Value {
        match written {
            WrittenValue::Scalar { value, .. } => value.clone(),
            WrittenValue::List(items) => items.iter().map(plain).collect(),
            WrittenValue::Object(members) => {
                let members = members.iter();
                let members = members.map(|(name, member)| (name.clone(), plain(member)));
                Value::Object(members.collect())
            }
        }
    }

    #[test]
    fn values_are_yaml_and_members_are_ways() {
        check(
            &[
                "endpoint.url=https://a.example/?a=b",
                "endpoint.timeout=10s",
                "retryPolicy.schedule=[PT1M, PT5M]",
                "recordUnmatched=true",
                r#"deliveryHeaders=[{"name": "X-A", "value": "b"}]"#,
                "autoDeleteOnIdle=",
                "filter=null",
            ],
            &json!({
                "endpoint": { "url": "https://a.example/?a=b", "timeout": "10s" },
                "retryPolicy": { "schedule": ["PT1M", "PT5M"] },
                "recordUnmatched": true,
                "deliveryHeaders": [{ "name": "X-A", "value": "b" }],
                "autoDeleteOnIdle": null,
                "filter": null,
            }),
        );
        check(
            &[
                "endpoint={ url: https://a.example/ }",
                "endpoint.timeout=1s",
            ],
            &json!({ "endpoint": { "url": "https://a.example/", "timeout": "1s" } }),
        );
    }

    #[test]
    fn argument_that_sets_nothing_is_named_by_its_number_alone() {
        let check = |text: &str| {
            let error = parse_members(&arguments(&["a=1", text])).unwrap_err();
            assert_eq!(error, AssignError::NoMember { number: 2 });
            assert_eq!(error.to_string(), "expected MEMBER=VALUE as setting 2");
        };
        check("whsec_hush");
        check("=whsec_hush");
    }

    #[test]
    fn value_that_is_no_yaml_is_named_by_its_member_alone() {
        let error = parse_members(&arguments(&["signing.secrets=[whsec_hush"])).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("signing.secrets: ") && !text.contains("hush"),
            "{text}"
        );
    }
}
