use super::*;

mod volume;

use std::time::Duration;

use metrics::{counter, gauge, histogram};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1_764_000_000_123);

fn measured(emf: &EmfRecorder, work: impl FnOnce()) -> String {
    metrics::with_local_recorder(emf, work);
    String::from_utf8(emf.drain_lines(NOW, DrainPart::All)).unwrap()
}

fn documents(emf: &EmfRecorder, work: impl FnOnce()) -> Vec<Value> {
    measured(emf, work)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn check(by: MetricsBy, work: impl FnOnce(), expected: &[&str]) {
    let emf = EmfRecorder::new("posthaste", by);
    let lines = measured(&emf, work);
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    assert!(lines.is_empty() || lines.ends_with('\n'), "{lines}");
    assert_eq!(
        emf.drain_lines(NOW, DrainPart::All),
        b"",
        "nothing is written twice"
    );
}

fn deliver() {
    let labels = [("topic", "orders"), ("subscription", "billing")];
    counter!("DeliverySuccessCount", &labels).increment(2);
    counter!("DeliverySuccessCount", &labels).increment(3);
    histogram!("DestinationProcessingDurationInMs", &labels).record(12.345_678);
}

#[test]
fn a_label_that_is_no_dimension_is_a_property() {
    check(
        MetricsBy::Stack,
        deliver,
        &[concat!(
            r#"{"_aws":{"Timestamp":1764000000123,"CloudWatchMetrics":[{"Namespace":"posthaste","#,
            r#""Dimensions":[[]],"Metrics":[{"Name":"DeliverySuccessCount","#,
            r#""Unit":"Count"},{"Name":"DestinationProcessingDurationInMs","Unit":"Milliseconds"}]}]},"#,
            r#""topic":"orders","subscription":"billing","DeliverySuccessCount":5,"#,
            r#""DestinationProcessingDurationInMs":12.346}"#
        )],
    );
}

#[test]
fn labels_become_dimensions_as_the_setting_says() {
    for (by, expected) in [
        (MetricsBy::Stack, json!([["reason"]])),
        (MetricsBy::Topic, json!([["topic", "reason"]])),
        (
            MetricsBy::Subscription,
            json!([["topic", "subscription", "reason"]]),
        ),
    ] {
        let emf = EmfRecorder::new("posthaste", by);
        let labels = [
            ("topic", "orders"),
            ("subscription", "billing"),
            ("reason", "EndpointGone"),
        ];
        let documents = documents(&emf, || counter!("DeadLetteredCount", &labels).increment(1));
        assert_eq!(documents.len(), 1);
        assert_eq!(
            documents[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"],
            expected
        );
        assert_eq!(
            (&documents[0]["topic"], &documents[0]["reason"]),
            (&json!("orders"), &json!("EndpointGone"))
        );
    }
}

#[test]
fn alarmed_metric_has_no_topic_dimension() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Topic);
    let documents = documents(&emf, || {
        counter!("DeliverySuccessCount", "topic" => "orders").increment(1);
        counter!("LogRecordsLostCount", "topic" => "orders").increment(1);
    });
    let dimensions = documents
        .iter()
        .map(|one| &one["_aws"]["CloudWatchMetrics"][0]["Dimensions"]);
    assert_eq!(
        dimensions.collect::<Vec<_>>(),
        [&json!([[]]), &json!([["topic"]])]
    );
    assert_eq!(
        (&documents[0]["LogRecordsLostCount"], &documents[0]["topic"]),
        (&json!(1), &json!("orders"))
    );
}

/// CloudWatch bills each value of a dimension, and each line of the log.
#[test]
fn class_of_a_status_makes_no_document_of_its_own() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Subscription);
    let documents = documents(&emf, || {
        for (class, events) in [("4xx", 2), ("5xx", 3), ("none", 4)] {
            let labels = [
                ("topic", "orders"),
                ("subscription", "a"),
                ("status_class", class),
            ];
            counter!("DeliveryAttemptFailCount", &labels).increment(events);
        }
        let labels = [("topic", "orders"), ("subscription", "a")];
        histogram!("DestinationProcessingDurationInMs", &labels).record(7.0);
    });
    let [document] = &documents[..] else {
        panic!("{documents:?}")
    };
    assert_eq!(document["DeliveryAttemptFailCount"], 9);
    assert_eq!(document["DestinationProcessingDurationInMs"], 7.0);
    assert_eq!(document.get("status_class"), None);
}

#[test]
fn each_set_of_labels_has_a_document_of_its_own() {
    check(
        MetricsBy::Topic,
        || {
            counter!("MatchedEventCount", "topic" => "b").increment(1);
            counter!("MatchedEventCount", "topic" => "a").increment(2);
        },
        &[
            concat!(
                r#"{"_aws":{"Timestamp":1764000000123,"CloudWatchMetrics":[{"Namespace":"posthaste","#,
                r#""Dimensions":[["topic"]],"Metrics":[{"Name":"MatchedEventCount","Unit":"Count"}]}]},"#,
                r#""topic":"a","MatchedEventCount":2}"#
            ),
            concat!(
                r#"{"_aws":{"Timestamp":1764000000123,"CloudWatchMetrics":[{"Namespace":"posthaste","#,
                r#""Dimensions":[["topic"]],"Metrics":[{"Name":"MatchedEventCount","Unit":"Count"}]}]},"#,
                r#""topic":"b","MatchedEventCount":1}"#
            ),
        ],
    );
}

#[test]
fn every_value_that_a_gauge_was_set_to_is_written_once() {
    check(
        MetricsBy::Stack,
        || {
            for level in [0, 2, 0] {
                gauge!("PressureLevel", "resource" => "drainTime").set(level);
            }
        },
        &[concat!(
            r#"{"_aws":{"Timestamp":1764000000123,"CloudWatchMetrics":[{"Namespace":"posthaste","#,
            r#""Dimensions":[["resource"]],"Metrics":[{"Name":"PressureLevel"}]}]},"#,
            r#""resource":"drainTime","PressureLevel":[0.0,2.0,0.0]}"#
        )],
    );
}

#[test]
fn a_gauge_at_rest_is_written_once_after_another_value() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Stack);
    let written = |value: f64| {
        let documents = documents(&emf, || gauge!("PressureTarpitInMs").set(value));
        documents
            .into_iter()
            .map(|mut one| one["PressureTarpitInMs"].take())
            .collect::<Vec<_>>()
    };
    assert_eq!(written(0.0), [] as [Value; 0]);
    assert_eq!(written(10_000.0), [10_000.0]);
    assert_eq!(
        documents(&emf, || ()),
        [] as [Value; 0],
        "nothing was measured"
    );
    assert_eq!(written(0.0), [0.0]);
    assert_eq!(written(0.0), [] as [Value; 0]);
    assert_eq!(emf.state.lock().gauges.len(), 0);
}

#[test]
fn invocation_without_measurements_writes_no_line() {
    check(
        MetricsBy::Stack,
        || counter!("DroppedEventCount").increment(0),
        &[],
    );
}

#[test]
fn values_that_are_not_numbers_are_not_written() {
    check(
        MetricsBy::Stack,
        || histogram!("PublishSuccessLatencyInMs").record(f64::NAN),
        &[],
    );
    check(
        MetricsBy::Stack,
        || gauge!("PressureLevel").set(f64::INFINITY),
        &[],
    );
}

#[test]
fn values_of_a_histogram_are_counted_in_buckets_of_two_digits() {
    check(
        MetricsBy::Stack,
        || {
            for one in [101.0, 99.0, 104.9, 1.0] {
                histogram!("PublishSuccessLatencyInMs").record(one);
            }
        },
        &[concat!(
            r#"{"_aws":{"Timestamp":1764000000123,"CloudWatchMetrics":[{"Namespace":"posthaste","#,
            r#""Dimensions":[[]],"Metrics":[{"Name":"PublishSuccessLatencyInMs","Unit":"Milliseconds"}]}]},"#,
            r#""PublishSuccessLatencyInMs":{"Values":[1.0,99.0,100.0],"Counts":[1,1,2],"#,
            r#""Max":104.9,"Min":1.0,"Count":4,"Sum":305.9}}"#
        )],
    );
}

#[test]
fn more_buckets_than_a_document_takes_are_spread_over_several() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Stack);
    let documents = documents(&emf, || {
        counter!("Count").increment(7);
        (0..10_000).for_each(|value| histogram!("PublishSuccessLatencyInMs").record(value));
    });
    let members = |name: &str| -> Vec<_> {
        documents
            .iter()
            .map(|document| document["PublishSuccessLatencyInMs"][name].clone())
            .collect()
    };
    let lengths: Vec<_> = members("Values")
        .iter()
        .map(|values| values.as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [100, 100, 81]);
    let sum = |name: &str| {
        members(name)
            .iter()
            .map(|one| one.as_f64().unwrap())
            .sum::<f64>()
    };
    assert_eq!((sum("Count"), sum("Sum")), (10_000.0, 49_995_000.0));
    assert_eq!(
        (&members("Min")[0], &members("Max")[2]),
        (&json!(0.0), &json!(9_999.0))
    );
    let counts: Vec<_> = documents
        .iter()
        .map(|document| document.get("Count"))
        .collect();
    assert_eq!(
        counts,
        [Some(&json!(7)), None, None],
        "a count stands in one document only"
    );
}

#[test]
fn more_metrics_than_a_document_takes_are_spread_over_several() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Stack);
    let documents = documents(&emf, || {
        (0..101).for_each(|n| counter!(format!("Count{n}")).increment(1));
    });
    let metrics = |document: &Value| {
        document["_aws"]["CloudWatchMetrics"][0]["Metrics"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!(documents.iter().map(metrics).collect::<Vec<_>>(), [100, 1]);
    // The head comes in addition to the values.
    assert_eq!(
        documents
            .iter()
            .map(|one| one.as_object().unwrap().len())
            .collect::<Vec<_>>(),
        [101, 2]
    );
}

#[test]
fn labels_are_forgotten_unless_their_handle_is_held() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Stack);
    let held = metrics::with_local_recorder(&emf, || {
        counter!("Count", "topic" => "gone").increment(1);
        counter!("Count", "topic" => "held")
    });
    emf.drain_lines(NOW, DrainPart::All);
    assert_eq!(emf.state.lock().counters.len(), 1);
    held.increment(2);
    assert_eq!(documents(&emf, || ())[0]["Count"], 2);
    drop(held);
    emf.drain_lines(NOW, DrainPart::All);
    assert_eq!(emf.state.lock().counters.len(), 0);
}

#[test]
fn a_gauge_and_what_an_alarm_watches_are_never_kept() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Stack);
    let invocation = |at: Timestamp| -> Vec<Value> {
        metrics::with_local_recorder(&emf, || {
            counter!("DeliverySuccessCount").increment(1);
            counter!("LogRecordsLostCount").increment(1);
            gauge!("PressureLevel").set(2);
            histogram!("PublishSuccessLatencyInMs").record(5.0);
        });
        let lines = String::from_utf8(emf.end_invocation(at)).unwrap();
        lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let names = |documents: &[Value]| -> Vec<String> {
        let metrics = documents[0]["_aws"]["CloudWatchMetrics"][0]["Metrics"]
            .as_array()
            .unwrap();
        metrics
            .iter()
            .map(|one| one["Name"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = [
        "DeliverySuccessCount",
        "LogRecordsLostCount",
        "PressureLevel",
        "PublishSuccessLatencyInMs",
    ];
    assert_eq!(names(&invocation(NOW)), all);
    let minute = NOW + Duration::from_mins(1);
    assert_eq!(names(&invocation(minute)), all);
    for second in 1..=14 {
        let documents = invocation(minute + Duration::from_secs(second));
        assert_eq!(
            names(&documents),
            ["LogRecordsLostCount", "PressureLevel"],
            "second {second}"
        );
    }
    let documents = invocation(minute + Duration::from_secs(15));
    assert_eq!(names(&documents), all);
    assert_eq!(documents[0]["DeliverySuccessCount"], 15);
}

#[test]
fn values_kept_before_a_break_are_written_with_their_own_time() {
    let emf = EmfRecorder::new("posthaste", MetricsBy::Stack);
    let count =
        || metrics::with_local_recorder(&emf, || counter!("DeliverySuccessCount").increment(1));
    let minute = NOW + Duration::from_mins(1);
    for at in [NOW, minute, minute + Duration::from_secs(1)] {
        assert_eq!(emf.begin_invocation(at), b"");
        count();
        emf.end_invocation(at);
    }
    let late = String::from_utf8(emf.begin_invocation(minute + Duration::from_mins(7))).unwrap();
    let document: Value = serde_json::from_str(&late).unwrap();
    assert_eq!(
        document["_aws"]["Timestamp"],
        (minute + Duration::from_secs(1)).as_millis()
    );
    assert_eq!(document["DeliverySuccessCount"], 1);
}
