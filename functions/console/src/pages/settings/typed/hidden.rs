//! The secrets of typed settings, which are taken out. What is mistyped is taken for a secret where
//! it may be one.

use posthaste_core::api::SecretText;
use serde_json::{Map, Value};

/// The beginnings of signing secrets, wherever they are.
const SECRET_STARTS: [&str; 2] = ["whsec_", "whsk_"];

/// The ends of the names of a topic's keys.
const KEY_ENDS: [&str; 3] = ["keys", "key1", "key2"];

/// The members of a header that is no secret.
const HEADER_MEMBERS: [&str; 4] = ["name", "value", "isSecret", "fromEvent"];

/// The members of a header whose text is none.
const OPEN_MEMBERS: [&str; 2] = ["name", "fromEvent"];

/// Takes the secrets out of settings: those of signatures, the keys of a topic, and the values of
/// headers that are not surely open. Whether there was one. Saved as they are then, they are
/// mistakes. Masks stay, because they are none.
pub(super) fn hide_secrets(settings: &mut Value) -> bool {
    let mut is_hidden = false;
    match settings {
        Value::Array(items) => {
            for item in items {
                is_hidden |= hide_secrets(item);
            }
        }
        Value::Object(members) => {
            if is_marked_secret(members) {
                return empty_members(members);
            }
            is_hidden |= remove_members(members, |name, _| has_secret_start(name));
            for (name, member) in members {
                is_hidden |= hide_in_member(name, member);
            }
        }
        Value::String(text) if has_secret_start(text) => {
            is_hidden = true;
            text.clear();
        }
        _ => {}
    }
    is_hidden
}

fn hide_in_member(name: &str, member: &mut Value) -> bool {
    let name = name.to_lowercase();
    if matches!(name.as_str(), "deliveryheaders" | "headers") {
        hide_headers(member)
    } else if name.contains("secret") || KEY_ENDS.iter().any(|end| name.ends_with(end)) {
        empty_texts(member)
    } else {
        hide_secrets(member)
    }
}

/// Whether a member such as `isSecret` says that the others have a secret.
fn is_marked_secret(members: &Map<String, Value>) -> bool {
    members.iter().any(|(name, member)| {
        let name = name.to_lowercase();
        let is_said = !member.is_null() && *member != false;
        name.contains("secret") && (*member == true || (name == "issecret" && is_said))
    })
}

/// Empties headers that have more or others than the members of an open one.
fn hide_headers(headers: &mut Value) -> bool {
    let Value::Array(items) = headers else {
        return empty_texts(headers);
    };
    let mut is_hidden = false;
    for item in items {
        is_hidden |= match item {
            Value::Object(members) if is_open_header(members) => false,
            Value::Object(members) => empty_members(members),
            other => empty_texts(other),
        };
    }
    is_hidden
}

fn is_open_header(members: &Map<String, Value>) -> bool {
    let is_known = members
        .keys()
        .all(|name| HEADER_MEMBERS.contains(&name.as_str()));
    is_known && members.get("isSecret").is_none_or(|it| *it == false)
}

/// Empties every text of an object but those that are open in a header.
fn empty_members(members: &mut Map<String, Value>) -> bool {
    let mut is_hidden = false;
    for (name, member) in members {
        is_hidden |= !OPEN_MEMBERS.contains(&name.as_str()) && empty_texts(member);
    }
    is_hidden
}

/// Removes members of an object. Whether there was one.
fn remove_members(
    members: &mut Map<String, Value>,
    is_removed: impl Fn(&str, &Value) -> bool,
) -> bool {
    let before = members.len();
    members.retain(|name, member| !is_removed(name, member));
    members.len() < before
}

fn has_secret_start(text: &str) -> bool {
    SECRET_STARTS.iter().any(|start| text.contains(start))
}

/// Empties every text and number of a value. A member without a value may be a secret that was
/// written in braces, and is removed.
fn empty_texts(value: &mut Value) -> bool {
    match value {
        Value::Array(items) => items
            .iter_mut()
            .fold(false, |is_hidden, item| empty_texts(item) | is_hidden),
        Value::Object(members) => {
            let mut is_hidden = remove_members(members, |name, member| {
                member.is_null() || has_secret_start(name)
            });
            for member in members.values_mut() {
                is_hidden |= empty_texts(member);
            }
            is_hidden
        }
        Value::String(text) if text.is_empty() || SecretText::new(&**text).is_masked() => false,
        Value::String(_) | Value::Number(_) => {
            *value = Value::from("");
            true
        }
        Value::Null | Value::Bool(_) => false,
    }
}
