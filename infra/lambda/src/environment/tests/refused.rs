//! Values that are refused, and the text of the refusals.

use super::*;

/// A required variable is asked for by its name, whether it is absent or empty.
#[test]
fn missing_or_empty_required_variables_are_named() {
    fn check<E: FunctionEnvironment>(name: &str, expected: &str) {
        let all: BTreeMap<_, _> = REQUIRED
            .iter()
            .filter(|(other, _)| *other != name)
            .copied()
            .collect();
        let Err(absent) = E::read(&|name| all.get(name).map(|value| (*value).to_owned())) else {
            panic!("{name} is not needed")
        };
        assert_eq!(absent.to_string(), expected);
        assert_eq!(refused::<E>(name, ""), expected);
    }
    check::<WakeEnvironment>(
        "STATE_BUCKET",
        "STATE_BUCKET is not set, expected the name of a bucket",
    );
    let deliveries = "DELIVERIES_QUEUE_URL is not set, expected the URL of a queue";
    check::<PublishEnvironment>("DELIVERIES_QUEUE_URL", deliveries);
    check::<DeliverEnvironment>("DELIVERIES_QUEUE_URL", deliveries);
    check::<WakeEnvironment>("DELIVERIES_QUEUE_URL", deliveries);
    check::<DeadLetterEnvironment>("DELIVERIES_QUEUE_URL", deliveries);
    check::<MonitorEnvironment>("DELIVERIES_QUEUE_URL", deliveries);
    check::<ManageEnvironment>("DELIVERIES_QUEUE_URL", deliveries);
    let dead_letters = "DEADLETTERS_QUEUE_URL is not set, expected the URL of a queue";
    check::<DeliverEnvironment>("DEADLETTERS_QUEUE_URL", dead_letters);
    check::<DeadLetterEnvironment>("DEADLETTERS_QUEUE_URL", dead_letters);
    check::<MonitorEnvironment>("DEADLETTERS_QUEUE_URL", dead_letters);
    let redrive = "REDRIVE_QUEUE_URL is not set, expected the URL of a queue";
    check::<DeadLetterEnvironment>("REDRIVE_QUEUE_URL", redrive);
    let records = "RECORDS_QUEUE_URL is not set, expected the URL of a queue";
    check::<DeliverEnvironment>("RECORDS_QUEUE_URL", records);
    check::<DeadLetterEnvironment>("RECORDS_QUEUE_URL", records);
    check::<RecordEnvironment>("RECORDS_QUEUE_URL", records);
    let log_bucket = "LOG_BUCKET is not set, expected the name of a bucket";
    check::<ManageEnvironment>("LOG_BUCKET", log_bucket);
    check::<RecordEnvironment>("LOG_BUCKET", log_bucket);
    let bucket = "DEAD_LETTER_BUCKET is not set, expected the name of a bucket";
    check::<DeadLetterEnvironment>("DEAD_LETTER_BUCKET", bucket);
    check::<ManageEnvironment>("DEAD_LETTER_BUCKET", bucket);
    check::<WakeEnvironment>("DEAD_LETTER_BUCKET", bucket);
    let key = "ADMIN_KEY_SHA256 is not set, expected the SHA-256 digest of the admin key, as 64 hexadecimal digits";
    check::<ManageEnvironment>("ADMIN_KEY_SHA256", key);
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    fn check<E: FunctionEnvironment + std::fmt::Debug>(empty: &[(&str, &str)]) {
        let empty = read_all::<E>(empty).unwrap();
        let absent = read_all::<E>(&[]).unwrap();
        assert_eq!(format!("{empty:?}"), format!("{absent:?}"));
    }
    let optional = table().into_iter().filter(|(.., is_optional)| *is_optional);
    let optional: Vec<_> = optional.map(|(name, ..)| (name, "")).collect();
    assert!(optional.len() > 10, "{optional:?}");
    check::<PublishEnvironment>(&optional);
    check::<DeliverEnvironment>(&optional);
    check::<WakeEnvironment>(&optional);
    check::<DeadLetterEnvironment>(&optional);
    check::<MonitorEnvironment>(&optional);
    check::<ManageEnvironment>(&optional);
    check::<RecordEnvironment>(&optional);
}

type Publish = PublishEnvironment;
type Deliver = DeliverEnvironment;
type Monitor = MonitorEnvironment;

fn check_refused<E: FunctionEnvironment>(name: &str, values: &[&str], expected: &str) {
    for value in values {
        assert_eq!(
            refused::<E>(name, value),
            format!("{name} is {value:?}, expected {expected}")
        );
    }
}

#[test]
fn a_bucket_or_queue_that_means_nothing_is_refused() {
    let buckets = [
        "ab",
        "Upper",
        "with space",
        "s3://bucket",
        "arn:aws:s3:::bucket",
        "\u{fffd}xx",
    ];
    check_refused::<Publish>("STATE_BUCKET", &buckets, "the name of a bucket");
    check_refused::<DeadLetterEnvironment>("DEAD_LETTER_BUCKET", &buckets, "the name of a bucket");
    check_refused::<ManageEnvironment>("LOG_BUCKET", &buckets, "the name of a bucket");
    let queues = [
        "deliveries",
        "arn:aws:sqs:x:1:deliveries",
        "https://sqs.example.com/",
        "ftp://a/b",
    ];
    check_refused::<Publish>("DELIVERIES_QUEUE_URL", &queues, "the URL of a queue");
    check_refused::<Deliver>("DEADLETTERS_QUEUE_URL", &queues, "the URL of a queue");
    check_refused::<DeadLetterEnvironment>("REDRIVE_QUEUE_URL", &queues, "the URL of a queue");
    check_refused::<Deliver>("RECORDS_QUEUE_URL", &queues, "the URL of a queue");
}

#[test]
fn a_number_or_word_that_means_nothing_is_refused() {
    check_refused::<Publish>(
        "REGISTRY_MAX_AGE_SECONDS",
        &["-1", "301", "five", "1.5", " 5", "99999"],
        "a whole number from 0 to 300",
    );
    check_refused::<Publish>("TARPIT", &["Advise", "off", "delay "], "advise or delay");
    check_refused::<Deliver>(
        "REQUESTS_MAX",
        &["0", "401"],
        "a whole number from 1 to 400",
    );
    check_refused::<Deliver>(
        "REQUESTS_PER_LINK_START",
        &["0", "401"],
        "a whole number from 1 to 400",
    );
    check_refused::<Deliver>(
        "WAITING_PER_CONNECTION",
        &["0", "1001"],
        "a whole number from 1 to 1000",
    );
    check_refused::<Deliver>(
        "REQUESTS_PER_LINK_MAX",
        &["0", "401"],
        "a whole number from 1 to 400",
    );
    let modes = "off, attempts or payloads";
    check_refused::<Deliver>("DELIVERY_LOG", &["Off", "all", "false", "payloads "], modes);
    let days = ["0", "3651", "P7D"];
    check_refused::<ManageEnvironment>(
        "DELIVERY_LOG_RETENTION_DAYS",
        &days,
        "a whole number from 1 to 3650",
    );
}

#[test]
fn an_address_or_name_that_means_nothing_is_refused() {
    let networks = "networks as in 10.0.0.0/8,fd00::/8, or addresses, separated by commas";
    check_refused::<Deliver>(
        "ALLOW_ENDPOINTS",
        &["127.0.0", "10.0.0.0/33", "10.0.0.0/8,", "all"],
        networks,
    );
    check_refused::<ManageEnvironment>("ALLOW_ENDPOINTS", &["localhost"], networks);
    let server = "an address and port such as 10.0.0.2:53";
    check_refused::<Deliver>(
        "DNS_SERVER",
        &["10.0.0.2", "ns.example.com:53", "10.0.0.2:0"],
        server,
    );
    check_refused::<ManageEnvironment>("DNS_SERVER", &["53"], server);
    let profiles = "scaled, exchange-2013, exchange-2013-german or off";
    check_refused::<Monitor>(
        "PRESSURE_PROFILE",
        &["Scaled", "exchange-2016", "on"],
        profiles,
    );
    check_refused::<Monitor>(
        "PRESSURE_INTERVAL_SECONDS",
        &["0", "61", "10s"],
        "a whole number from 1 to 60",
    );
    let names = ["two words", "-ops", "malformed", &"x".repeat(65)];
    check_refused::<Monitor>("NOTICES_TOPIC", &names, "the name of a topic");
    check_refused::<WakeEnvironment>("NOTICES_TOPIC", &names, "the name of a topic");
    let url = "a URL that begins with https:// or http://";
    check_refused::<ManageEnvironment>("PUBLISH_URL", &["example.com", "ftp://example.com"], url);
    check_refused::<ManageEnvironment>("MANAGE_URL", &["example.com", "ftp://example.com"], url);
    let origin = "a host name such as hooks.example.com";
    check_refused::<Deliver>(
        "WEBHOOK_ORIGIN",
        &["two words", "a\r\nb: c", "münchen.example"],
        origin,
    );
    check_refused::<ManageEnvironment>("WEBHOOK_ORIGIN", &["two words"], origin);
    let levels = "off, error, warn, info, debug or trace";
    check_refused::<Publish>("LOG_LEVEL", &["INFO", "3", "posthaste=debug"], levels);
    let namespaces = "1 to 255 letters, digits and .-_/#: as CloudWatch has them";
    check_refused::<Publish>(
        "METRICS_NAMESPACE",
        &["a b", "ä", &"x".repeat(256)],
        namespaces,
    );
    check_refused::<Publish>(
        "METRICS_BY",
        &["Stack", "none"],
        "stack, topic or subscription",
    );
}

#[test]
fn a_secret_that_is_refused_is_not_shown() {
    // The last one is the digest of nothing: what a shell makes of a key that is not set.
    let of_nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    for digest in [
        KEY,
        &KEY_SHA256[1..],
        &KEY_SHA256.replace('f', "g"),
        of_nothing,
    ] {
        let expected = "ADMIN_KEY_SHA256 is not usable, expected the SHA-256 digest of the admin key, as 64 \
                        hexadecimal digits";
        assert_eq!(
            refused::<ManageEnvironment>("ADMIN_KEY_SHA256", digest),
            expected
        );
    }
}

#[test]
fn secrets_are_hidden_in_debug_output() {
    let manage: ManageEnvironment = read(&[]).unwrap();
    let shown = format!("{manage:?}");
    assert!(!shown.contains(KEY) && !shown.contains(KEY_SHA256));
}

#[test]
fn all_that_is_wrong_is_told_at_once() {
    let wrong = [
        ("STATE_BUCKET", ""),
        ("DELIVERIES_QUEUE_URL", "deliveries"),
        ("TARPIT", "no"),
    ];
    let error = read::<PublishEnvironment>(&wrong).unwrap_err().to_string();
    assert_eq!(
        error,
        "STATE_BUCKET is not set, expected the name of a bucket; \
         DELIVERIES_QUEUE_URL is \"deliveries\", expected the URL of a queue; \
         TARPIT is \"no\", expected advise or delay"
    );
}
