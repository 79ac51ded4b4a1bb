//! One rule for all documents, tried on every member of the files that operators write, as JSON and
//! as YAML (which JSON is).

use posthaste_core::api::{ApplyFile, JsonFault, LinkSettings, apply_file_schema, read_json};
use posthaste_core::pressure::ExchangeSettings;
use posthaste_testkit::documents::{DocumentFault, SampleDocument, SpoiledDocument};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::read_checked;

/// The members at fault of a text, with what is said of them.
type FoundFaults = Vec<(String, String)>;

fn of_yaml<T: DeserializeOwned>(text: &str) -> FoundFaults {
    let found = read_checked::<T>(text.as_bytes(), &|_| Ok(()));
    let found = found.err().unwrap_or_default().into_iter();
    found.map(|one| (one.member, one.text)).collect()
}

fn of_json<T: DeserializeOwned>(text: &str) -> FoundFaults {
    match read_json::<T>(text.as_bytes(), |_| Ok(())) {
        Ok(_) => Vec::new(),
        Err(JsonFault::Syntax { member, text }) => vec![(member, text)],
        Err(JsonFault::Mistakes(found)) => found
            .into_iter()
            .map(|one| (one.member, one.text))
            .collect(),
    }
}

fn is_named(found: &FoundFaults, spoiled: &SpoiledDocument) -> bool {
    let SpoiledDocument { member, fault, .. } = spoiled;
    found.iter().any(|(named, said)| {
        let is_said = match fault {
            DocumentFault::ListForObject => said.ends_with(", found a list"),
            DocumentFault::OtherKind => {
                said.ends_with(", found an object") || said.ends_with(", found a number")
            }
            DocumentFault::Twice => said == "is there twice, remove or rename one",
            DocumentFault::NullForRequired => {
                said.ends_with(", found nothing") || said.starts_with("missing member ")
            }
        };
        named == member && is_said
    })
}

/// Tries each fault, and each optional member as null, and returns the number of tries.
fn check_document<T: DeserializeOwned>(document: &SampleDocument) -> usize {
    let whole = [
        of_json::<T>(&document.text()),
        of_yaml::<T>(&document.text()),
    ];
    let mut tried = 0;
    for spoiled in document.spoiled() {
        let found = of_json::<T>(&spoiled.text);
        assert!(is_named(&found, &spoiled), "JSON: {spoiled:?}: {found:?}");
        // In YAML, no value in the place of an object is an empty object.
        if spoiled.fault != DocumentFault::NullForRequired {
            let found = of_yaml::<T>(&spoiled.text);
            assert!(is_named(&found, &spoiled), "YAML: {spoiled:?}: {found:?}");
        }
        tried += 1;
    }
    for (member, texts) in document.optional() {
        let [null, left_out] = texts;
        assert_eq!(
            of_json::<T>(&null),
            of_json::<T>(&left_out),
            "JSON: {member}"
        );
        assert_eq!(
            of_yaml::<T>(&null),
            of_yaml::<T>(&left_out),
            "YAML: {member}"
        );
        let has_new_fault = of_json::<T>(&null)
            .iter()
            .any(|fault| !whole[0].contains(fault));
        assert!(!has_new_fault, "JSON: {member}: null");
        tried += 1;
    }
    tried
}

#[test]
fn every_member_of_a_file_of_topics_follows_the_rule() {
    let schema = apply_file_schema();
    let tried = check_document::<ApplyFile>(&SampleDocument::of_schema(&schema, &schema));
    assert!(tried > 250, "{tried}");
}

#[test]
fn every_member_of_the_link_settings_follows_the_rule() {
    let lengths = [
        "glitchHold",
        "firstHold",
        "laterHold",
        "probeLease",
        "rampStep",
        "stateChangeDelay",
    ];
    let mut example = json!({
        "failuresInARow": 10, "failuresOfInvocation": 3, "refusalsInRow": 10, "glitches": 3,
        "firstHolds": 3, "suppressStateChanges": false, "problemFailures": 2,
    });
    for name in lengths {
        example[name] = "PT1M".into();
    }
    let tried = check_document::<LinkSettings>(&SampleDocument::of_example(&example, &[]));
    assert_eq!(tried, 2 + 3 * 13);
}

#[test]
fn key_of_back_pressure_is_there_once_and_may_be_null() {
    let twice = r#"{"BatchPointBatchSize": 40, "BatchPoint\u0042atchSize": 40}"#;
    let expected = [(
        "BatchPointBatchSize".to_owned(),
        "is there twice, remove or rename one".to_owned(),
    )];
    assert_eq!(of_json::<ExchangeSettings>(twice), expected);
    assert_eq!(of_yaml::<ExchangeSettings>(twice), expected);
    let of_list = "expected an object, found a list".to_owned();
    assert_eq!(
        of_json::<ExchangeSettings>("[]"),
        [(String::new(), of_list)]
    );
}

#[test]
fn mistakes_in_keys_of_back_pressure_are_named_at_once() {
    let check = |key: &str, value: &str, expected: &str| {
        let text = format!("{{\"BatchPointBatchSize\": -1, \"{key}\": {value}}}");
        let found = [
            (
                "BatchPointBatchSize",
                "expected a whole number from 0 to 4294967295",
            ),
            (key, expected),
        ];
        let found = found.map(|(key, text)| (key.to_owned(), text.to_owned()));
        assert_eq!(of_json::<ExchangeSettings>(&text), found);
        assert_eq!(of_yaml::<ExchangeSettings>(&text), found);
    };
    for (key, likely) in [
        ("enableResourceMonitoring", "EnableResourceMonitoring"),
        ("SubmissionQueueHigh", "SubmissionQueueHighThreshold"),
    ] {
        let expected = format!("unknown member `{key}`, did you mean `{likely}`?");
        check(key, "true", &expected);
    }
    let high = "SubmissionQueueHighThreshold";
    check(high, "\"many\"", "expected a whole number, found a text");
    check(high, "-1", "expected a whole number that is not negative");
    check(high, "1.5", "expected a whole number, found a number");
    check(
        "EnableResourceMonitoring",
        "1",
        "expected a boolean, found a number",
    );
    check(
        "ResourceMonitoringInterval",
        "[]",
        "expected a text, found a list",
    );
    check(
        "DatabaseDiskSpaceReserve",
        "-1",
        "expected a number of bytes or a size such as 384 MB",
    );
}
