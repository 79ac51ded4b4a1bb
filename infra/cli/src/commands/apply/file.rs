//! A file that is to be applied: parsed, and checked by the rules the server has too.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use posthaste_core::api::edit::check_topic;
use posthaste_core::api::{ApplyFile, InputMistake, SettingsError, SettingsProblem, TopicSettings};
use posthaste_core::model::TopicName;
use posthaste_yaml::TextMistake;
use serde::Deserialize;

use super::server::{ServerTopics, VersionedTopic};
use crate::commands::patch::{ExpectedState, PatchError, TopicPatch, check_names, complete_file};
use crate::commands::session::AdminSession;
use crate::error::CommandError;
use crate::yaml::{FileMistake, FileMistakes, read_file, read_part};

/// A file that passed every check that can be made without the server.
#[derive(Debug)]
pub struct CheckedFile {
    pub path: PathBuf,
    /// Declared topics.
    pub contents: ApplyFile,
    /// The members that are named of each of them, where those alone are written.
    part: Option<FilePatch>,
}

/// The members that are named, and where.
#[derive(Debug)]
struct FilePatch {
    /// The text, if they are from a file.
    text: Option<Vec<u8>>,
    topics: BTreeMap<TopicName, TopicPatch>,
}

/// A topic as it is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeclaredTopic<'a> {
    pub(super) name: &'a TopicName,
    /// The settings that are declared. Where a part is named, they have the subscriptions that are.
    pub(super) declared: &'a TopicSettings,
    patch: Option<&'a TopicPatch>,
    file: &'a CheckedFile,
}

/// Parses a file and checks every topic in it.
pub(crate) fn check_file(path: &Path, text: &[u8]) -> Result<CheckedFile, FileMistakes> {
    let contents = read_file(path, text, &check_topics)?;
    Ok(CheckedFile::with_whole_topics(path.to_owned(), contents))
}

/// Parses a file of which the members that are named are written. The rules can be checked once the
/// other members are known.
pub(crate) fn check_part(path: &Path, text: &[u8]) -> Result<CheckedFile, FileMistakes> {
    let (contents, written) = read_part(path, text, &complete_file, &check_names)?;
    let written_topics = written.member("topics");
    let mut patches = BTreeMap::new();
    for (name, settings) in &contents.topics {
        let written = written_topics.and_then(|topics| topics.member(name.as_str()));
        let changes = TopicPatch::from_written(written, settings, ExpectedState::Any);
        patches.insert(name.clone(), changes);
    }
    Ok(CheckedFile {
        path: path.to_owned(),
        contents,
        part: Some(FilePatch {
            text: Some(text.to_owned()),
            topics: patches,
        }),
    })
}

impl CheckedFile {
    /// Whole topics, which passed their check.
    pub fn with_whole_topics(path: PathBuf, contents: ApplyFile) -> Self {
        Self {
            path,
            contents,
            part: None,
        }
    }

    /// A topic of which the command line names members.
    pub(crate) fn from_arguments(
        name: TopicName,
        settings: TopicSettings,
        patch: TopicPatch,
    ) -> Self {
        let topics = BTreeMap::from([(name.clone(), patch)]);
        Self {
            path: PathBuf::from("command line"),
            contents: ApplyFile {
                topics: BTreeMap::from([(name, settings)]),
            },
            part: Some(FilePatch { text: None, topics }),
        }
    }

    /// Whether members that are not named keep their values.
    pub(super) fn is_part(&self) -> bool {
        self.part.is_some()
    }

    /// The mistakes of a topic that is laid over the server's, in this file. The error itself if it
    /// is about no member of a file.
    fn locate_mistakes(&self, error: PatchError) -> Result<Vec<FileMistake>, PatchError> {
        let text = self.part.as_ref().and_then(|part| part.text.as_ref());
        match (error, text) {
            (PatchError::Mistakes { topic, mistakes }, Some(text)) => {
                let placed = mistakes.into_iter().map(|mistake| FileMistake {
                    path: self.path.clone(),
                    mistake: locate_mistake(text, &topic, mistake),
                });
                let mut placed: Vec<_> = placed.collect();
                placed.sort_by_key(|it| it.mistake.place);
                Ok(placed)
            }
            (error, _) => Err(error),
        }
    }

    fn declares_topic(&self, name: &TopicName) -> bool {
        let mut topics = self.contents.topics.keys();
        topics.any(|other| other.folded() == name.folded())
    }
}

/// The place in a file of a mistake in one of its topics.
fn locate_mistake(text: &[u8], topic: &TopicName, mistake: InputMistake) -> TextMistake {
    let InputMistake {
        member,
        text: fault,
        is_at_name,
    } = mistake;
    let member = format!("topics.{topic}.{member}");
    if is_at_name {
        posthaste_yaml::name_mistake(text, member, fault)
    } else {
        posthaste_yaml::value_mistake(text, member, fault)
    }
}

/// The topics that files declare, in their order.
pub(super) fn declared_topics(files: &[CheckedFile]) -> impl Iterator<Item = DeclaredTopic<'_>> {
    files.iter().flat_map(|file| {
        file.contents.topics.iter().map(move |(name, declared)| {
            let part = file.part.as_ref();
            DeclaredTopic {
                name,
                declared,
                patch: part.and_then(|part| part.topics.get(name)),
                file,
            }
        })
    })
}

impl<'a> DeclaredTopic<'a> {
    /// The topic to write where `before` is there.
    pub(super) fn resolve_settings(
        &self,
        before: Option<&VersionedTopic>,
    ) -> Result<Cow<'a, TopicSettings>, PatchError> {
        let Some(patch) = self.patch else {
            return Ok(Cow::Borrowed(self.declared));
        };
        let present = before.map(|view| TopicSettings::deserialize(&view.topic));
        let present = present.transpose().map_err(|source| PatchError::Newer {
            topic: self.name.clone(),
            source,
        })?;
        patch.apply_to(self.name, present.as_ref()).map(Cow::Owned)
    }
}

/// Checks what is named against what the server has, before anything is written.
pub(super) fn check_parts(
    session: &AdminSession,
    present: &ServerTopics,
    files: &[CheckedFile],
) -> Result<(), CommandError> {
    let mut mistakes = Vec::new();
    for wanted in declared_topics(files).filter(|wanted| wanted.patch.is_some()) {
        let view = present.read_topic(session, wanted.name)?;
        if let Err(error) = wanted.resolve_settings(view.as_ref()) {
            mistakes.extend(wanted.file.locate_mistakes(error)?);
        }
    }
    if mistakes.is_empty() {
        Ok(())
    } else {
        Err(FileMistakes(mistakes).into())
    }
}

/// The rules that hold without the server.
fn check_topics(contents: &ApplyFile) -> Result<(), SettingsError> {
    let mut folded = BTreeSet::new();
    for (name, settings) in &contents.topics {
        if !folded.insert(name.folded()) {
            return Err(SettingsError {
                member: format!("topics.{name}"),
                problem: SettingsProblem::Duplicate,
            });
        }
        check_topic(name, settings).map_err(|error| SettingsError {
            member: format!("topics.{name}.{}", error.member),
            ..error
        })?;
    }
    Ok(())
}

/// The topics of `next`, whose text is `text`, that one of `files` declares too. It is unknown
/// which one is meant.
pub(super) fn declared_twice(
    files: &[CheckedFile],
    next: &CheckedFile,
    text: &[u8],
) -> Vec<FileMistake> {
    let twice = next.contents.topics.keys().filter_map(|name| {
        let first = files.iter().find(|file| file.declares_topic(name))?;
        let fault = format!("the topic is declared in {} too", first.path.display());
        Some(FileMistake::of_name(
            &next.path,
            text,
            format!("topics.{name}"),
            fault,
        ))
    });
    twice.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        check_file(Path::new("a.yaml"), text.as_bytes())
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn the_sample_topic_of_custom_events_can_be_applied() {
        let text = include_bytes!("../../../../../samples/custom/topic.yaml");
        let checked = check_file(Path::new("topic.yaml"), text).unwrap();
        assert_eq!(
            checked
                .contents
                .topics
                .values()
                .map(|topic| topic.subscriptions.len())
                .sum::<usize>(),
            3
        );
    }

    #[test]
    fn an_unknown_member_is_named_with_its_line_and_column() {
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: \
            https://a.example/ }\n        filters: {}\n";
        assert_eq!(
            refusal(text),
            "a.yaml:6:9: topics.orders.subscriptions.billing.filters: unknown member `filters`, did you mean \
                `filter`?"
        );
    }

    #[test]
    fn a_broken_rule_is_named_with_its_line_and_column() {
        let text = "topics:\n  orders:\n    subscriptions:\n      billing:\n        endpoint: { url: \
            https://a.example/ }\n        retryPolicy:\n          schedule: [PT1S, P2D]\n";
        let message = refusal(text);
        assert_eq!(
            message,
            "a.yaml:7:28: topics.orders.subscriptions.billing.retryPolicy.schedule[1]: expected PT0S to P1D, found P2D"
        );
    }

    #[test]
    fn all_mistakes_are_named_in_the_order_of_the_file() {
        let text = "\
topics:
  orders:
    inputSchema: CloudEvent
    subscriptions:
      shipping:
        endpoint: { url: https://a.example/, timeout: PT2M }
        retry:
          maxAttempts: 99
      billing:
        endpoint: { url: not a url }
        filters: {}
  parcels:
    subscriptions:
      all: {}
";
        let expected = "\
7 mistakes
  a.yaml:3:18: topics.orders.inputSchema: unknown word, did you mean `CloudEvents`?
  a.yaml:6:55: topics.orders.subscriptions.shipping.endpoint.timeout: expected PT1S to PT1M, found PT2M
  a.yaml:7:9: topics.orders.subscriptions.shipping.retry: unknown member `retry`, did you mean `retryPolicy`?
  a.yaml:8:11: topics.orders.subscriptions.shipping.retry.maxAttempts: unknown member `maxAttempts`, did you \
            mean `maxDeliveryAttempts`?
  a.yaml:10:26: topics.orders.subscriptions.billing.endpoint.url: not an absolute URL such as \
            https://example.com/hooks: relative URL without a base
  a.yaml:11:9: topics.orders.subscriptions.billing.filters: unknown member `filters`, did you mean `filter`?
  a.yaml:14:7: topics.parcels.subscriptions.all: missing member `endpoint`";
        assert_eq!(refusal(text), expected);
    }

    #[test]
    fn a_name_that_is_there_twice_is_named() {
        let subscription = "{ endpoint: { url: 'https://a.example/' } }";
        let text = format!(
            "topics:\n  orders:\n    subscriptions:\n      crm: {subscription}\n      crm: {subscription}\n"
        );
        assert_eq!(
            refusal(&text),
            "a.yaml:5:7: topics.orders.subscriptions.crm: is there twice, remove or rename one"
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
            assert!(
                message.contains("a.yaml:6:") && !message.contains("hush"),
                "{message}"
            );
        }
    }

    #[test]
    fn names_that_differ_in_case_only_are_one_topic() {
        assert_eq!(
            refusal("topics: { orders: {}, Orders: {} }"),
            "a.yaml:1:19: topics.orders: there is another of this name in another case"
        );
        let one = check_file(Path::new("a.yaml"), b"topics: { orders: {} }").unwrap();
        let other = check_file(Path::new("b.yaml"), b"topics: { ORDERS: {} }").unwrap();
        let twice = FileMistakes(declared_twice(&[one], &other, b"topics: { ORDERS: {} }"));
        assert_eq!(
            twice.to_string(),
            "b.yaml:1:11: topics.ORDERS: the topic is declared in a.yaml too"
        );
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
            assert!(
                check_file(Path::new("a.yaml"), text.as_bytes()).is_ok(),
                "{masked}"
            );
        }
    }

    #[test]
    fn invalid_yaml_is_refused_without_a_panic() {
        for bad in [
            "",
            "topics",
            "topics: [",
            "- 1",
            "\u{0}",
            "topics: {a: {b: &x {c: *x}}}",
            "topics: {}\n---\ntopics: {}",
        ] {
            assert!(
                check_file(Path::new("a.yaml"), bad.as_bytes()).is_err(),
                "{bad:?}"
            );
        }
        assert!(check_file(Path::new("a.yaml"), b"\xff\xfe\xfa").is_err());
    }
}
