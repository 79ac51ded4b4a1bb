//! Settings of which only some members are named, laid over those that the server has: a merge patch
//! (RFC 7396), whether a file names them or the command line.

mod error;

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::api::edit::check_topic;
use posthaste_core::api::{
    ApplyFile, InputMistake, InputNotation, SettingsError, SettingsProblem, TopicSettings,
    WrittenValue, read_written,
};
use posthaste_core::model::{SubscriptionName, TopicName};
use serde_json::{Map, Value, json};

pub use self::error::PatchError;

/// The member in which a topic has its subscriptions.
const SUBSCRIPTIONS: &str = "subscriptions";

/// The endpoint of a subscription of which none is named, so that the rest can be read. It is never
/// sent.
const PLACEHOLDER: &str = "https://example.com/";

/// The state that has to be there before a patch is laid over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ExpectedState {
    /// Anything: what is not there is created.
    #[default]
    Any,
    /// No topic of this name.
    NoTopic,
    /// The topic, without the subscriptions that are named.
    NoSubscription,
    /// The topic, with the subscriptions that are named.
    Subscription,
}

/// The members that are named of a topic.
#[derive(Debug, Clone)]
pub(crate) struct TopicPatch {
    /// Those of the topic itself.
    own: Value,
    /// Those of each subscription.
    subscriptions: BTreeMap<SubscriptionName, Value>,
    expected: ExpectedState,
}

/// The rule of a file of which only parts are written: each name is there once.
pub(super) fn check_names(file: &ApplyFile) -> Result<(), SettingsError> {
    let mut topics = BTreeSet::new();
    for (topic, settings) in &file.topics {
        if !topics.insert(topic.folded()) {
            return Err(duplicate_error(format!("topics.{topic}")));
        }
        let mut subscriptions = BTreeSet::new();
        for name in settings.subscriptions.keys() {
            if !subscriptions.insert(name.folded()) {
                return Err(duplicate_error(format!(
                    "topics.{topic}.{SUBSCRIPTIONS}.{name}"
                )));
            }
        }
    }
    Ok(())
}

fn duplicate_error(member: String) -> SettingsError {
    SettingsError {
        member,
        problem: SettingsProblem::Duplicate,
    }
}

/// The text of a file with an endpoint for each subscription that names none.
pub(super) fn complete_file(file: &WrittenValue) -> WrittenValue {
    each_member(file, |name, topics| match name {
        "topics" => each_member(topics, |_, topic| complete_topic(topic)),
        _ => topics.clone(),
    })
}

/// The text of a topic with an endpoint for each subscription that names none.
pub(super) fn complete_topic(topic: &WrittenValue) -> WrittenValue {
    each_member(topic, |name, member| match name {
        SUBSCRIPTIONS => each_member(member, |_, subscription| {
            complete_subscription(subscription)
        }),
        _ => member.clone(),
    })
}

fn complete_subscription(subscription: &WrittenValue) -> WrittenValue {
    let url = WrittenValue::from_text(PLACEHOLDER);
    let endpoint = WrittenValue::Object(vec![("url".to_owned(), url.clone())]);
    let whole = with_member(subscription, "endpoint", endpoint);
    each_member(&whole, |name, member| match name {
        "endpoint" if !member.is_null() => with_member(member, "url", url.clone()),
        _ => member.clone(),
    })
}

/// An object with a member more, unless it has one of that name. `null` counts as an empty object.
fn with_member(written: &WrittenValue, name: &str, value: WrittenValue) -> WrittenValue {
    let member = (name.to_owned(), value);
    match written {
        WrittenValue::Object(members) if written.member(name).is_none() => {
            WrittenValue::Object(members.iter().cloned().chain([member]).collect())
        }
        written if written.is_null() => WrittenValue::Object(vec![member]),
        written => written.clone(),
    }
}

fn each_member(
    object: &WrittenValue,
    change: impl Fn(&str, &WrittenValue) -> WrittenValue,
) -> WrittenValue {
    match object {
        WrittenValue::Object(members) => WrittenValue::Object(
            members
                .iter()
                .map(|(name, member)| (name.clone(), change(name, member)))
                .collect(),
        ),
        other => other.clone(),
    }
}

impl TopicPatch {
    /// The members that are written, with the values that were read from them.
    pub(super) fn from_written(
        written: Option<&WrittenValue>,
        read: &TopicSettings,
        expected: ExpectedState,
    ) -> Self {
        let nothing = WrittenValue::Object(Vec::new());
        let written = written.unwrap_or(&nothing);
        let own = each_member(written, |_, member| member.clone());
        let own = match own {
            WrittenValue::Object(members) => WrittenValue::Object(
                members
                    .into_iter()
                    .filter(|(name, _)| name != SUBSCRIPTIONS)
                    .collect(),
            ),
            // Nothing after the name of a topic names none of its members.
            _ => nothing.clone(),
        };
        let subscriptions = read.subscriptions.iter().filter_map(|(name, settings)| {
            let written = written.member(SUBSCRIPTIONS)?.member(name.as_str())?;
            let patch = if written.is_null() {
                json!({})
            } else {
                patch_value(written, Some(&json!(settings)))
            };
            Some((name.clone(), patch))
        });
        Self {
            own: patch_value(&own, Some(&json!(read))),
            subscriptions: subscriptions.collect(),
            expected,
        }
    }

    /// The topic to write where `present` is there, `None` if there is none.
    pub(super) fn apply_to(
        &self,
        topic: &TopicName,
        present: Option<&TopicSettings>,
    ) -> Result<TopicSettings, PatchError> {
        self.check_expected(topic, present)?;
        let mut whole = present.map_or_else(|| json!({}), |present| json!(present.settings_only()));
        if let Some(members) = whole.as_object_mut() {
            members.remove(SUBSCRIPTIONS);
        }
        lay_over(&mut whole, &self.own);
        let mut subscriptions = Map::new();
        for (name, patch) in &self.subscriptions {
            let stored = present.and_then(|present| present.find_subscription(name));
            let mut whole = stored.map_or_else(|| json!({}), |(_, it)| json!(it.settings_only()));
            let name = stored.map_or(name, |(stored, _)| stored);
            // The times are those of the secrets that were there.
            if patch.pointer("/signing/secrets").is_some()
                && let Some(signing) = whole.get_mut("signing").and_then(Value::as_object_mut)
            {
                signing.remove("expiresAt");
            }
            lay_over(&mut whole, patch);
            subscriptions.insert(name.to_string(), whole);
        }
        whole[SUBSCRIPTIONS] = subscriptions.into();
        let read = read_written(
            WrittenValue::from(&whole),
            InputNotation::Json,
            |settings| check_topic(topic, settings),
        );
        read.map_err(|mistakes| PatchError::Mistakes {
            topic: topic.clone(),
            mistakes: self.with_written_names(mistakes, present),
        })
    }

    /// Mistakes with the names of subscriptions as they are written here.
    fn with_written_names(
        &self,
        mut mistakes: Vec<InputMistake>,
        present: Option<&TopicSettings>,
    ) -> Vec<InputMistake> {
        for mistake in &mut mistakes {
            let written = self.subscriptions.keys().find_map(|name| {
                let stored = present.and_then(|it| it.stored_name(name)).unwrap_or(name);
                let of_stored = format!("{SUBSCRIPTIONS}.{stored}");
                let rest = mistake.member.strip_prefix(&of_stored)?;
                (rest.is_empty() || rest.starts_with('.'))
                    .then(|| format!("{SUBSCRIPTIONS}.{name}{rest}"))
            });
            if let Some(written) = written {
                mistake.member = written;
            }
        }
        mistakes
    }

    /// Requires that what has to be there is there.
    fn check_expected(
        &self,
        topic: &TopicName,
        present: Option<&TopicSettings>,
    ) -> Result<(), PatchError> {
        let topic = topic.clone();
        let is_of_topic = matches!(self.expected, ExpectedState::Any | ExpectedState::NoTopic);
        let Some(present) = present else {
            return if is_of_topic {
                Ok(())
            } else {
                Err(PatchError::NoTopic { topic })
            };
        };
        if self.expected == ExpectedState::NoTopic {
            return Err(PatchError::TopicExists { topic });
        }
        for name in self.subscriptions.keys() {
            let is_there = present.find_subscription(name).is_some();
            let name = name.clone();
            match self.expected {
                ExpectedState::NoSubscription if is_there => {
                    return Err(PatchError::SubscriptionExists { topic, name });
                }
                ExpectedState::Subscription if !is_there => {
                    return Err(PatchError::NoSubscription { topic, name });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The patch of what is written: values as they were read, and null where nothing is written, or
/// what counts as left out.
fn patch_value(written: &WrittenValue, read: Option<&Value>) -> Value {
    match written {
        WrittenValue::Object(members) => {
            let members = members.iter().map(|(name, member)| {
                let read = read.and_then(|read| read.get(name));
                (name.clone(), patch_value(member, read))
            });
            Value::Object(members.collect())
        }
        written if written.is_null() => Value::Null,
        WrittenValue::Scalar { .. } | WrittenValue::List(_) => read.cloned().unwrap_or_default(),
    }
}

/// Lays a patch over a value, as RFC 7396 §2 says.
fn lay_over(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let Some(members) = target.as_object_mut() else {
        return;
    };
    for (name, value) in patch {
        if value.is_null() {
            members.remove(name);
        } else {
            lay_over(members.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::model::Timestamp;

    fn topic() -> TopicName {
        TopicName::parse("Orders").unwrap()
    }

    fn present() -> TopicSettings {
        let settings = json!({
            "inputSchema": "EventGrid", "defaultTimeToLive": "P1D",
            "subscriptions": {
                "Billing": {
                    "endpoint": { "url": "https://a.example/", "timeout": "PT5S" },
                    "retryPolicy": { "maxDeliveryAttempts": 5, "schedule": ["PT1M"] },
                    "filter": { "includedEventTypes": ["a", "b"] },
                    "deliveryHeaders": [{ "name": "X-Key", "value": "s3cret", "isSecret": true }],
                    "signing": {
                        "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                            "whsec_T3RoZXJPdGhlck90aGVyT3RoZXJPdGhl"],
                        "expiresAt": [null, "2099-01-01T00:00:00.000Z"],
                    },
                },
                "crm": { "endpoint": { "url": "https://b.example/" } },
            },
        });
        let settings: TopicSettings = serde_json::from_value(settings).unwrap();
        settings.to_view(&topic(), Timestamp::EPOCH)
    }

    fn patch(text: &str, expected: ExpectedState) -> TopicPatch {
        let read = posthaste_yaml::read_part(text.as_bytes(), &complete_topic, &|_| Ok(()));
        let (settings, written) = read.unwrap();
        TopicPatch::from_written(Some(&written), &settings, expected)
    }

    /// The members that the patch writes otherwise than they are, as a difference shows them.
    fn changed(text: &str) -> Vec<String> {
        let over = patch(text, ExpectedState::Any).apply_to(&topic(), Some(&present()));
        let over = over.unwrap();
        let before = present().settings_only();
        let own = posthaste_core::api::topic_differences(&json!(before), &json!(over));
        let of_subscriptions = over.subscriptions.iter().flat_map(|(name, after)| {
            let before = json!(before.find_subscription(name).map(|(_, before)| before));
            posthaste_core::api::subscription_differences(&before, &json!(after))
        });
        let lines = own.into_iter().chain(of_subscriptions);
        lines.map(|change| change.to_string()).collect()
    }

    #[test]
    fn members_that_are_not_named_keep_their_values_at_every_level() {
        assert_eq!(changed("{}"), Vec::<String>::new());
        assert_eq!(
            changed("subscriptions: { billing: {} }"),
            Vec::<String>::new()
        );
        assert_eq!(changed("subscriptions: { billing: }"), Vec::<String>::new());
        assert_eq!(
            changed(
                "recordUnmatched: true\nsubscriptions:\n  billing: { endpoint: { timeout: 10s } }"
            ),
            [
                "recordUnmatched: (default) → true",
                "endpoint.timeout: PT5S → PT10S"
            ]
        );
    }

    #[test]
    fn null_and_a_written_default_take_a_value_away() {
        let check = |member: &str, expected: &str| {
            let text = format!("subscriptions: {{ BILLING: {{ {member} }} }}");
            assert_eq!(changed(&text), [expected], "{text}");
        };
        check(
            "endpoint: { timeout: null }",
            "endpoint.timeout: PT5S → (default)",
        );
        check(
            "retryPolicy: { schedule: }",
            "retryPolicy.schedule: [PT1M] → (default)",
        );
        check(
            "deliveryHeaders: []",
            "deliveryHeaders: removed {isSecret: true, name: X-Key, value: (masked)}",
        );
        assert_eq!(
            changed("defaultTimeToLive: null"),
            ["defaultTimeToLive: P1D → (default)"]
        );
    }

    #[test]
    fn lists_are_written_whole_and_maps_member_by_member() {
        let text = "subscriptions: { billing: { filter: { includedEventTypes: [c] }, \
                    retryPolicy: { waitFloors: { 503: PT1M } } } }";
        assert_eq!(
            changed(text),
            [
                "filter.includedEventTypes: [a, b] → [c]",
                "retryPolicy.waitFloors.503: (default) → PT1M"
            ]
        );
    }

    #[test]
    fn times_of_secrets_stay_only_with_their_secrets() {
        let text = "subscriptions: { billing: { signing: { secrets: \
                    [whsec_QW5vdGhlckFub3RoZXJBbm90aGVyQW5v] } } }";
        let over = patch(text, ExpectedState::Any).apply_to(&topic(), Some(&present()));
        let over = over.unwrap();
        let signing =
            |over: &TopicSettings| over.subscriptions.values().next().unwrap().signing.clone();
        assert_eq!(signing(&over).expires_at, None);
        let kept = patch("subscriptions: { billing: {} }", ExpectedState::Any);
        let kept = kept.apply_to(&topic(), Some(&present())).unwrap();
        assert!(signing(&kept).expires_at.is_some());
    }

    /// Named subscriptions are written under the names that the server has stored.
    #[test]
    fn patch_writes_only_named_subscriptions_by_stored_name() {
        let over = patch(
            "subscriptions: { BILLING: {}, new: { endpoint: { url: 'https://c.example/' } } }",
            ExpectedState::Any,
        );
        let over = over.apply_to(&topic(), Some(&present())).unwrap();
        let names: Vec<_> = over
            .subscriptions
            .keys()
            .map(SubscriptionName::as_str)
            .collect();
        assert_eq!(names, ["Billing", "new"]);
    }

    /// Subscriptions that are not named are not checked again.
    #[test]
    fn new_subscription_needs_all_required_members() {
        let error =
            patch("subscriptions: { new: {} }", ExpectedState::Any).apply_to(&topic(), None);
        assert_eq!(
            error.unwrap_err().to_string(),
            "Orders: subscriptions.new: missing member `endpoint`"
        );
        let wrong = patch("inputSchema: CloudEvents", ExpectedState::Any);
        let wrong = wrong.apply_to(&topic(), Some(&present()));
        assert!(
            wrong.is_ok(),
            "the schemas of subscriptions that are not named are the server's"
        );
    }

    #[test]
    fn patch_requires_the_expected_topic_and_subscription() {
        let check = |text: &str, expected, there: bool, said: Option<&str>| {
            let present = present();
            let over = patch(text, expected).apply_to(&topic(), there.then_some(&present));
            assert_eq!(
                over.err().map(|it| it.to_string()).as_deref(),
                said,
                "{text}"
            );
        };
        let new = "subscriptions: { new: { endpoint: { url: 'https://c.example/' } } }";
        let crm = "subscriptions: { CRM: { contentMode: binary } }";
        check("{}", ExpectedState::NoTopic, false, None);
        check(
            "{}",
            ExpectedState::NoTopic,
            true,
            Some("the topic Orders exists already"),
        );
        check(new, ExpectedState::NoSubscription, true, None);
        check(
            new,
            ExpectedState::NoSubscription,
            false,
            Some("there is no topic Orders"),
        );
        let exists = "Orders has a subscription CRM already";
        check(crm, ExpectedState::NoSubscription, true, Some(exists));
        check(
            new,
            ExpectedState::Subscription,
            true,
            Some("Orders has no subscription new"),
        );
    }

    #[test]
    fn names_that_differ_in_case_only_are_refused() {
        let text = "topics: { a: { subscriptions: { b: {}, B: {} } } }";
        let read = posthaste_yaml::read_part(text.as_bytes(), &complete_file, &check_names);
        let members: Vec<_> = read.unwrap_err().into_iter().map(|it| it.member).collect();
        assert_eq!(members, ["topics.a.subscriptions.b"]);
    }
}
