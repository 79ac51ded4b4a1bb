//! Every variable: the functions that read it, its default, what is accepted and what is refused.

mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use posthaste_aws::telemetry::{MetricsBy, TelemetrySettings};
use posthaste_core::circuit::HealthSettings;
use posthaste_core::model::DeliveryLogMode;
use posthaste_core::pressure::{PressureProfile, PressureSettings, Resource};
use posthaste_deliver::DeliverSettings;
use posthaste_publish::TarpitMode;
use tracing::level_filters::LevelFilter;

use posthaste_settings::table::{self, SettingVisitor};
use posthaste_settings::{Function, Setting, WhenAbsent};

use super::*;

const DELIVERIES: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/deliveries";
const DEAD_LETTERS: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/deadletters";
const RECORDS: &str = "https://sqs.eu-central-1.amazonaws.com/123456789012/records";
const REDRIVE: &str = "http://127.0.0.1:4566/000000000000/redrive";
const KEY: &str = "0123456789abcdef";
const KEY_SHA256: &str = "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f";

/// The required variables of all functions.
const REQUIRED: [(&str, &str); 8] = [
    ("STATE_BUCKET", "state"),
    ("DEAD_LETTER_BUCKET", "dead-letters"),
    ("LOG_BUCKET", "log"),
    ("DELIVERIES_QUEUE_URL", DELIVERIES),
    ("DEADLETTERS_QUEUE_URL", DEAD_LETTERS),
    ("REDRIVE_QUEUE_URL", REDRIVE),
    ("RECORDS_QUEUE_URL", RECORDS),
    ("ADMIN_KEY_SHA256", KEY_SHA256),
];

/// Reads the required variables, with these changes.
fn read_all<E: FunctionEnvironment>(
    changes: &[(&str, &str)],
) -> Result<(CommonEnvironment, E), EnvironmentError> {
    let all: BTreeMap<_, _> = REQUIRED.iter().chain(changes).copied().collect();
    E::read(&|name| all.get(name).map(|value| (*value).to_owned()))
}

/// Reads the function's own part of the environment.
fn read<E: FunctionEnvironment>(changes: &[(&str, &str)]) -> Result<E, EnvironmentError> {
    read_all(changes).map(|(_, own)| own)
}

/// The settings of telemetry, which are the same for all functions.
fn telemetry(changes: &[(&str, &str)]) -> TelemetrySettings {
    read_all::<WakeEnvironment>(changes).unwrap().0.telemetry
}

/// The bounds of open requests: in all; to one link at first, per waiting request, and at most.
fn bounds(settings: &DeliverSettings) -> [usize; 4] {
    [
        settings.requests_max,
        settings.requests_per_link_start,
        settings.waiting_per_connection,
        settings.requests_per_link_max,
    ]
}

fn refused<E: FunctionEnvironment>(name: &str, value: &str) -> String {
    match read::<E>(&[(name, value)]) {
        Ok(_) => panic!("{name}={value} was accepted"),
        Err(error) => error.to_string(),
    }
}

/// The variables of the table: each with its readers, and whether it may be left out.
#[derive(Default)]
struct Table(Vec<(&'static str, &'static [Function], bool)>);

impl SettingVisitor for Table {
    fn visit<T>(&mut self, setting: &'static Setting<T>) {
        let variable = setting.variable.as_ref();
        self.0
            .extend(variable.map(|it| (it.name, it.readers, it.when_absent != WhenAbsent::Refuse)));
    }
}

fn table() -> Vec<(&'static str, &'static [Function], bool)> {
    let mut table = Table::default();
    table::visit(&mut table);
    table.0
}

/// Each function reads the variables that the table gives it, and no others.
#[test]
fn functions_read_exactly_the_variables_of_their_table_rows() {
    fn check<E: FunctionEnvironment>(function: Function) {
        let table = table();
        let own = table
            .iter()
            .filter(|(_, readers, _)| readers.contains(&function));
        let own: BTreeSet<_> = own.map(|(name, ..)| (*name).to_owned()).collect();
        assert_eq!(E::variable_names(), own, "{function}");
    }
    check::<PublishEnvironment>(Function::Publish);
    check::<DeliverEnvironment>(Function::Deliver);
    check::<WakeEnvironment>(Function::Wake);
    check::<DeadLetterEnvironment>(Function::Deadletter);
    check::<MonitorEnvironment>(Function::Monitor);
    check::<ManageEnvironment>(Function::Manage);
    check::<RecordEnvironment>(Function::Record);
}

/// SQS tells slow subscriptions from quick ones only while each message has an invocation of its
/// own, and asks more for messages with a group.
#[test]
fn messages_have_a_group_in_batches_of_one_alone() {
    for (size, expected) in [("1", true), ("2", false), ("10", false), ("10000", false)] {
        let read = read_all::<PublishEnvironment>(&[("DELIVER_BATCH_SIZE", size)]);
        assert_eq!(read.unwrap().0.sends_message_groups, expected, "{size}");
    }
}

/// An update gives a function its new program first, and its new settings a moment later.
#[test]
fn publish_starts_with_the_settings_of_0_1_0() {
    let settings: BTreeMap<_, _> = REQUIRED.iter().copied().collect();
    let read = PublishEnvironment::read(&|name| {
        let value = settings.get(name).filter(|_| name != "RECORDS_QUEUE_URL");
        value.map(|value| (*value).to_owned())
    });
    let (_, publish) = read.unwrap();
    assert_eq!(publish.records_queue_url, None);
}

#[test]
fn collector_is_that_of_the_environment() {
    let given = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4318"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=secret"),
        ("OTEL_RESOURCE_ATTRIBUTES", "region=here"),
        ("OTEL_TRACES_SAMPLER_ARG", "0.5"),
        ("TRACE_ENDPOINTS", "on"),
    ];
    let (common, _) = read_all::<DeliverEnvironment>(&given).unwrap();
    let export = common.export.unwrap();
    assert_eq!(export.collector.endpoint.as_str(), "http://127.0.0.1:4318/");
    assert_eq!(export.collector.headers["x-key"], "secret");
    assert_eq!(export.collector.resource.len(), 1);
    assert_eq!(export.ratio, "0.5".parse().unwrap());
    assert!(export.tells_endpoints);
    let refused = read_all::<DeliverEnvironment>(&[("OTEL_TRACES_SAMPLER_ARG", "2")]);
    let refused = refused.unwrap_err().to_string();
    assert!(refused.contains("OTEL_TRACES_SAMPLER_ARG"), "{refused}");
}

#[test]
fn required_variables_suffice_and_the_rest_have_defaults() {
    let (common, publish): (_, PublishEnvironment) = read_all(&[]).unwrap();
    assert_eq!(publish.deliveries_queue_url, DELIVERIES);
    assert_eq!(publish.records_queue_url.as_deref(), Some(RECORDS));
    assert_eq!(publish.registry_max_age, Duration::from_secs(5));
    assert_eq!(publish.settings.tarpit, TarpitMode::Advise);
    assert!(publish.settings.stores_for_log);
    let CommonEnvironment {
        state_bucket,
        sends_message_groups,
        telemetry,
        export,
    } = common;
    assert!(export.is_none());
    assert_eq!(state_bucket, "state");
    assert!(!sends_message_groups);
    assert_eq!(telemetry.log_level, LevelFilter::INFO);
    assert_eq!(telemetry.metrics_namespace, "posthaste");
    assert_eq!(telemetry.metrics_by, MetricsBy::Stack);

    let deliver: DeliverEnvironment = read(&[]).unwrap();
    assert_eq!(deliver.deliveries_queue_url, DELIVERIES);
    assert_eq!(deliver.dead_letters_queue_url, DEAD_LETTERS);
    assert_eq!(deliver.records_queue_url, RECORDS);
    assert_eq!(bounds(&deliver.settings), [256, 10, 20, 64]);
    assert_eq!(deliver.settings.origin, "posthaste");
    assert_eq!(deliver.settings.delivery_log, DeliveryLogMode::Payloads);
    assert_eq!(
        (deliver.client.addresses.allowed, deliver.client.dns_server),
        (vec![], None)
    );

    let dead_letter: DeadLetterEnvironment = read(&[]).unwrap();
    assert_eq!(dead_letter.dead_letter_bucket, "dead-letters");
    assert_eq!(dead_letter.deliveries_queue_url, DELIVERIES);
    assert_eq!(dead_letter.dead_letters_queue_url, DEAD_LETTERS);
    assert_eq!(dead_letter.redrive_queue_url, REDRIVE);
    assert_eq!(dead_letter.records_queue_url, RECORDS);
    assert_eq!(dead_letter.registry_max_age, Duration::from_secs(5));

    let wake: WakeEnvironment = read(&[]).unwrap();
    assert_eq!(wake.deliveries_queue_url, DELIVERIES);

    let manage: ManageEnvironment = read(&[]).unwrap();
    assert_eq!(manage.dead_letter_bucket, "dead-letters");
    assert_eq!(manage.log_bucket, "log");
    assert_eq!(
        manage.settings.log.retention,
        Some(Duration::from_hours(7 * 24))
    );

    let record: RecordEnvironment = read(&[]).unwrap();
    assert_eq!(
        (
            record.log_bucket.as_str(),
            record.records_queue_url.as_str()
        ),
        ("log", RECORDS)
    );
    let queues = [
        record.deliveries_queue_url,
        record.dead_letters_queue_url,
        record.redrive_queue_url,
    ];
    let queues = queues.each_ref().map(Option::as_deref);
    assert_eq!(queues, [DELIVERIES, DEAD_LETTERS, REDRIVE].map(Some));
    assert!(manage.admin_key.matches_key(KEY));
    assert_eq!(
        (manage.settings.publish_url, manage.settings.public_url),
        (None, None)
    );
    assert_eq!(manage.settings.origin, "posthaste");
    assert_eq!(
        (manage.client.addresses.allowed, manage.client.dns_server),
        (vec![], None)
    );
}

#[test]
fn pressure_is_sampled_every_ten_seconds_and_stale_after_150() {
    let monitor: MonitorEnvironment = read(&[]).unwrap();
    assert_eq!(monitor.deliveries_queue_url, DELIVERIES);
    assert_eq!(monitor.dead_letters_queue_url, DEAD_LETTERS);
    assert!(monitor.settings.pressure.enable_resource_monitoring);
    assert_eq!(monitor.settings.pressure.profile, PressureProfile::Scaled);
    assert_eq!(monitor.settings.pressure.interval, Duration::from_secs(10));
    assert_eq!(
        monitor.settings.pressure.stale_after,
        Some(Duration::from_secs(150))
    );
    assert_eq!(monitor.settings.notices_topic, None);
    let told: MonitorEnvironment = read(&[("NOTICES_TOPIC", "ops")]).unwrap();
    assert_eq!(told.settings.notices_topic.unwrap().as_str(), "ops");
}

/// Every interval that the variable accepts keeps the rules of back pressure.
#[test]
fn accepted_intervals_satisfy_the_back_pressure_rules() {
    for seconds in 1..=60 {
        let monitor: MonitorEnvironment =
            read(&[("PRESSURE_INTERVAL_SECONDS", &seconds.to_string())]).unwrap();
        assert_eq!(
            monitor.settings.pressure.interval,
            Duration::from_secs(seconds)
        );
        assert_eq!(monitor.settings.pressure.validate(), Ok(()));
    }
}

#[test]
fn interval_variable_wins_over_the_interval_in_the_settings() {
    let check = |variables: &[(&str, &str)], secs| {
        let monitor: MonitorEnvironment = read(variables).unwrap();
        assert_eq!(
            monitor.settings.pressure.interval,
            Duration::from_secs(secs),
            "{variables:?}"
        );
        assert_eq!(
            monitor.settings.pressure.stale_after,
            Some(Duration::from_secs(150))
        );
    };
    let settings = (
        "PRESSURE_SETTINGS",
        r#"{"ResourceMonitoringInterval": "00:00:20"}"#,
    );
    check(&[settings], 20);
    check(&[settings, ("PRESSURE_INTERVAL_SECONDS", "5")], 5);
    check(&[settings, ("PRESSURE_INTERVAL_SECONDS", "")], 20);
    check(&[("PRESSURE_SETTINGS", "{}")], 10);
}

#[test]
fn settings_under_exchanges_names_are_laid_over_the_profile() {
    let monitor: MonitorEnvironment = read(&[
        ("PRESSURE_PROFILE", "exchange-2013"),
        (
            "PRESSURE_SETTINGS",
            r#"{"DrainTimeHighThreshold": 600, "SMTPMaxThrottlingDelayInterval": "PT1M"}"#,
        ),
    ])
    .unwrap();
    assert_eq!(
        monitor.settings.pressure.profile,
        PressureProfile::Exchange2013
    );
    assert_eq!(
        monitor.settings.pressure.thresholds[&Resource::DrainTime].high,
        Some(600)
    );
    assert_eq!(monitor.settings.pressure.tarpit.max, Duration::from_mins(1));
    let off: MonitorEnvironment = read(&[(
        "PRESSURE_SETTINGS",
        r#"{"EnableResourceMonitoring": false}"#,
    )])
    .unwrap();
    assert!(!off.settings.pressure.enable_resource_monitoring);
}

#[test]
fn refused_settings_name_the_variable_key_and_rule() {
    let check = |value, expected: &str| {
        let refused = refused::<MonitorEnvironment>("PRESSURE_SETTINGS", value);
        assert!(
            refused.starts_with(&format!("PRESSURE_SETTINGS: {expected}")),
            "{refused}"
        );
    };
    check(
        r#"{"SubmissionQueueHigh": 1}"#,
        "SubmissionQueueHigh: unknown member `SubmissionQueueHigh`, did you mean `SubmissionQueueHighThreshold`?",
    );
    check(
        r#"{"BatchPointItemExpiryInterval": "00:06:00"}"#,
        "BatchPointItemExpiryInterval is 360s; expected 00:05:00, as the documents have it, because",
    );
    check(
        r#"{"SubmissionQueueMediumThreshold": 1000}"#,
        "SubmissionQueueMediumThreshold is 1000; expected at least SubmissionQueueNormalThreshold, 2000",
    );
    check(
        r#"{"ResourceMonitoringInterval": "00:02:00"}"#,
        "ResourceMonitoringInterval is 120s; expected 1s to 60s",
    );
    check("scaled", "expected value at line 1");
    let both = [
        ("PRESSURE_SETTINGS", "[]"),
        ("PRESSURE_INTERVAL_SECONDS", "0"),
    ];
    let error = read::<MonitorEnvironment>(&both).unwrap_err().to_string();
    assert!(
        error.contains("PRESSURE_SETTINGS: ") && error.contains("PRESSURE_INTERVAL_SECONDS is"),
        "{error}"
    );
}

#[test]
fn each_profile_has_its_name() {
    let check = |text, expected| {
        let monitor: MonitorEnvironment = read(&[("PRESSURE_PROFILE", text)]).unwrap();
        let PressureSettings {
            enable_resource_monitoring,
            profile,
            ..
        } = monitor.settings.pressure;
        assert_eq!(
            enable_resource_monitoring.then_some(profile),
            expected,
            "{text}"
        );
    };
    check("scaled", Some(PressureProfile::Scaled));
    check("exchange-2013", Some(PressureProfile::Exchange2013));
    check(
        "exchange-2013-german",
        Some(PressureProfile::Exchange2013German),
    );
    check("off", None);
}

#[test]
fn each_log_level_has_its_name() {
    let check = |text, expected| {
        assert_eq!(
            telemetry(&[("LOG_LEVEL", text)]).log_level,
            expected,
            "{text}"
        );
    };
    check("off", LevelFilter::OFF);
    check("error", LevelFilter::ERROR);
    check("warn", LevelFilter::WARN);
    check("info", LevelFilter::INFO);
    check("debug", LevelFilter::DEBUG);
    check("trace", LevelFilter::TRACE);
}

#[test]
fn metrics_are_named_and_counted_by_what_is_set() {
    let check = |text, expected| {
        let telemetry = telemetry(&[("METRICS_NAMESPACE", "shop/eu"), ("METRICS_BY", text)]);
        assert_eq!(
            (telemetry.metrics_namespace.as_str(), telemetry.metrics_by),
            ("shop/eu", expected),
            "{text}"
        );
    };
    check("stack", MetricsBy::Stack);
    check("topic", MetricsBy::Topic);
    check("subscription", MetricsBy::Subscription);
}

#[test]
fn the_tarpit_has_two_ways() {
    let check = |text, expected| {
        assert_eq!(
            read::<PublishEnvironment>(&[("TARPIT", text)])
                .unwrap()
                .settings
                .tarpit,
            expected,
            "{text}"
        );
    };
    check("advise", TarpitMode::Advise);
    check("delay", TarpitMode::Delay);
}

#[test]
fn deliver_takes_its_bounds_its_origin_and_its_networks() {
    let deliver: DeliverEnvironment = read(&[
        ("REQUESTS_MAX", "400"),
        ("REQUESTS_PER_LINK_START", "2"),
        ("WAITING_PER_CONNECTION", "5"),
        ("REQUESTS_PER_LINK_MAX", "6"),
        ("WEBHOOK_ORIGIN", "events.example.com"),
        ("ALLOW_ENDPOINTS", "127.0.0.0/8, fd00::/8"),
        ("DNS_SERVER", "[fd00::2]:53"),
        ("REGISTRY_MAX_AGE_SECONDS", "0"),
    ])
    .unwrap();
    assert_eq!(bounds(&deliver.settings), [400, 2, 5, 6]);
    assert_eq!(deliver.settings.origin, "events.example.com");
    let networks: Vec<_> = deliver
        .client
        .addresses
        .allowed
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(networks, ["127.0.0.0/8", "fd00::/8"]);
    assert_eq!(
        deliver.client.dns_server.unwrap().to_string(),
        "[fd00::2]:53"
    );
    assert_eq!(deliver.registry_max_age, Duration::ZERO);
}

/// Requests open to a link at the start may equal the most, and not exceed it.
#[test]
fn link_start_bound_above_the_maximum_is_refused() {
    let equal = [
        ("REQUESTS_PER_LINK_START", "5"),
        ("REQUESTS_PER_LINK_MAX", "5"),
    ];
    assert_eq!(
        bounds(&read::<DeliverEnvironment>(&equal).unwrap().settings)[1..],
        [5, 20, 5]
    );
    let message = refused::<DeliverEnvironment>("REQUESTS_PER_LINK_MAX", "5");
    let expected =
        "REQUESTS_PER_LINK_START: 10 requests to one link while few wait are more than 5";
    assert!(message.contains(expected), "{message}");
}

/// All functions that look at links read the settings of links; bad ones are refused by name.
#[test]
fn link_settings_reach_all_their_readers_or_are_refused_by_name() {
    let settings = [("LINK_SETTINGS", r#"{"glitches":4,"laterHold":"PT30M"}"#)];
    let deliver: DeliverEnvironment = read(&settings).unwrap();
    let wake: WakeEnvironment = read(&settings).unwrap();
    let manage: ManageEnvironment = read(&settings).unwrap();
    let later_hold = Duration::from_mins(30);
    let expected = HealthSettings {
        glitches: 4,
        later_hold,
        ..HealthSettings::default()
    };
    assert_eq!(
        [deliver.links, wake.links, manage.links],
        [expected.clone(), expected.clone(), expected]
    );
    let check = |text: &str, expected: &str| {
        let message = refused::<WakeEnvironment>("LINK_SETTINGS", text);
        assert!(
            message.starts_with("LINK_SETTINGS") && message.contains(expected),
            "{message}"
        );
    };
    check(r#"{"glitches":0}"#, "glitches is 0; expected 1 to 1000");
    check(r#"{"Glitches":4}"#, "unknown member `Glitches`");
    check("4", "expected an object, found a number");
}

#[test]
fn manage_reads_urls_origin_networks_and_retention() {
    let url = "https://abc.lambda-url.eu-central-1.on.aws/";
    let own = "https://hooks.example.com/";
    let manage: ManageEnvironment = read(&[
        ("PUBLISH_URL", url),
        ("MANAGE_URL", own),
        ("WEBHOOK_ORIGIN", "events.example.com"),
        ("ALLOW_ENDPOINTS", "10.1.2.3/32"),
        ("DNS_SERVER", "10.0.0.2:5353"),
        ("DELIVERY_LOG_RETENTION_DAYS", "30"),
        ("CONSOLE", "off"),
        (
            "DASHBOARD_URL",
            "https://console.aws.amazon.com/cloudwatch/home?region=eu-central-1#dashboards",
        ),
    ])
    .unwrap();
    assert_eq!(
        manage.settings.log.retention,
        Some(Duration::from_hours(30 * 24))
    );
    assert_eq!(
        manage.settings.publish_url.map(String::from),
        Some(url.to_owned())
    );
    assert_eq!(
        manage.settings.public_url.map(String::from),
        Some(own.to_owned())
    );
    assert_eq!(manage.settings.origin, "events.example.com");
    assert!(!manage.console);
    assert_eq!(manage.dashboard_url.unwrap().fragment(), Some("dashboards"));
    assert_eq!(manage.client.addresses.allowed.len(), 1);
    assert_eq!(
        manage.client.dns_server.unwrap().to_string(),
        "10.0.0.2:5353"
    );
}
