//! The difference between two JSON objects, member by member.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::MASKED;

/// The end of a path that stands for an item of a list of objects, such as a filter.
const ITEM: &str = "[]";

/// The members that are URLs. Their query may hold a token.
const URLS: [&str; 2] = ["endpoint.url", "endpoint.fallbackUrl"];

/// A query that is not shown.
const HIDDEN_QUERY: &str = "?…";

/// A member whose value is different. Without a value it has its default. URLs are without their
/// query: if both are the same, the query differs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MemberChange {
    /// The path, such as `retryPolicy.schedule`. An item that was added or removed is
    /// `deliveryHeaders[]`.
    pub member: String,
    /// The value before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// The value after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

impl fmt::Display for MemberChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            member,
            before,
            after,
        } = self;
        match (member.strip_suffix(ITEM), before, after) {
            (Some(list), None, Some(item)) => write!(f, "{list}: added {}", one_line_text(item)),
            (Some(list), Some(item), None) => write!(f, "{list}: removed {}", one_line_text(item)),
            (None, Some(before), Some(after)) if before == after && *after == MASKED => {
                write!(f, "{member}: another secret")
            }
            (None, Some(before), Some(after)) if before == after => {
                write!(
                    f,
                    "{member}: {} (only the query differs)",
                    one_line_text(after)
                )
            }
            _ => write!(
                f,
                "{member}: {} → {}",
                text_or_default(before.as_ref()),
                text_or_default(after.as_ref())
            ),
        }
    }
}

/// The members that differ, in the order of their names.
pub(super) fn changed_members(before: &Value, after: &Value) -> Vec<MemberChange> {
    let mut changes = Vec::new();
    collect_changes("", Some(before), Some(after), &mut changes);
    changes
}

fn collect_changes(
    member: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    changes: &mut Vec<MemberChange>,
) {
    if before == after {
        return;
    }
    let mut sides = before.into_iter().chain(after);
    if sides.clone().all(Value::is_object) {
        let [before, after] = [before, after].map(|side| side.and_then(Value::as_object));
        compare_members(member, before, after, changes);
    } else if sides.clone().all(Value::is_array) && sides.any(has_objects) {
        let [before, after] = [before, after].map(|side| side.and_then(Value::as_array));
        compare_items(
            member,
            items_or_empty(before),
            items_or_empty(after),
            changes,
        );
    } else {
        changes.push(member_change(member, before, after));
    }
}

fn compare_members(
    member: &str,
    before: Option<&Map<String, Value>>,
    after: Option<&Map<String, Value>>,
    changes: &mut Vec<MemberChange>,
) {
    let names: BTreeSet<_> = before
        .into_iter()
        .chain(after)
        .flat_map(Map::keys)
        .collect();
    for name in names {
        let path = if member.is_empty() {
            name.clone()
        } else {
            format!("{member}.{name}")
        };
        let [before, after] =
            [before, after].map(|side| side.and_then(|members| members.get(name)));
        collect_changes(&path, before, after, changes);
    }
}

/// Objects have no names: those that are on one side only were removed or added.
fn compare_items(member: &str, before: &[Value], after: &[Value], changes: &mut Vec<MemberChange>) {
    let item = format!("{member}{ITEM}");
    let length = changes.len();
    let removed = before.iter().filter(|item| !after.contains(item));
    changes.extend(removed.map(|value| member_change(&item, Some(value), None)));
    let added = after.iter().filter(|item| !before.contains(item));
    changes.extend(added.map(|value| member_change(&item, None, Some(value))));
    if changes.len() == length {
        // The same items in another order, or another number of times.
        let [before, after] = [before, after].map(|items| Value::from(items.to_vec()));
        changes.push(member_change(member, Some(&before), Some(&after)));
    }
}

fn member_change(member: &str, before: Option<&Value>, after: Option<&Value>) -> MemberChange {
    let [before, after] =
        [before, after].map(|side| side.map(|value| without_query(member, value)));
    MemberChange {
        member: member.to_owned(),
        before,
        after,
    }
}

fn without_query(member: &str, value: &Value) -> Value {
    match value.as_str().and_then(|url| url.split_once('?')) {
        Some((url, _)) if URLS.contains(&member) => Value::from(format!("{url}{HIDDEN_QUERY}")),
        Some(_) | None => value.clone(),
    }
}

fn has_objects(list: &Value) -> bool {
    list.as_array()
        .is_some_and(|items| items.iter().any(Value::is_object))
}

fn items_or_empty(list: Option<&Vec<Value>>) -> &[Value] {
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text_or_default(value: Option<&Value>) -> String {
    value.map_or("(default)".to_owned(), one_line_text)
}

/// A value on one line, for people.
fn one_line_text(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Array(items) => format!("[{}]", join_with_commas(items.iter().map(one_line_text))),
        Value::Object(members) => {
            format!(
                "{{{}}}",
                join_with_commas(
                    members
                        .iter()
                        .map(|(name, value)| format!("{name}: {}", one_line_text(value)))
                )
            )
        }
        other => other.to_string(),
    }
}

fn join_with_commas(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "a literal at every call")]
    fn check(before: Value, after: Value, expected: &[&str]) {
        let lines: Vec<_> = changed_members(&before, &after)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn a_changed_member_is_a_line_with_both_values() {
        let policy = |attempts: u8| json!({ "retryPolicy": { "maxDeliveryAttempts": attempts } });
        check(
            policy(5),
            policy(8),
            &["retryPolicy.maxDeliveryAttempts: 5 → 8"],
        );
        check(policy(5), policy(5), &[]);
    }

    #[test]
    fn a_member_that_is_left_out_has_its_default() {
        let batching =
            json!({ "batching": { "maxEventsPerBatch": 10, "partialAcknowledgement": true } });
        check(
            json!({}),
            batching.clone(),
            &[
                "batching.maxEventsPerBatch: (default) → 10",
                "batching.partialAcknowledgement: (default) → true",
            ],
        );
        check(
            batching,
            json!({ "batching": { "maxEventsPerBatch": 10 } }),
            &["batching.partialAcknowledgement: true → (default)"],
        );
        check(json!({ "batching": {} }), json!({}), &[]);
    }

    #[test]
    fn a_url_is_shown_without_its_query() {
        let to = |url: &str| json!({ "endpoint": { "url": url } });
        let fallback = |url: &str| json!({ "endpoint": { "fallbackUrl": url } });
        check(
            to("https://a.example/x?token=one"),
            to("https://b.example/x?token=two"),
            &["endpoint.url: https://a.example/x?… → https://b.example/x?…"],
        );
        check(
            to("https://a.example/"),
            to("https://a.example/?token=two"),
            &["endpoint.url: https://a.example/ → https://a.example/?…"],
        );
        let one = fallback("https://a.example/?token=one");
        let two = fallback("https://a.example/?token=two");
        check(
            one.clone(),
            two.clone(),
            &["endpoint.fallbackUrl: https://a.example/?… (only the query differs)"],
        );
        let shown = "https://a.example/?…";
        let expected =
            json!([{ "member": "endpoint.fallbackUrl", "before": shown, "after": shown }]);
        assert_eq!(json!(changed_members(&one, &two)), expected);
        check(json!({ "a": "?b" }), json!({ "a": "?c" }), &["a: ?b → ?c"]);
    }

    #[test]
    fn a_list_of_values_is_shown_whole() {
        let types = |types: &[&str]| json!({ "filter": { "includedEventTypes": types } });
        check(
            types(&["a"]),
            types(&["a", "b"]),
            &["filter.includedEventTypes: [a] → [a, b]"],
        );
        check(
            types(&["a", "b"]),
            types(&["b", "a"]),
            &["filter.includedEventTypes: [a, b] → [b, a]"],
        );
        check(
            json!({ "secrets": [] }),
            json!({}),
            &["secrets: [] → (default)"],
        );
        check(
            json!({ "subject": "" }),
            json!({ "subject": "/a" }),
            &["subject: \"\" → /a"],
        );
    }

    #[test]
    fn an_item_of_a_list_of_objects_is_added_or_removed() {
        let header = |name: &str| json!({ "name": name, "value": "acme" });
        let list = |names: &[&str]| json!({ "h": names.iter().map(|name| header(name)).collect::<Vec<_>>() });
        check(
            list(&["a"]),
            list(&["a", "b"]),
            &["h: added {name: b, value: acme}"],
        );
        check(
            list(&["a", "b"]),
            list(&["b", "c"]),
            &[
                "h: removed {name: a, value: acme}",
                "h: added {name: c, value: acme}",
            ],
        );
        check(
            json!({}),
            list(&["a"]),
            &["h: added {name: a, value: acme}"],
        );
        check(
            list(&["a"]),
            json!({}),
            &["h: removed {name: a, value: acme}"],
        );
        let turned = "h: [{name: a, value: acme}, {name: b, value: acme}] → [{name: b, value: acme}, {name: \
            a, value: acme}]";
        check(list(&["a", "b"]), list(&["b", "a"]), &[turned]);
    }
}
