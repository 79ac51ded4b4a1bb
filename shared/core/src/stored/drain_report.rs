//! The report of one process of deliver of how fast it drains the queue.
//!
//! Key `drain/{uuid}.json`. Version 1; written by deliver, read by the monitor, which deletes old
//! ones. An older program reads the sums alone. Fixtures: `drain-report-v1.json` without, and
//! `drain-report-v1-kinds.json` with what came later.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::delivery::WIRE_VERSION;
use crate::model::time::whole_millis;
use crate::model::{FormatError, StoredFormat, render_json};
use crate::pressure::{DrainCount, DrainReport, REPORTED_TOPICS_MAX, ReportedTopic};

/// The prefix of what the processes of `deliver` tell of how fast they drain the queue.
pub const DRAIN: &str = "drain/";

/// The key of the report of one process of `deliver`. `instance` is a UUID.
pub fn drain_report_key(instance: &str) -> String {
    format!("{DRAIN}{instance}.json")
}

const FORMAT: StoredFormat = StoredFormat {
    name: "a drain report",
    newest: WIRE_VERSION,
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DrainWire {
    v: u32,
    settled: u64,
    window_ms: u64,
    waited_max_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<CountWire>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    self_limited: Option<CountWire>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    topics: Vec<TopicWire>,
}

/// The messages of one kind of subscriptions.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CountWire {
    received: u64,
    settled: u64,
    waited_max_ms: u64,
}

/// A slow topic, by its middle subscription.
#[derive(Serialize, Deserialize)]
struct TopicWire {
    group: Box<str>,
    #[serde(flatten)]
    count: CountWire,
}

impl From<DrainCount> for CountWire {
    fn from(count: DrainCount) -> Self {
        Self {
            received: count.received,
            settled: count.settled,
            waited_max_ms: whole_millis(count.waited_max),
        }
    }
}

impl From<CountWire> for DrainCount {
    fn from(wire: CountWire) -> Self {
        Self {
            received: wire.received,
            settled: wire.settled,
            waited_max: Duration::from_millis(wire.waited_max_ms),
        }
    }
}

/// Renders a report as an object.
pub fn render_drain_report(report: &DrainReport) -> Bytes {
    let all = report.total_count();
    let topics = report.topics.iter().map(|topic| TopicWire {
        group: Box::from(&*topic.group),
        count: topic.count.into(),
    });
    render_json(&DrainWire {
        v: 1,
        settled: all.settled,
        window_ms: whole_millis(report.window),
        waited_max_ms: whole_millis(all.waited_max),
        shared: Some(report.shared.into()),
        self_limited: Some(report.self_limited.into()),
        topics: topics.collect(),
    })
}

/// Reads a report.
pub fn parse_drain_report(object: &Bytes) -> Result<DrainReport, FormatError> {
    let wire = FORMAT.parse(object, |wire: &DrainWire| wire.v)?;
    let shared = match wire.shared {
        Some(shared) => shared.into(),
        // An older program knows one kind, and not how many messages it received.
        None => DrainCount {
            received: wire.settled,
            settled: wire.settled,
            waited_max: Duration::from_millis(wire.waited_max_ms),
        },
    };
    let topics = wire.topics.into_iter().take(REPORTED_TOPICS_MAX);
    let topics = topics.map(|topic| ReportedTopic {
        group: topic.group.into(),
        count: topic.count.into(),
    });
    Ok(DrainReport {
        window: Duration::from_millis(wire.window_ms),
        shared,
        self_limited: wire.self_limited.map(DrainCount::from).unwrap_or_default(),
        topics: topics.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1 as it was first written. Never edited.
    const DRAIN_REPORT_V1: &str = include_str!("fixtures/drain-report-v1.json");

    /// The same with both kinds of subscriptions, and slow topics. Never edited.
    const WITH_KINDS: &str = include_str!("fixtures/drain-report-v1-kinds.json");

    fn count(received: u64, settled: u64, waited_ms: u64) -> DrainCount {
        DrainCount {
            received,
            settled,
            waited_max: Duration::from_millis(waited_ms),
        }
    }

    #[test]
    fn report_of_an_older_program_is_of_one_kind() {
        let report = DrainReport {
            window: Duration::from_millis(10_250),
            shared: count(420, 420, 61_003),
            ..DrainReport::default()
        };
        let parsed = parse_drain_report(&Bytes::from_static(DRAIN_REPORT_V1.as_bytes()));
        assert_eq!(parsed.unwrap(), report);
    }

    #[test]
    fn a_report_is_written_as_its_fixture_and_read_back() {
        let report = DrainReport {
            window: Duration::from_millis(10_250),
            shared: count(400, 390, 6_000),
            self_limited: count(900, 30, 61_003),
            topics: vec![ReportedTopic {
                group: "orders.billing".into(),
                count: count(900, 30, 61_003),
            }],
        };
        assert_eq!(render_drain_report(&report), WITH_KINDS.trim_end());
        assert_eq!(
            parse_drain_report(&Bytes::from_static(WITH_KINDS.as_bytes())).unwrap(),
            report
        );
    }

    #[test]
    fn foreign_report_is_told_from_a_newer_one() {
        let parse = |text: &'static str| parse_drain_report(&Bytes::from_static(text.as_bytes()));
        for text in [
            "",
            "{",
            "[]",
            r#"{"v":1}"#,
            r#"{"v":1,"settled":-1,"windowMs":1,"waitedMaxMs":1}"#,
        ] {
            assert!(
                matches!(parse(text), Err(FormatError::Malformed(..))),
                "{text}"
            );
        }
        assert!(matches!(
            parse(r#"{"v":4,"rate":[]}"#),
            Err(FormatError::Newer(4))
        ));
    }
}
