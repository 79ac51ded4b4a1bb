//! Readers of what users write: topics, subscriptions and files of them, requests of the API, and
//! settings of back pressure.

use std::fmt::Debug;

use posthaste_core::api::events::{EventQuery, RecordQuery};
use posthaste_core::api::{
    ApplyFile, DeadLetterPage, InputNotation, JsonFault, ReplayRequest, ResendRequest,
    ResolveRequest, RotateSecret, SecretText, SettingsError, SubscriptionPage,
    SubscriptionSettings, TestRequest, TopicSettings, WrittenValue, compile_subscription,
    compile_topic, read_answer, read_json, read_written,
};
use posthaste_core::events::Event;
use posthaste_core::model::filter::FilterSet;
use posthaste_core::model::{EventSchema, SubscriptionName, Timestamp, TopicKeys, TopicName};
use posthaste_core::pressure::{ExchangeSettings, PressureSettings};
use posthaste_core::release::ReplaySelection;
use posthaste_yaml::{read_checked, read_file, to_text};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::hold::{debug, word};
use crate::target::Target;

/// A moment for what needs one: 2026-11-21.
const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);

/// The targets.
pub(super) const TARGETS: &[Target] = &[
    target(
        "topic-json",
        &["tests/parsers/corpus/settings/topic"],
        |bytes| json(bytes, check_topic),
    ),
    target(
        "subscription-json",
        &["tests/parsers/corpus/settings/subscription"],
        |bytes| json(bytes, check_subscription),
    ),
    target(
        "topics-yaml",
        &[
            "samples/orders.yaml",
            "samples/custom/topic.yaml",
            "tests/parsers/corpus/settings/file",
        ],
        |bytes| {
            yaml(bytes, |file: &ApplyFile| {
                file.topics.values().try_for_each(check_topic)
            })
        },
    ),
    target(
        "exchange-settings",
        &[
            "shared/core/src/pressure/exchange/fixtures/",
            "tests/parsers/corpus/settings/exchange",
        ],
        exchange,
    ),
    target(
        "replay-request",
        &["tests/parsers/corpus/settings/replay"],
        |bytes| {
            json(bytes, |request: &ReplayRequest| {
                let (topic, subscription) = names();
                let _ = debug(&ReplaySelection::new(&topic, &subscription, request, NOW));
                Ok(())
            })
        },
    ),
    target(
        "resend-request",
        &["tests/parsers/corpus/settings/re"],
        |bytes| json(bytes, fits::<ResendRequest>),
    ),
    target(
        "resolve-request",
        &["tests/parsers/corpus/settings/re"],
        |bytes| json(bytes, fits::<ResolveRequest>),
    ),
    target(
        "rotate-request",
        &["tests/parsers/corpus/settings/rotate"],
        |bytes| json(bytes, fits::<RotateSecret>),
    ),
    target(
        "test-request",
        &["tests/parsers/corpus/settings/test"],
        |bytes| {
            read_json::<TestRequest>(bytes, |_| Ok(()))
                .map_or_else(|fault| fault_word(&fault), |_| "read".to_owned())
        },
    ),
    target(
        "query",
        &["tests/parsers/corpus/settings/queries.lines"],
        query,
    ),
    target(
        "answers",
        &["tests/parsers/corpus/settings/answer"],
        answers,
    ),
];

const fn target(
    name: &'static str,
    corpus: &'static [&'static str],
    check: fn(&[u8]) -> String,
) -> Target {
    let weight = 4;
    Target {
        name,
        corpus,
        check,
        weight,
    }
}

fn names() -> (TopicName, SubscriptionName) {
    let topic = TopicName::parse("orders").expect("a name");
    let subscription = SubscriptionName::parse("billing").expect("a name");
    (topic, subscription)
}

fn keys() -> TopicKeys {
    let [key1, key2] = ["key-one", "key-two"].map(SecretText::new);
    posthaste_core::stored::TopicRecord::new(names().0, [key1, key2], NOW).topic_keys()
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of several checks")]
fn fits<T>(_: &T) -> Result<(), SettingsError> {
    Ok(())
}

fn check_topic(settings: &TopicSettings) -> Result<(), SettingsError> {
    let topic = compile_topic(&names().0, settings, keys())?;
    let filters = topic.subscriptions.values().map(|it| it.filter.clone());
    let event = bytes::Bytes::from_static(
        br#"{"specversion":"1.0","id":"1","source":"/s","type":"order.paid","subject":"/a","data":{"amount":2,"a":{}}}"#,
    );
    let event = Event::parse(EventSchema::CloudEvents, event).expect("an event");
    let _ = FilterSet::from_filters(filters).match_events(&[event]);
    Ok(())
}

fn check_subscription(settings: &SubscriptionSettings) -> Result<(), SettingsError> {
    let (topic, subscription) = names();
    for schema in EventSchema::ALL {
        let _ = compile_subscription(&topic, schema, &subscription, settings);
    }
    compile_subscription(&topic, EventSchema::CloudEvents, &subscription, settings).map(|_| ())
}

/// JSON that is read is written as JSON that reads the same, and as YAML.
fn json<T: DeserializeOwned + Serialize + Debug>(
    bytes: &[u8],
    check: impl Fn(&T) -> Result<(), SettingsError> + Copy,
) -> String {
    match read_json(bytes, check) {
        Ok(value) => {
            let written = serde_json::to_vec(&value).expect("settings are JSON");
            // Lengths are written in milliseconds: what was written is read as it is.
            let again: Result<T, _> = read_json(&written, check);
            let again = again.unwrap_or_else(|fault| {
                panic!(
                    "written as {}: {fault:?}",
                    String::from_utf8_lossy(&written)
                )
            });
            assert_eq!(serde_json::to_vec(&again).ok(), Some(written));
            as_yaml(&again);
            "read".to_owned()
        }
        Err(fault) => fault_word(&fault),
    }
}

fn fault_word(fault: &JsonFault) -> String {
    assert_ne!(
        fault,
        &JsonFault::Mistakes(Vec::new()),
        "refused for nothing"
    );
    word(fault)
}

/// A value as YAML reads as itself.
fn as_yaml<T: DeserializeOwned + Serialize + Debug>(value: &T) {
    let text = to_text(value).expect("settings are YAML");
    let again: Result<T, _> = read_checked(text.as_bytes(), &|_| Ok(()));
    assert_eq!(
        debug(&again.as_ref().ok()),
        debug(&Some(value)),
        "{text}\n{again:?}"
    );
}

fn yaml(bytes: &[u8], check: impl Fn(&ApplyFile) -> Result<(), SettingsError>) -> String {
    match read_file(bytes, &check) {
        Ok(file) => {
            let text = to_text(&file).expect("settings are YAML");
            let again = read_file(text.as_bytes(), &check).expect("it was read");
            assert_eq!(to_text(&again).ok(), Some(text));
            "read".to_owned()
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "refused for nothing");
            word(&mistakes)
        }
    }
}

/// Checked settings are within bounds, whatever the file says.
fn exchange(bytes: &[u8]) -> String {
    match read_checked::<ExchangeSettings>(bytes, &|_| Ok(())) {
        Ok(settings) => {
            let profile = PressureSettings::default();
            match settings.apply_to(profile) {
                Ok(settings) => {
                    assert!(settings.validate().is_ok());
                    "read".to_owned()
                }
                Err(error) => word(&error),
            }
        }
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "refused for nothing");
            word(&mistakes)
        }
    }
}

/// The query of a request for records.
fn query(bytes: &[u8]) -> String {
    let members = url::form_urlencoded::parse(bytes);
    let members = members.map(|(name, value)| (name.into_owned(), WrittenValue::from_text(value)));
    let written = WrittenValue::Object(members.collect());
    let (topic, _) = names();
    let records = read_written::<RecordQuery>(written.clone(), InputNotation::Query, |_| Ok(()));
    let events = read_written::<EventQuery>(written, InputNotation::Query, |_| Ok(()));
    let of_records = records.map(|query| query.to_filter(&topic, NOW).map(|_| ()));
    let of_events = events.map(|query| {
        let id = query.event_id("a".to_owned());
        let _ = query.look_up(&topic, &id, NOW);
    });
    word(&(of_records, of_events))
}

/// Answers of a server that may be newer, as the program's own commands read them.
fn answers(bytes: &[u8]) -> String {
    let _ = read_answer::<SubscriptionPage>(bytes).map_err(|error| word(&error));
    let _ = read_answer::<posthaste_core::api::AuditPage>(bytes).is_ok();
    read_answer::<DeadLetterPage>(bytes).map_or_else(|error| word(&error), |_| "read".to_owned())
}
