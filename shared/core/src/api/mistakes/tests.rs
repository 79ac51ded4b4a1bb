use serde_json::{Value, json};

use super::*;
use crate::api::{ApplyFile, SubscriptionSettings, TopicSettings, compile_topic};
use crate::model::{Secret, TopicKeys, TopicName};

fn mistakes<T: DeserializeOwned>(
    written: &Value,
    notation: InputNotation,
    check: impl Fn(&T) -> Result<(), SettingsError>,
) -> Vec<InputMistake> {
    let read = read_written(written.into(), notation, check);
    read.err().unwrap_or_default()
}

/// Every mistake of a topic, as its member and its text.
fn of_topic(topic: &Value) -> Vec<(String, String)> {
    let check = |settings: &TopicSettings| {
        let keys = TopicKeys::new(Secret::new(""), Secret::new(""));
        compile_topic(&TopicName::parse("orders").unwrap(), settings, keys).map(drop)
    };
    mistakes(topic, InputNotation::Json, check)
        .into_iter()
        .map(|one| (one.member, one.text))
        .collect()
}

/// Checks the mistakes of a topic with these subscriptions.
fn check(subscriptions: &Value, expected: &[(&str, &str)]) {
    let found = of_topic(&json!({ "subscriptions": subscriptions }));
    let expected: Vec<_> = expected
        .iter()
        .map(|(member, text)| (format!("subscriptions.{member}"), (*text).to_owned()))
        .collect();
    assert_eq!(found, expected);
}

fn endpoint() -> Value {
    json!({ "url": "https://a.example/" })
}

#[test]
fn settings_without_a_mistake_have_none() {
    check(
        &json!({ "a": { "endpoint": endpoint(), "filter": { "includedEventTypes": ["x"] } } }),
        &[],
    );
    assert_eq!(of_topic(&json!({})), []);
}

#[test]
fn every_kind_of_mistake_in_every_subscription_is_named() {
    let broken = |schema: &str| {
        json!({
            "endpoint": endpoint(),
            "filters": {},
            "deliverySchema": schema,
            "retryPolicy": { "maxAttempts": 5, "eventTimeToLiveInMinutes": "x", "schedule": ["PT1S", "P2D"] },
            "batching": { "maxEventsPerBatch": 5001 },
            "colour": 1,
        })
    };
    let expected = |name: &str| {
        [
            ("batching.maxEventsPerBatch", "expected 1 to 5000, found 5001"),
            (
                "colour",
                "unknown member `colour`, expected one of `name`, `endpoint`, `deliverySchema`, \
                `contentMode`, `filter`, `retryPolicy`, `batching`, `deadLetter`, `recovery`, \
                `whileDisabled`, \
                `deliveryHeaders`, \
                `signing`, `autoDeleteOnIdle`, `expirationTimeUtc`, `status`, `waiting`, `lastOutcome`, \
                `health`, `circuit`",
            ),
            ("deliverySchema", "unknown word, did you mean `CloudEvents`?"),
            ("filters", "unknown member `filters`, did you mean `filter`?"),
            ("retryPolicy.eventTimeToLiveInMinutes", "expected a whole number, found a text"),
            ("retryPolicy.maxAttempts", "unknown member `maxAttempts`, did you mean `maxDeliveryAttempts`?"),
            ("retryPolicy.schedule[1]", "expected PT0S to P1D, found P2D"),
        ]
        .map(|(member, text)| (format!("subscriptions.{name}.{member}"), text.to_owned()))
    };
    let mut found = of_topic(
        &json!({ "subscriptions": { "a": broken("CloudEvent"), "b": broken("cloudevents") } }),
    );
    found.sort();
    assert_eq!(found, [expected("a"), expected("b")].concat());
}

#[test]
fn a_mistake_below_a_mistyped_name_is_named_as_it_was_written() {
    check(
        &json!({ "a": { "enpoint": { "ulr": "https://a.example/", "timeout": "PT2M" } } }),
        &[
            (
                "a.enpoint",
                "unknown member `enpoint`, did you mean `endpoint`?",
            ),
            ("a.enpoint.ulr", "unknown member `ulr`, did you mean `url`?"),
            ("a.enpoint.timeout", "expected PT1S to PT1M, found PT2M"),
        ],
    );
}

#[test]
fn items_keep_their_numbers() {
    let no_duration =
        "expected a duration such as 10s, 5m, 1h30m or 1d, or in ISO 8601 such as PT10S";
    let schedule = json!(["x", "PT1S", "P2D", "y"]);
    check(
        &json!({ "a": { "endpoint": endpoint(), "retryPolicy": { "schedule": schedule } } }),
        &[
            ("a.retryPolicy.schedule[0]", no_duration),
            ("a.retryPolicy.schedule[3]", no_duration),
            (
                "a.retryPolicy.schedule[2]",
                "expected PT0S to P1D, found P2D",
            ),
        ],
    );
}

/// Mistakes that only follow from another mistake are left out.
#[test]
fn consequences_of_a_mistake_are_not_reported() {
    // Without its URL, the endpoint lacks one; without its only step, the schedule is too short.
    let broken = json!({ "a": {
        "endpoint": { "url": 5 }, "retryPolicy": { "schedule": ["P2D"] },
    } });
    check(
        &broken,
        &[("a.endpoint.url", "expected a text, found a number")],
    );
    let broken = json!({ "a": { "endpoint": endpoint(), "retryPolicy": { "schedule": ["P2D"] } } });
    check(
        &broken,
        &[(
            "a.retryPolicy.schedule[0]",
            "expected PT0S to P1D, found P2D",
        )],
    );
    // The value of a mistyped member is none of the likely member's: one mistake is enough.
    let broken = json!({ "a": { "endpoint": endpoint(), "filters": 5 } });
    check(
        &broken,
        &[(
            "a.filters",
            "unknown member `filters`, did you mean `filter`?",
        )],
    );
}

/// Rules that may depend on an unknown word are not judged.
#[test]
fn unknown_word_suspends_rules_that_depend_on_it() {
    let topic = |schema: &str| {
        json!({
            "inputSchema": schema, "inputMapping": {},
            "subscriptions": { "a": { "endpoint": endpoint(), "deliverySchema": "Custom" } },
        })
    };
    let unknown = "unknown word, expected one of `CloudEvents`, `EventGrid`, `Custom`";
    assert_eq!(
        of_topic(&topic("?")),
        [("inputSchema".to_owned(), unknown.to_owned())]
    );
    let likely = "unknown word, did you mean `Custom`?";
    assert_eq!(
        of_topic(&topic("Costum")),
        [("inputSchema".to_owned(), likely.to_owned())]
    );
    assert_eq!(of_topic(&topic("CloudEvents")).len(), 2);
}

#[test]
fn a_likely_name_that_is_there_already_is_still_suggested() {
    let broken = json!({ "a": { "endpoint": endpoint(), "filter": {}, "filters": {} } });
    check(
        &broken,
        &[(
            "a.filters",
            "unknown member `filters`, did you mean `filter`?",
        )],
    );
}

#[test]
fn a_missing_member_is_named_once_beside_other_mistakes() {
    check(
        &json!({ "a": { "colours": 1 }, "b": { "endpoint": endpoint(), "batching": [] } }),
        &[
            (
                "a.colours",
                "unknown member `colours`, expected one of `name`, `endpoint`, `deliverySchema`, \
                `contentMode`, `filter`, `retryPolicy`, `batching`, `deadLetter`, `recovery`, \
                `whileDisabled`, \
                `deliveryHeaders`, \
                `signing`, `autoDeleteOnIdle`, `expirationTimeUtc`, `status`, `waiting`, `lastOutcome`, \
                `health`, `circuit`",
            ),
            ("a", "missing member `endpoint`"),
            ("b.batching", "expected an object, found a list"),
        ],
    );
}

#[test]
fn a_whole_that_is_no_object_is_one_mistake() {
    let found = mistakes(
        &json!([]),
        InputNotation::Json,
        |_: &SubscriptionSettings| Ok(()),
    );
    let text = "expected an object, found a list".to_owned();
    assert_eq!(
        found,
        [InputMistake {
            member: String::new(),
            is_at_name: false,
            text
        }]
    );
}

#[test]
fn yaml_may_leave_quotes_and_empty_objects_out() {
    let file = json!({ "topics": { "orders": null, "parcels": {
        "inputSchema": "Custom", "inputMapping": { "dataVersion": { "defaultValue": 1.5 } },
        "subscriptions": { "a": {
            "endpoint": endpoint(), "retryPolicy": { "maxDeliveryAttempts": "5", "disableOnGone": "yes" },
            "filter": null,
        } },
    } } });
    let of = |notation| mistakes(&file, notation, |_: &ApplyFile| Ok(())).len();
    assert_eq!((of(InputNotation::Yaml), of(InputNotation::Json)), (0, 4));
}

/// Mistakes are named up to the number that a person reads.
#[test]
fn mistakes_are_limited_to_the_maximum() {
    let floors: serde_json::Map<_, _> = (0..500).map(|n| (n.to_string(), json!("x"))).collect();
    let topic = json!({ "subscriptions": { "a": {
        "endpoint": endpoint(), "retryPolicy": { "waitFloors": floors },
    } } });
    assert_eq!(of_topic(&topic).len(), MISTAKES_MAX);
}

#[test]
fn many_values_below_a_long_name_are_one_short_mistake() {
    let name = "k".repeat(500_000);
    let found = of_topic(&json!({ name: vec![0; 260_000] }));
    assert!(
        found.len() == 1 && found[0].0.len() < 100 && found[0].1.len() < 350,
        "{}",
        found.len()
    );
}

/// Value of another kind where a word is expected gets the words named.
#[test]
fn wrong_kind_of_value_names_the_expected_words() {
    let words = "expected one of `CloudEvents`, `EventGrid`, `Custom`";
    for (schema, kind) in [
        (json!(1), "a number"),
        (json!(["CloudEvents"]), "a list"),
        (json!({ "CloudEvents": {} }), "an object"),
    ] {
        let found = of_topic(&json!({ "inputSchema": schema }));
        let text = format!("{words}, found {kind}");
        assert_eq!(found, [("inputSchema".to_owned(), text)]);
    }
}

/// Mistakes do not repeat a value, which may be a secret.
#[test]
fn mistakes_never_repeat_values() {
    for signing in [
        json!({ "secrets": "whsec_hush" }),
        json!("whsec_hush"),
        json!({ "secrets": [{ "whsec_hush": 1 }] }),
        json!({ "secrets": ["hush"] }),
    ] {
        let topic =
            json!({ "subscriptions": { "a": { "endpoint": endpoint(), "signing": signing } } });
        let found = format!("{:?}", of_topic(&topic));
        assert!(
            found.contains("signing") && !found.contains("hush"),
            "{found}"
        );
    }
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Colour {
    Red,
}

/// An answer as an old program knows it.
#[derive(Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Known {
    name: String,
    colour: Option<Colour>,
    colours: Vec<Colour>,
    inner: Option<Box<Inner>>,
    all: Vec<Inner>,
}

#[derive(Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Inner {
    colour: Colour,
    count: u64,
}

/// Response of a newer server is read without the members and words that only it knows.
#[test]
fn newer_response_is_read_without_unknown_members() {
    let check = |answer: Value, expected: Option<Known>| {
        let read = read_answer::<Known>(answer.to_string().as_bytes());
        assert_eq!(read.ok(), expected, "{answer}");
    };
    let inner = |count| Inner {
        colour: Colour::Red,
        count,
    };
    let named = |name: &str| Known {
        name: name.to_owned(),
        ..Known::default()
    };
    check(
        json!({ "name": "a", "taste": { "colour": 5 } }),
        Some(named("a")),
    );
    // Almost the name of another member.
    check(json!({ "name": "a", "names": 5 }), Some(named("a")));
    check(json!({ "name": "a", "colour": "read" }), Some(named("a")));
    check(
        json!({ "name": "a", "inner": { "colour": "green", "count": 5 } }),
        Some(named("a")),
    );
    let known = Known {
        inner: Some(Box::new(inner(5))),
        all: vec![inner(6)],
        ..named("a")
    };
    check(
        json!({
            "name": "a", "all": [{ "colour": "red", "count": 6, "hue": [] }],
            "inner": { "colour": "red", "count": 5, "why": null },
        }),
        Some(known),
    );
    // The items of a list are counted right.
    check(
        json!({ "name": "a", "all": [{ "colour": "green", "count": 5 }] }),
        None,
    );
    check(json!({ "name": "a", "colours": ["green"] }), None);
    // Not of a newer server: broken.
    check(json!({ "name": 5 }), None);
    check(json!({ "name": "a", "inner": { "colour": "red" } }), None);
    check(json!("green"), None);
}
