//! Series of few topics, of many, and by setting.

use std::collections::BTreeMap;

use super::*;
use crate::metrics::exposition::render;
use crate::metrics::form::PageFormat;

/// Counts as a topic with an event that was delivered does.
fn measure(series: &MetricSeries, topic: &str) {
    metrics::with_local_recorder(series, || {
        let topic = topic.to_owned();
        metrics::counter!("PublishSuccessCount", "topic" => topic.clone()).increment(1);
        metrics::counter!("MatchedEventCount", "topic" => topic.clone()).increment(1);
        metrics::histogram!("PublishSuccessLatencyInMs", "topic" => topic.clone()).record(3.0);
        let labels = [("topic", topic.clone()), ("subscription", "all".to_owned())];
        metrics::histogram!("DestinationProcessingDurationInMs", &labels).record(7.0);
        metrics::counter!(
            "DeliverySuccessCount", "topic" => topic, "subscription" => "all", "status_class" => "2xx"
        )
        .increment(1);
    });
}

fn page(series: &MetricSeries) -> String {
    String::from_utf8(render(&series.lines_for_page(), PageFormat::Text).concat()).unwrap()
}

/// The samples of a metric, by their labels.
fn samples(page: &str, name: &str) -> BTreeMap<String, u64> {
    let of_name = page.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = rest.rsplit_once(' ')?;
        let is_it = labels.is_empty() || labels.starts_with('{');
        is_it.then(|| (labels.to_owned(), value.parse().unwrap()))
    });
    of_name.collect()
}

/// The metrics that each event of a topic counts in.
const COUNTED: [&str; 5] = [
    "posthaste_events_accepted_total",
    "posthaste_events_matched_total",
    "posthaste_deliveries_total",
    "posthaste_publish_duration_seconds_count",
    "posthaste_endpoint_duration_seconds_count",
];

fn assert_sums(page: &str, expected: u64) {
    for name in COUNTED {
        let sum: u64 = samples(page, name).values().sum();
        assert_eq!(sum, expected, "{name}");
    }
}

fn accepted(topic: &str) -> String {
    format!("{{topic=\"{topic}\"}}")
}

#[test]
fn ten_thousand_topics_are_a_small_page_with_right_sums() {
    let series = MetricSeries::new(SeriesBy::default());
    // As long as names may be.
    let name = |n: usize| format!("{n:05}-{}", "x".repeat(58));
    for n in 0..10_000 {
        measure(&series, &name(n));
    }
    let page = page(&series);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
    assert_sums(&page, 10_000);
    let accepted_of = samples(&page, "posthaste_events_accepted_total");
    assert_eq!(accepted_of.len(), TOPICS_KEPT + 1);
    assert_eq!(accepted_of[&accepted(OTHER)], 9_900);
}

#[test]
fn up_to_two_hundred_topics_have_series_of_their_own() {
    let series = MetricSeries::new(SeriesBy::default());
    for n in 0..TOPICS_MAX {
        measure(&series, &format!("t{n}"));
    }
    let text = page(&series);
    assert!(text.len() < 1_000_000, "{} bytes", text.len());
    let all = samples(&text, "posthaste_events_accepted_total");
    assert_eq!(all.len(), TOPICS_MAX);
    assert_eq!(all.get(&accepted(OTHER)), None);
    assert_sums(&text, 200);
}

/// The first that finds no room takes the places of half of them, and nothing is lost: also not
/// what is counted through an instrument that somebody already held.
#[test]
fn topics_that_lose_their_series_stay_in_the_sum() {
    let series = MetricSeries::new(SeriesBy::default());
    for n in 0..TOPICS_MAX {
        measure(&series, &format!("t{n}"));
    }
    let held = metrics::with_local_recorder(
        &series,
        || metrics::counter!("PublishSuccessCount", "topic" => "t150"),
    );
    measure(&series, "one-more");
    assert_sums(&page(&series), 201);
    held.increment(5);
    let of = samples(&page(&series), "posthaste_events_accepted_total");
    assert_eq!(of[&accepted(OTHER)], 106);
    assert_eq!(of[&accepted("t99")], 1);
    assert_eq!(of.get(&accepted("t100")), None);
    measure(&series, "t150");
    let of = samples(&page(&series), "posthaste_events_accepted_total");
    assert_eq!(of[&accepted(OTHER)], 107);
}

#[test]
fn choice_of_topics_does_not_change_with_what_is_measured() {
    let series = MetricSeries::new(SeriesBy::default());
    for n in 0..300 {
        measure(&series, &format!("t{n}"));
    }
    let shown = |series: &MetricSeries| -> Vec<String> {
        let all = samples(&page(series), "posthaste_events_accepted_total");
        all.into_keys().collect()
    };
    let first = shown(&series);
    for n in (0..300).rev() {
        measure(&series, &format!("t{n}"));
        assert_eq!(shown(&series), first);
    }
}

/// As after a start: the topics of the store come first, in their order.
#[test]
fn expected_topics_have_series_before_measured_ones() {
    let series = MetricSeries::new(SeriesBy::default());
    let names = |range: std::ops::Range<usize>| {
        range.map(|n| TopicName::parse(&format!("t{n:03}")).unwrap())
    };
    series.expect_topics(names(0..TOPICS_MAX + 1));
    for n in (0..300).rev() {
        measure(&series, &format!("T{n:03}"));
    }
    let of = samples(&page(&series), "posthaste_events_accepted_total");
    let own: Vec<_> = (0..TOPICS_KEPT)
        .map(|n| accepted(&format!("T{n:03}")))
        .collect();
    let expected: Vec<_> = own.into_iter().chain([accepted(OTHER)]).collect();
    assert_eq!(of.keys().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(of[&accepted(OTHER)], 200);
}

#[test]
fn place_of_a_deleted_topic_is_taken_by_the_next() {
    let series = MetricSeries::new(SeriesBy::default());
    for n in 0..300 {
        measure(&series, &format!("t{n}"));
    }
    let gone = SeriesOwner::for_topic(&TopicName::parse("T7").unwrap());
    series.forget_owners(&BTreeSet::from([gone]));
    let before = samples(&page(&series), "posthaste_events_accepted_total");
    assert_eq!(
        (before.len(), before.get(&accepted("t7"))),
        (TOPICS_KEPT, None)
    );
    measure(&series, "t250");
    measure(&series, "t251");
    let of = samples(&page(&series), "posthaste_events_accepted_total");
    assert_eq!(of[&accepted("t250")], 1);
    // What it counted before stays where it was.
    assert_eq!(of[&accepted(OTHER)], 201);
}

#[test]
fn setting_says_which_labels_there_are() {
    for (by, expected) in [
        (
            SeriesBy::Total,
            r#"{status_class="2xx",outcome="delivered"}"#,
        ),
        (
            SeriesBy::Topic,
            r#"{topic="a",status_class="2xx",outcome="delivered"}"#,
        ),
        (
            SeriesBy::FewTopics,
            r#"{topic="a",status_class="2xx",outcome="delivered"}"#,
        ),
        (
            SeriesBy::Subscription,
            r#"{topic="a",subscription="all",status_class="2xx",outcome="delivered"}"#,
        ),
    ] {
        let series = MetricSeries::new(by);
        measure(&series, "a");
        let of = samples(&page(&series), "posthaste_deliveries_total");
        assert_eq!(of, BTreeMap::from([(expected.to_owned(), 1)]), "{by:?}");
    }
}

#[test]
fn series_by_setting_have_a_bound_and_right_sums() {
    for by in [SeriesBy::Topic, SeriesBy::Subscription] {
        let series = MetricSeries::new(by);
        for n in 0..5_000 {
            measure(&series, &format!("t{n}"));
        }
        let lines = series.lines_for_page();
        assert!(lines.len() < SERIES_MAX + 100, "{}", lines.len());
        assert!(lines.len() >= SERIES_MAX, "{}", lines.len());
        assert_sums(&page(&series), 5_000);
    }
}

#[test]
fn metrics_without_labels_are_zero_from_the_start() {
    let page = page(&MetricSeries::new(SeriesBy::default()));
    for name in [
        "posthaste_log_records_written_total",
        "posthaste_pressure_tarpit_seconds",
    ] {
        assert_eq!(
            samples(&page, name),
            BTreeMap::from([(String::new(), 0)]),
            "{name}"
        );
    }
    assert!(samples(&page, "posthaste_events_accepted_total").is_empty());
}

#[test]
fn unknown_and_unmeasured_metric_names_are_ignored() {
    let series = MetricSeries::new(SeriesBy::default());
    let before = page(&series);
    metrics::with_local_recorder(&series, || {
        metrics::counter!("NoSuchCount").increment(1);
        metrics::gauge!("OldestReturnedMessageInSeconds", "function" => "deliver").set(3.0);
        metrics::gauge!("TopicPressureLevel", "topic" => "a").set(1.0);
        // Of another type than the row.
        metrics::gauge!("LogWriteFailCount").set(1.0);
    });
    assert_eq!(page(&series), before);
}
