//! A file that is to be applied: parsed, and checked by the rules the server has too.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use posthaste_core::api::{ApplyFile, SecretText, SettingsError, TopicSettings, compile_topic};
use posthaste_core::model::name::TopicName;
use posthaste_core::model::secret::Secret;
use posthaste_core::model::topic::TopicKeys;
use serde_saphyr::{DefaultMessageFormatter, Localizer, Location};

use super::locate::locate;

/// Stands for a secret that the server has, while a file is checked without the server.
const PLACEHOLDER: &str = "whsec_cG9zdGhhc3RlLXBsYWNlaG9sZGVyLXNlY3JldA==";

/// A file that passed every check that can be made without the server.
#[derive(Debug)]
pub struct Checked {
    /// Where it was read.
    pub path: PathBuf,
    /// What it declares.
    pub contents: ApplyFile,
}

/// A place in a file, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The column, in characters.
    pub column: u64,
}

/// Why a file cannot be applied. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It is not the YAML that is expected: its form, an unknown member, a wrong type.
    #[error("{}", At { path, place })]
    Yaml {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Option<Place>,
        /// What is wrong there.
        #[source]
        source: Box<YamlError>,
    },
    /// It breaks a rule.
    #[error("{}", At { path, place })]
    Settings {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Option<Place>,
        /// Which rule, and the member's path within the topic.
        #[source]
        source: SettingsError,
    },
    /// A topic is declared in two places, and which of them is meant cannot be told.
    #[error("the topic {topic} is declared twice, in {} and in {}", first.display(), second.display())]
    Twice {
        /// The topic.
        topic: TopicName,
        /// One place.
        first: PathBuf,
        /// The other.
        second: PathBuf,
    },
}

/// What is wrong with a YAML text, without the place, which [`ApplyError`] says as editors understand it.
#[derive(Debug)]
pub struct YamlError(pub(crate) serde_saphyr::Error);

/// Says no places.
struct Placeless;

/// A file, and a place in it: `topics.yaml:3:7`.
pub(crate) struct At<'a> {
    pub(crate) path: &'a Path,
    pub(crate) place: &'a Option<Place>,
}

impl std::error::Error for YamlError {}

impl fmt::Display for YamlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let formatter = DefaultMessageFormatter.with_localizer(&Placeless);
        f.write_str(&self.0.render_with_formatter(&formatter))
    }
}

impl Localizer for Placeless {
    fn attach_location<'a>(&self, base: Cow<'a, str>, _: Location) -> Cow<'a, str> {
        base
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match self.place {
            Some(Place { line, column }) => write!(f, ":{line}:{column}"),
            None => Ok(()),
        }
    }
}

/// Parses a file and checks every topic in it.
pub fn check(path: &Path, text: &[u8]) -> Result<Checked, ApplyError> {
    // No snippets in errors: the line at fault may hold a secret.
    let options = serde_saphyr::options! { with_snippet: false };
    let contents: ApplyFile = serde_saphyr::from_slice_with_options(text, options).map_err(|error| {
        let place = error.location().map(|at| Place { line: at.line(), column: at.column() });
        ApplyError::Yaml { path: path.to_owned(), place, source: Box::new(YamlError(error)) }
    })?;
    let mut folded = std::collections::BTreeSet::new();
    for (name, settings) in &contents.topics {
        if !folded.insert(name.folded()) {
            let path = path.to_owned();
            return Err(ApplyError::Twice { topic: name.clone(), first: path.clone(), second: path });
        }
        let keys = TopicKeys::new(Secret::new(""), Secret::new(""));
        compile_topic(name, &unmasked(settings), keys).map_err(|source| {
            let place = locate(text, &format!("topics.{name}.{}", source.member));
            ApplyError::Settings { path: path.to_owned(), place, source }
        })?;
    }
    Ok(Checked { path: path.to_owned(), contents })
}

/// The first topic of `next` that one of `files` declares too.
pub(super) fn declared_twice(files: &[Checked], next: &Checked) -> Option<ApplyError> {
    for name in next.contents.topics.keys() {
        let same = |other: &TopicName| other.folded() == name.folded();
        if let Some(first) = files.iter().find(|file| file.contents.topics.keys().any(same)) {
            let (first, second) = (first.path.clone(), next.path.clone());
            return Some(ApplyError::Twice { topic: name.clone(), first, second });
        }
    }
    None
}

/// The settings with a placeholder for every secret that is masked: whether there is one to keep, the server knows.
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
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: https://a.example/ }\n        filters: {}\n";
        let message = refusal(text);
        assert!(message.starts_with("a.yaml:6:9: "), "{message}");
        assert!(message.contains("unknown field `filters`"), "{message}");
    }

    #[test]
    fn a_broken_rule_is_named_with_its_line_and_column() {
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: https://a.example/ }\n        retryPolicy:\n          schedule: [PT1S, P2D]\n";
        let message = refusal(text);
        assert_eq!(
            message,
            "a.yaml:7:28: subscriptions.billing.retryPolicy.schedule[1]: P2D is outside PT0S..=P1D"
        );
    }

    #[test]
    fn an_error_shows_nothing_of_the_line_it_is_on() {
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: https://a.example/ }\n        signing: SIGNING\n";
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
                "topics: {{ orders: {{ subscriptions: {{ a: {{ endpoint: {{ url: 'https://a.example/' }}, {masked} }} }} }} }}"
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
