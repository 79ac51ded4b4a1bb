use super::*;

use metrics::{counter, gauge, histogram};
use serde_json::{Value, json};

const NOW: Timestamp = Timestamp::from_millis(1_764_000_000_123);

fn measured(emf: &Emf, work: impl FnOnce()) -> String {
    metrics::with_local_recorder(emf, work);
    String::from_utf8(emf.drain(NOW)).unwrap()
}

fn documents(emf: &Emf, work: impl FnOnce()) -> Vec<Value> {
    measured(emf, work).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn check(by: MetricsBy, work: impl FnOnce(), expected: &[&str]) {
    let emf = Emf::new("posthaste", by);
    let lines = measured(&emf, work);
    assert_eq!(lines.lines().collect::<Vec<_>>(), expected);
    assert!(lines.is_empty() || lines.ends_with('\n'), "{lines}");
    assert_eq!(emf.drain(NOW), b"", "nothing is written twice");
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
        (MetricsBy::Subscription, json!([["topic", "subscription", "reason"]])),
    ] {
        let emf = Emf::new("posthaste", by);
        let labels = [("topic", "orders"), ("subscription", "billing"), ("reason", "EndpointGone")];
        let documents = documents(&emf, || counter!("DeadLetteredCount", &labels).increment(1));
        assert_eq!(documents.len(), 1);
        assert_eq!(documents[0]["_aws"]["CloudWatchMetrics"][0]["Dimensions"], expected);
        assert_eq!(
            (&documents[0]["topic"], &documents[0]["reason"]),
            (&json!("orders"), &json!("EndpointGone"))
        );
    }
}

#[test]
fn a_metric_that_an_alarm_watches_has_no_topic_among_its_dimensions() {
    let emf = Emf::new("posthaste", MetricsBy::Topic);
    let documents = documents(&emf, || {
        counter!("DeliverySuccessCount", "topic" => "orders").increment(1);
        counter!("LogRecordsLostCount", "topic" => "orders").increment(1);
    });
    let dimensions = documents.iter().map(|one| &one["_aws"]["CloudWatchMetrics"][0]["Dimensions"]);
    assert_eq!(dimensions.collect::<Vec<_>>(), [&json!([[]]), &json!([["topic"]])]);
    assert_eq!((&documents[0]["LogRecordsLostCount"], &documents[0]["topic"]), (&json!(1), &json!("orders")));
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
fn nothing_measured_is_no_line() {
    check(MetricsBy::Stack, || counter!("DroppedEventCount").increment(0), &[]);
}

#[test]
fn what_is_no_number_is_not_written() {
    check(MetricsBy::Stack, || histogram!("LatencyInMs").record(f64::NAN), &[]);
    check(MetricsBy::Stack, || gauge!("PressureLevel").set(f64::INFINITY), &[]);
}

#[test]
fn more_values_than_a_document_takes_are_spread_over_several() {
    let emf = Emf::new("posthaste", MetricsBy::Stack);
    let documents = documents(&emf, || {
        counter!("Count").increment(7);
        (0..250).for_each(|value| histogram!("LatencyInMs").record(value));
    });
    let values: Vec<_> =
        documents.iter().map(|document| document["LatencyInMs"].as_array().unwrap()).collect();
    assert_eq!(values.iter().map(|values| values.len()).collect::<Vec<_>>(), [100, 100, 50]);
    let all: Vec<f64> = values.into_iter().flatten().map(|value| value.as_f64().unwrap()).collect();
    assert_eq!(all, (0..250).map(f64::from).collect::<Vec<_>>());
    let counts: Vec<_> = documents.iter().map(|document| document.get("Count")).collect();
    assert_eq!(counts, [Some(&json!(7)), None, None], "a count stands in one document only");
}

#[test]
fn more_metrics_than_a_document_takes_are_spread_over_several() {
    let emf = Emf::new("posthaste", MetricsBy::Stack);
    let documents = documents(&emf, || (0..101).for_each(|n| counter!(format!("Count{n}")).increment(1)));
    let metrics =
        |document: &Value| document["_aws"]["CloudWatchMetrics"][0]["Metrics"].as_array().unwrap().len();
    assert_eq!(documents.iter().map(metrics).collect::<Vec<_>>(), [100, 1]);
    // The head comes in addition to the values.
    assert_eq!(documents.iter().map(|one| one.as_object().unwrap().len()).collect::<Vec<_>>(), [101, 2]);
}

#[test]
fn labels_are_forgotten_unless_their_handle_is_held() {
    let emf = Emf::new("posthaste", MetricsBy::Stack);
    let held = metrics::with_local_recorder(&emf, || {
        counter!("Count", "topic" => "gone").increment(1);
        counter!("Count", "topic" => "held")
    });
    emf.drain(NOW);
    assert_eq!(emf.state.lock().counters.len(), 1);
    held.increment(2);
    assert_eq!(documents(&emf, || ())[0]["Count"], 2);
    drop(held);
    emf.drain(NOW);
    assert_eq!(emf.state.lock().counters.len(), 0);
}
