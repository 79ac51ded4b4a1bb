//! Every key of both documents, by table; their default sets written out in full; what is refused,
//! in its words.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::super::*;
use super::*;

/// The defaults of the two pages, written out in full.
const ENGLISH: &str = include_str!("fixtures/english.json");
const GERMAN: &str = include_str!("fixtures/german.json");

/// Every key of the documents' tables (both pages have the same), the one that their text names,
/// and ours: with a value that is not its default.
const KEYS: [(&str, &str); 48] = [
    ("EnableResourceMonitoring", "false"),
    ("ResourceMonitoringInterval", "\"00:00:01\""),
    ("PercentageDatabaseDiskSpaceUsedHighThreshold", "98"),
    ("PercentageDatabaseDiskSpaceUsedMediumThreshold", "96"),
    ("PercentageDatabaseDiskSpaceUsedNormalThreshold", "90"),
    ("PercentageDatabaseLoggingDiskSpaceUsedHighThreshold", "97"),
    (
        "PercentageDatabaseLoggingDiskSpaceUsedMediumThreshold",
        "95",
    ),
    (
        "PercentageDatabaseLoggingDiskSpaceUsedNormalThreshold",
        "90",
    ),
    ("PercentagePrivateBytesUsedHighThreshold", "80"),
    ("PercentagePrivateBytesUsedMediumThreshold", "72"),
    ("PercentagePrivateBytesUsedNormalThreshold", "70"),
    ("VersionBucketsHighThreshold", "2600"),
    ("VersionBucketsMediumThreshold", "2100"),
    ("VersionBucketsNormalThreshold", "100"),
    ("VersionBucketsHistoryDepth", "11"),
    ("BatchPointHighThreshold", "4001"),
    ("BatchPointMediumThreshold", "2001"),
    ("BatchPointNormalThreshold", "1001"),
    ("BatchPointHistoryDepth", "301"),
    ("BatchPointUseCostForPressure", "false"),
    ("BatchPointBatchSize", "41"),
    ("BatchPointBatchTimeout", "\"00:00:00.200\""),
    ("BatchPointItemExpiryInterval", "\"00:06:00\""),
    ("SMTPBaseThrottlingDelayInterval", "\"00:00:01\""),
    ("SMTPMaxThrottlingDelayInterval", "\"00:01:00\""),
    ("SMTPStepThrottlingDelayInterval", "\"00:00:06\""),
    ("SMTPStartThrottlingDelayInterval", "\"00:00:11\""),
    ("PercentagePhysicalMemoryUsedLimit", "80"),
    ("DehydrateMessagesUnderMemoryPressure", "false"),
    ("PrivateBytesHistoryDepth", "31"),
    ("SubmissionQueueHighThreshold", "10001"),
    ("SubmissionQueueMediumThreshold", "4001"),
    ("SubmissionQueueNormalThreshold", "2001"),
    ("SubmissionQueueHistoryDepth", "301"),
    ("DatabaseCheckPointDepthMax", "\"2 GB\""),
    // Ours.
    ("DatabaseDiskSpaceReserve", "\"5 GB\""),
    ("DatabaseLoggingDiskSpaceReserveMax", "\"100 MB\""),
    ("DeadLetterBacklogHighThreshold", "4001"),
    ("DeadLetterBacklogMediumThreshold", "2001"),
    ("DeadLetterBacklogNormalThreshold", "1001"),
    ("DeadLetterBacklogHistoryDepth", "301"),
    ("DrainTimeHighThreshold", "301"),
    ("DrainTimeMediumThreshold", "61"),
    ("DrainTimeNormalThreshold", "31"),
    ("DrainTimeHistoryDepth", "31"),
    ("PercentageInFlightUsedHighThreshold", "80"),
    ("PercentageInFlightUsedMediumThreshold", "74"),
    ("PercentageInFlightUsedNormalThreshold", "70"),
];

/// The number of keys that are the documents'.
const OF_DOCUMENTS: usize = 35;

/// The documents' only key without a counterpart.
const WITHOUT_COUNTERPART: &str = "BatchPointItemExpiryInterval";

/// Everything that settings come to on a machine with a disk and memory of 100 GiB: the thresholds
/// and the history depth of every row, and the rest.
fn effective(
    settings: &PressureSettings,
) -> (Vec<(LevelThresholds, Option<u32>)>, PressureSettings) {
    let idle = ByteUsage {
        used: 0,
        total: 100 << 30,
    };
    let readings = ResourceReadings {
        database: Some(DatabaseSpace::Disk(idle)),
        log_disk: Some(idle),
        memory: Some(idle),
        ..ResourceReadings::default()
    };
    let rows = rows_of_profile(settings.profile).iter().map(|row| {
        let thresholds = settings.thresholds_of(row, &readings).unwrap().unwrap();
        (thresholds, settings.history_depth_of(row))
    });
    let rest = PressureSettings {
        thresholds: BTreeMap::default(),
        history_depths: BTreeMap::default(),
        ..settings.clone()
    };
    (rows.collect(), rest)
}

fn of_profile(profile: PressureProfile) -> PressureSettings {
    PressureSettings {
        profile,
        ..PressureSettings::default()
    }
}

fn apply(settings: PressureSettings, text: &str) -> Result<PressureSettings, ExchangeError> {
    serde_json::from_str::<ExchangeSettings>(text)
        .unwrap()
        .apply_to(settings)
}

fn set(profile: PressureProfile, text: &str) -> PressureSettings {
    apply(of_profile(profile), text).unwrap()
}

/// Checks that these settings break a rule with these words, which begin with the key at fault.
fn check(text: &str, key: &str, expected: &str) {
    let error = apply(PressureSettings::default(), text).unwrap_err();
    assert_eq!(
        (error.key(), error.to_string()),
        (Some(key), format!("{key} {expected}")),
        "{text}"
    );
}

/// Checks that a value is not even read, with these words.
fn check_value(key: &str, value: &Json, expected: &str) {
    let read = serde_path_to_error::deserialize::<_, ExchangeSettings>(json!({ key: value }));
    let error = read.unwrap_err();
    let found = (error.path().to_string(), error.inner().to_string());
    assert_eq!(found, (key.to_owned(), expected.to_owned()));
}

/// Every key is read and changes something, but for the one without a counterpart.
#[test]
fn keys_with_a_counterpart_change_something() {
    let unchanged = effective(&PressureSettings::default());
    for (key, value) in KEYS {
        if key == WITHOUT_COUNTERPART {
            continue;
        }
        let settings = set(PressureProfile::Scaled, &format!("{{\"{key}\": {value}}}"));
        assert_ne!(effective(&settings), unchanged, "{key}");
    }
}

#[test]
fn key_without_a_counterpart_takes_only_the_documents_value() {
    let expected = "expected 00:05:00, as the documents have it, because nothing here corresponds to it: \
                    a batch ends with its commit, so that no message is ever left in it to expire";
    for value in ["\"00:05:00\"", "\"PT5M\""] {
        let settings = set(
            PressureProfile::Scaled,
            &format!("{{\"{WITHOUT_COUNTERPART}\": {value}}}"),
        );
        assert_eq!(settings, PressureSettings::default(), "{value}");
    }
    for (value, said) in [("00:06:00", "360s"), ("00:00:00", "0ns")] {
        let text = json!({ WITHOUT_COUNTERPART: value }).to_string();
        let expected = format!("is {said}; {expected}");
        check(&text, WITHOUT_COUNTERPART, &expected);
    }
}

/// The list of keys is the one that is read, and rules name no other.
#[test]
fn the_list_of_keys_is_the_one_that_is_read() {
    let tested: BTreeSet<_> = KEYS.iter().map(|(key, _)| *key).collect();
    let unknown = serde_json::from_str::<ExchangeSettings>(r#"{"?": 0}"#).unwrap_err();
    let unknown = unknown.to_string();
    let (_, known) = unknown.split_once("expected one of ").unwrap();
    let known: BTreeSet<_> = known.split('`').skip(1).step_by(2).collect();
    assert_eq!((tested.len(), &tested), (KEYS.len(), &known));
    let of_resources = Resource::ALL.map(Resource::setting_keys);
    for keys in of_resources.into_iter().chain([keys::IN_FLIGHT]) {
        let thresholds = [keys.normal, keys.medium, keys.high].map(Some);
        for key in thresholds.into_iter().chain([keys.history_depth]).flatten() {
            assert!(known.contains(key), "{key}");
        }
    }
    for key in [
        keys::ENABLED,
        keys::INTERVAL,
        keys::TARPIT_BASE,
        keys::TARPIT_START,
        keys::TARPIT_STEP,
        keys::TARPIT_MAX,
        keys::CHECKPOINT_DEPTH,
        keys::DATABASE_RESERVE,
        keys::LOG_RESERVE_MAX,
        keys::BATCH_SIZE,
        keys::BATCH_TIMEOUT,
    ] {
        assert!(known.contains(key), "{key}");
    }
}

#[test]
fn the_pages_default_sets_are_their_profiles_defaults() {
    for (page, profile) in [
        (ENGLISH, PressureProfile::Exchange2013),
        (GERMAN, PressureProfile::Exchange2013German),
    ] {
        let keys: serde_json::Map<String, Json> = serde_json::from_str(page).unwrap();
        let of_document: Vec<_> = KEYS[..OF_DOCUMENTS]
            .iter()
            .map(|(key, _)| (*key).to_owned())
            .collect();
        assert_eq!(
            keys.keys().cloned().collect::<BTreeSet<_>>(),
            of_document.into_iter().collect()
        );
        assert_eq!(
            effective(&set(profile, page)),
            effective(&of_profile(profile)),
            "{profile:?}"
        );
        // Written out in full, a page makes its profile of any other, but for which rows act.
        let other = effective(&set(PressureProfile::Scaled, page));
        assert_eq!(other.0, effective(&of_profile(profile)).0, "{profile:?}");
    }
}

#[test]
fn memory_limit_is_its_high_threshold_and_the_others_follow() {
    let settings = set(
        PressureProfile::Scaled,
        r#"{"PercentagePhysicalMemoryUsedLimit": 80}"#,
    );
    assert_eq!(
        effective(&settings).0[6].0,
        LevelThresholds::new(76, 78, 80)
    );
    let key = "PercentagePhysicalMemoryUsedLimit";
    for limit in [0, 4, 101] {
        let text = json!({ key: limit }).to_string();
        check(&text, key, &format!("is {limit}; expected 5 to 100"));
    }
}

/// A threshold of zero leaves a formula to itself and is refused where there is none.
#[test]
fn zero_threshold_means_the_formula_and_is_refused_without_one() {
    let zero = r#"{"PercentageDatabaseDiskSpaceUsedHighThreshold": 0}"#;
    assert_eq!(
        effective(&set(PressureProfile::Scaled, zero)),
        effective(&PressureSettings::default())
    );
    let zero = r#"{"PercentageInFlightUsedHighThreshold": 0}"#;
    assert_eq!(
        set(PressureProfile::Scaled, zero),
        PressureSettings::default()
    );
    check(
        r#"{"DrainTimeNormalThreshold": 0}"#,
        "DrainTimeNormalThreshold",
        "is 0; expected at least 1",
    );
}

#[test]
fn single_threshold_is_held_against_the_profiles_others() {
    check(
        r#"{"SubmissionQueueMediumThreshold": 1000}"#,
        "SubmissionQueueMediumThreshold",
        "is 1000; expected at least SubmissionQueueNormalThreshold, 2000",
    );
    let german = set(
        PressureProfile::Exchange2013German,
        r#"{"VersionBucketsHighThreshold": 300}"#,
    );
    assert_eq!(
        effective(&german).0[1].0,
        LevelThresholds::new(80, 120, 300)
    );
    check(
        r#"{"VersionBucketsHighThreshold": 300}"#,
        "VersionBucketsHighThreshold",
        "is 300; expected at least VersionBucketsMediumThreshold, 2000",
    );
}

#[test]
fn an_error_names_the_key_and_what_was_expected() {
    let length = "expected a duration such as 00:00:02, 00:00:00.100 or PT2S";
    check_value("ResourceMonitoringInterval", &json!("2"), length);
    let size = "expected a number of bytes or a size such as 384 MB";
    for value in [json!(["384 MB"]), json!("384"), json!(-1)] {
        check_value("DatabaseCheckPointDepthMax", &value, size);
    }
    check(
        r#"{"SMTPStartThrottlingDelayInterval": "PT1M"}"#,
        "SMTPMaxThrottlingDelayInterval",
        "is 55s; expected at least SMTPStartThrottlingDelayInterval, 60s",
    );
}

#[test]
fn the_order_of_keys_is_of_no_account() {
    let text =
        r#"{"SMTPStartThrottlingDelayInterval": "PT1M", "SMTPMaxThrottlingDelayInterval": "PT2M"}"#;
    assert_eq!(
        set(PressureProfile::Scaled, text).tarpit.start,
        Duration::from_mins(1)
    );
    assert_eq!(
        effective(&set(PressureProfile::Scaled, "null")),
        effective(&PressureSettings::default())
    );
}

#[test]
fn a_profile_that_is_off_is_not_switched_on_by_a_file() {
    let off = PressureSettings {
        enable_resource_monitoring: false,
        ..PressureSettings::default()
    };
    let refused = apply(off.clone(), r#"{"EnableResourceMonitoring": true}"#).unwrap_err();
    assert_eq!(
        (&refused, refused.key()),
        (
            &ExchangeError::SwitchedOff,
            Some("EnableResourceMonitoring")
        )
    );
    assert_eq!(
        refused.to_string(),
        "EnableResourceMonitoring is true, but the pressure profile is off; expected one of the two alone"
    );
    for text in [r#"{"EnableResourceMonitoring": false}"#, "{}"] {
        assert_eq!(apply(off.clone(), text).as_ref(), Ok(&off), "{text}");
    }
}

#[test]
fn the_reference_lists_every_key() {
    let text = include_str!("../../../../../docs/src/reference/pressure-settings.md");
    for (key, _) in KEYS {
        assert!(text.contains(&format!("`{key}`")), "{key}");
    }
}
