//! The help of a field: what the schema says of its member.

use std::sync::OnceLock;

use maud::{Markup, html};
use posthaste_core::api::apply_file_schema;
use serde_json::Value;

/// The end of the sentence that says a default.
const DEFAULT_END: &str = " when left out";

/// Longest default that stands in a field.
const DEFAULT_CHARS_MAX: usize = 90;

/// The schema of a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct MemberSchema<'a> {
    /// The member where it stands, which has its description.
    written: &'a Value,
    /// The type of the member.
    pub(super) resolved: &'a Value,
}

/// The schema of a member of a type, by its path.
pub(super) fn member_schema(type_name: &str, member: &str) -> Option<MemberSchema<'static>> {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    let types = &SCHEMA.get_or_init(apply_file_schema)["$defs"];
    let whole = types.get(type_name)?;
    let mut found = MemberSchema {
        written: whole,
        resolved: whole,
    };
    for part in member.split('.') {
        let written = found.resolved["properties"].get(part)?;
        // What may be left out is one of its type and of nothing.
        let written = written["oneOf"].get(0).unwrap_or(written);
        let reference = written["$ref"].as_str();
        let resolved = reference
            .and_then(|reference| types.get(reference.rsplit('/').next()?))
            .unwrap_or(written);
        found = MemberSchema { written, resolved };
    }
    Some(found)
}

impl<'a> MemberSchema<'a> {
    /// The description of the member.
    pub(super) fn description(&self) -> String {
        let text = self.written["description"].as_str().unwrap_or_default();
        text.replace('\n', " ")
    }

    /// The value that a member has when it is left out, where the description says it in a few
    /// words.
    pub(super) fn default_text(&self) -> Option<String> {
        let description = self.description();
        let text = description
            .trim_end_matches('.')
            .split(". ")
            .find_map(|sentence| sentence.trim_end_matches('.').strip_suffix(DEFAULT_END))?;
        let is_plain = text.chars().count() <= DEFAULT_CHARS_MAX && !text.contains(';');
        is_plain.then(|| text.replace('`', ""))
    }

    /// The words that the member may have.
    pub(super) fn words(&self) -> Vec<&'a str> {
        let words = self.resolved["enum"].as_array();
        words
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }

    /// A value as an example.
    pub(super) fn example(&self) -> Option<&'a str> {
        self.written["example"].as_str()
    }
}

/// A description, with what stands between backticks as code.
pub(super) fn description_text(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_taken_from_the_description() {
        let check = |type_name: &str, member: &str, expected: Option<&str>| {
            let found = member_schema(type_name, member).unwrap().default_text();
            assert_eq!(found.as_deref(), expected, "{member}");
        };
        let subscription = "SubscriptionSettings";
        check(subscription, "retryPolicy.maxDeliveryAttempts", Some("30"));
        check(subscription, "endpoint.timeout", Some("PT30S"));
        check(subscription, "contentMode", Some("structured"));
        check(subscription, "deadLetter.enabled", Some("True"));
        check(subscription, "endpoint.maxConcurrentRequests", None);
        check(subscription, "filter.subjectBeginsWith", None);
        check("TopicSettings", "inputSchema", Some("CloudEvents"));
        check("TopicSettings", "defaultTimeToLive", Some("None"));
    }

    #[test]
    fn words_of_a_choice_are_those_of_the_schema() {
        let words = |type_name, member| member_schema(type_name, member).unwrap().words();
        assert_eq!(
            words("TopicSettings", "deliveryLog"),
            ["off", "attempts", "payloads"]
        );
        assert_eq!(
            words("SubscriptionSettings", "contentMode"),
            ["structured", "binary"]
        );
        assert!(member_schema("TopicSettings", "nothing.here").is_none());
    }

    #[test]
    fn text_between_backticks_is_code() {
        assert_eq!(
            description_text("`a` or <b>.").into_string(),
            "<code>a</code> or &lt;b&gt;."
        );
    }
}
