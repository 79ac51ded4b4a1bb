//! The report of one process of deliver of how fast it drains the queue.
//!
//! Key `drain/{uuid}.json`. Version 1; written by deliver, read by the monitor, which deletes old
//! ones. Fixture: `drain-report-v1.json`.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::delivery::WIRE_VERSION;
use super::format::{Format, FormatError, render};
use crate::pressure::DrainReport;

/// The prefix of what the processes of `deliver` tell of how fast they drain the queue.
pub const DRAIN: &str = "drain/";

/// The key of the report of one process of `deliver`. `instance` is a UUID.
pub fn drain(instance: &str) -> String {
    format!("{DRAIN}{instance}.json")
}

const FORMAT: Format = Format {
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
}

/// Renders a report as an object.
pub fn render_drain_report(report: &DrainReport) -> Bytes {
    render(&DrainWire {
        v: 1,
        settled: report.settled,
        window_ms: whole_millis(report.window),
        waited_max_ms: whole_millis(report.waited_max),
    })
}

/// Reads a report.
pub fn parse_drain_report(object: &Bytes) -> Result<DrainReport, FormatError> {
    let wire = FORMAT.parse(object, |wire: &DrainWire| wire.v)?;
    Ok(DrainReport {
        settled: wire.settled,
        window: Duration::from_millis(wire.window_ms),
        waited_max: Duration::from_millis(wire.waited_max_ms),
    })
}

fn whole_millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 1 as it was first written. Never edited.
    const DRAIN_REPORT_V1: &str = include_str!("fixtures/drain-report-v1.json");

    #[test]
    fn a_report_is_written_as_its_fixture_and_read_back() {
        let [window, waited_max] = [10_250, 61_003].map(Duration::from_millis);
        let report = DrainReport {
            settled: 420,
            window,
            waited_max,
        };
        assert_eq!(render_drain_report(&report), DRAIN_REPORT_V1.trim_end());
        assert_eq!(
            parse_drain_report(&Bytes::from_static(DRAIN_REPORT_V1.as_bytes())).unwrap(),
            report
        );
    }

    #[test]
    fn what_is_not_ours_is_told_from_what_is_newer() {
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
