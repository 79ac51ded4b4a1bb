//! A file that is to be applied: parsed, and checked by the rules the server has too.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use posthaste_core::api::{ApplyFile, SecretText, TopicSettings, compile_topic};
use posthaste_core::model::{Secret, TopicKeys, TopicName};

use crate::error::Failure;
use crate::yaml::{FileError, parse, refused};

/// Placeholder for a secret that the server has, while a file is checked without the server.
const PLACEHOLDER: &str = "whsec_cG9zdGhhc3RlLXBsYWNlaG9sZGVyLXNlY3JldA==";

/// A file that passed every check that can be made without the server.
#[derive(Debug)]
pub struct Checked {
    pub path: PathBuf,
    /// Declared topics.
    pub contents: ApplyFile,
}

/// Error of a file that cannot be applied. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// The file is not the expected YAML, or breaks a rule.
    #[error(transparent)]
    File(#[from] FileError),
    /// A topic is declared in two places, so that it is unknown which one is meant.
    #[error("the topic {topic} is declared twice, in {} and in {}", first.display(), second.display())]
    Twice {
        topic: TopicName,
        /// One place.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

impl Failure for ApplyError {
    fn exit_code(&self) -> Option<u8> {
        Some(3)
    }
}

/// Parses a file and checks every topic in it.
pub(crate) fn check(path: &Path, text: &[u8]) -> Result<Checked, ApplyError> {
    let contents: ApplyFile = parse(path, text)?;
    let mut folded = BTreeSet::new();
    for (name, settings) in &contents.topics {
        if !folded.insert(name.folded()) {
            let path = path.to_owned();
            return Err(ApplyError::Twice { topic: name.clone(), first: path.clone(), second: path });
        }
        let keys = TopicKeys::new(Secret::new(""), Secret::new(""));
        compile_topic(name, &unmasked(settings), keys).map_err(|source| {
            let member = format!("topics.{name}.{}", source.member);
            refused(path, text, Some(&member), source)
        })?;
    }
    Ok(Checked { path: path.to_owned(), contents })
}

/// The first topic of `next` that one of `files` declares too.
pub(super) fn declared_twice(files: &[Checked], next: &Checked) -> Option<ApplyError> {
    next.contents.topics.keys().find_map(|name| {
        let same = |other: &TopicName| other.folded() == name.folded();
        let first = files.iter().find(|file| file.contents.topics.keys().any(same))?;
        let (first, second) = (first.path.clone(), next.path.clone());
        Some(ApplyError::Twice { topic: name.clone(), first, second })
    })
}

/// The settings with a placeholder for every masked secret: only the server knows if it has one to keep.
fn unmasked(settings: &TopicSettings) -> TopicSettings {
    let mut settings = settings.clone();
    for subscription in settings.subscriptions.values_mut() {
        for secret in subscription.signing.secrets.iter_mut().flatten().filter(|secret| secret.is_masked()) {
            *secret = SecretText::new(PLACEHOLDER);
        }
        let values = subscription.delivery_headers.iter_mut().filter(|header| header.is_secret);
        for value in values.filter_map(|header| header.value.as_mut()).filter(|value| value.is_masked()) {
            *value = SecretText::new(PLACEHOLDER);
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        let error = check(Path::new("a.yaml"), text.as_bytes()).unwrap_err();
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        format!("{error}{cause}")
    }

    #[test]
    fn the_sample_topic_of_custom_events_can_be_applied() {
        let text = include_bytes!("../../../../../samples/custom/topic.yaml");
        let checked = check(Path::new("topic.yaml"), text).unwrap();
        assert_eq!(checked.contents.topics.values().map(|topic| topic.subscriptions.len()).sum::<usize>(), 3);
    }

    #[test]
    fn an_unknown_member_is_named_with_its_line_and_column() {
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: \
            https://a.example/ }\n        filters: {}\n";
        let message = refusal(text);
        assert!(message.starts_with("a.yaml:6:9: "), "{message}");
        assert!(message.contains("unknown field `filters`"), "{message}");
    }

    #[test]
    fn a_broken_rule_is_named_with_its_line_and_column() {
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: \
            https://a.example/ }\n        retryPolicy:\n          schedule: [PT1S, P2D]\n";
        let message = refusal(text);
        assert_eq!(
            message,
            "a.yaml:7:28: subscriptions.billing.retryPolicy.schedule[1]: P2D is outside PT0S..=P1D"
        );
    }

    #[test]
    fn an_error_shows_nothing_of_the_line_it_is_on() {
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: \
            https://a.example/ }\n        signing: SIGNING\n";
        for signing in [
            "{ secrets: [whsec_hush], bogus: 1 }",
            "{ secrets: whsec_hush }",
            "whsec_hush",
            "{ secrets: [{ whsec_hush: 1 }] }",
        ] {
            let message = refusal(&text.replace("SIGNING", signing));
            assert!(message.starts_with("a.yaml:6:") && !message.contains("hush"), "{message}");
        }
    }

    #[test]
    fn names_that_differ_in_case_only_are_one_topic() {
        assert_eq!(
            refusal("topics: { orders: {}, Orders: {} }"),
            "the topic orders is declared twice, in a.yaml and in a.yaml"
        );
        let one = check(Path::new("a.yaml"), b"topics: { orders: {} }").unwrap();
        let other = check(Path::new("b.yaml"), b"topics: { ORDERS: {} }").unwrap();
        assert!(matches!(declared_twice(&[one], &other), Some(ApplyError::Twice { .. })));
    }

    #[test]
    fn a_masked_secret_is_left_to_the_server() {
        for masked in [
            "signing: { secrets: ['(masked:0a1b2c3d)', '(masked:4e5f6071)'] }",
            "signing: { secrets: [(masked)] }",
            "deliveryHeaders: [{ name: x, value: (masked), isSecret: true }]",
        ] {
            let text = format!(
                "topics: {{ orders: {{ subscriptions: {{ a: {{ endpoint: {{ url: 'https://a.example/' }}, \
                    {masked} }} }} }} }}"
            );
            assert!(check(Path::new("a.yaml"), text.as_bytes()).is_ok(), "{masked}");
        }
    }

    #[test]
    fn what_is_no_yaml_is_refused_without_a_panic() {
        for bad in [
            "",
            "topics",
            "topics: [",
            "- 1",
            "\u{0}",
            "topics: {a: {b: &x {c: *x}}}",
            "topics: {}\n---\ntopics: {}",
        ] {
            assert!(check(Path::new("a.yaml"), bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(check(Path::new("a.yaml"), b"\xff\xfe\xfa").is_err());
    }
}
