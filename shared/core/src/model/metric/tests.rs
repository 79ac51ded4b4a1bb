//! The rules of names, and the reference page.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use super::*;

/// Begin and end of the part of the reference page that is made here.
const MARKS: [&str; 2] = [
    "<!-- the table of metrics, made from shared/core/src/model/metric/table.rs -->\n\n",
    "\n<!-- end of the table of metrics -->",
];

fn exposed() -> impl Iterator<Item = (&'static str, &'static MetricRow)> {
    METRICS
        .iter()
        .filter_map(|metric| Some((metric.exposed?, metric)))
}

#[test]
fn exposed_names_follow_the_rules_of_prometheus() {
    for (name, metric) in exposed() {
        assert!(name.starts_with("posthaste_"), "{name}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_plain), "{name}");
        let is_counter = metric.kind == MetricKind::Counter;
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        let base = name.trim_end_matches("_total");
        let is_of_time = matches!(metric.unit, MetricUnit::Seconds | MetricUnit::Milliseconds);
        assert_eq!(base.ends_with("_seconds"), is_of_time, "{name}");
        assert_eq!(
            base.ends_with("_bytes"),
            metric.unit == MetricUnit::Bytes,
            "{name}"
        );
        for bad in [
            "_milliseconds",
            "_ms",
            "_count",
            "_sum",
            "_bucket",
            "_gauge",
        ] {
            assert!(!base.ends_with(bad), "{name}");
        }
    }
}

#[test]
fn rows_of_one_exposed_name_are_neighbours_told_apart() {
    let mut rows: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (place, metric) in METRICS.iter().enumerate() {
        if let Some(name) = metric.exposed {
            rows.entry(name).or_default().push(place);
        }
    }
    for (name, places) in rows {
        let first = &METRICS[places[0]];
        assert_eq!(
            places.len(),
            places[places.len() - 1] - places[0] + 1,
            "{name}"
        );
        for (at, place) in places.iter().enumerate() {
            let metric = &METRICS[*place];
            assert_eq!(
                (metric.kind, metric.help),
                (first.kind, first.help),
                "{name}"
            );
            let others = places[..at].iter().map(|other| METRICS[*other].fixed);
            assert!(
                others.into_iter().all(|fixed| fixed != metric.fixed),
                "{name}"
            );
        }
    }
}

#[test]
fn measured_names_are_rows_of_their_own() {
    for (at, metric) in METRICS.iter().enumerate() {
        assert!(
            metric.measured.is_some() || metric.exposed.is_some(),
            "{at}"
        );
        if let Some(name) = metric.measured {
            assert_eq!(metric_index(name), Some(at), "{name}");
        }
        if metric.source == MetricSource::LookedUp {
            let name = metric.exposed.unwrap();
            assert_eq!(looked_up_metric_index(name), Some(at), "{name}");
        }
    }
    assert_eq!(metric_index("NoSuchCount"), None);
    assert_eq!(
        looked_up_metric_index("posthaste_events_accepted_total"),
        None
    );
}

#[test]
fn the_reference_page_says_what_the_table_of_metrics_says() {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/reference/metrics-and-logs.md");
    let page = fs::read_to_string(&path).unwrap();
    let [begin, end] = MARKS;
    let (before, rest) = page.split_once(begin).expect("the page has the first mark");
    let (_, after) = rest.split_once(end).expect("the page has the second mark");
    let expected = format!("{before}{begin}{}{end}{after}", table());
    if env::var_os("POSTHASTE_RENEW").is_some() {
        fs::write(&path, &expected).unwrap();
        return;
    }
    let renew = "metrics-and-logs.md is stale: POSTHASTE_RENEW=1 with this test renews it";
    assert!(page == expected, "{renew}");
}

fn table() -> String {
    let mut table = String::from(
        "| in `serve` | on AWS | type | labels | unit | written by | meaning |\n|---|---|---|---|---|---|---|\n",
    );
    for metric in METRICS {
        let exposed = match (metric.exposed, metric.fixed) {
            (Some(name), Some((label, value))) => format!("`{name}{{{label}=\"{value}\"}}`"),
            (Some(name), None) => format!("`{name}`"),
            (None, _) => "–".to_owned(),
        };
        let on_aws = metric.measured.filter(|_| metric.is_on_aws);
        let on_aws = on_aws.map_or("–".to_owned(), |name| format!("`{name}`"));
        let kind = match metric.kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let labels: Vec<_> = metric.labels.iter().map(|it| format!("`{it}`")).collect();
        let unit = match metric.unit {
            MetricUnit::Number(of) => of,
            MetricUnit::Bytes => "bytes",
            MetricUnit::Seconds => "seconds",
            MetricUnit::Milliseconds => "seconds; on AWS milliseconds",
        };
        let labels = labels.join(", ");
        let written_by = metric.written_by;
        let help = metric.help;
        writeln!(
            table,
            "| {exposed} | {on_aws} | {kind} | {labels} | {unit} | {written_by} | {help} |"
        )
        .unwrap();
    }
    table
}
