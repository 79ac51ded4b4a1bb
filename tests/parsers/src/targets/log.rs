//! The delivery log: messages with records, files, and summaries of days.

use bytes::Bytes;
use posthaste_core::delivery_log::{
    LogDay, LogHour, LogRecord, count_records, parse_records, render_records,
};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{DaySummary, MergeInput, MergeLimits, merge_files};

use crate::hold::{debug, word};
use crate::target::Target;

/// The targets.
pub(super) const TARGETS: &[Target] = &[
    Target {
        name: "records",
        corpus: &["shared/core/src/delivery_log/fixtures/records-"],
        check: records,
        weight: 2,
    },
    Target {
        name: "log-file",
        corpus: &["tests/parsers/corpus/log/file"],
        check: file,
        weight: 10,
    },
    Target {
        name: "day-summary",
        corpus: &["tests/parsers/corpus/log/summary"],
        check: summary,
        weight: 1,
    },
];

/// Records that are read are written as records that read the same.
fn records(bytes: &[u8]) -> String {
    let _ = count_records(bytes);
    match parse_records(bytes) {
        Ok(records) => {
            let written = render_records(&records);
            let again = written
                .iter()
                .map(|body| parse_records(body).expect("it was written"));
            let again: Vec<LogRecord> = again.flatten().collect();
            assert_eq!(debug(&again), debug(&records), "{written:?}");
            "read".to_owned()
        }
        Err(error) => word(&error),
    }
}

/// A file that is damaged says so.
fn file(bytes: &[u8]) -> String {
    let file = Bytes::copy_from_slice(bytes);
    let inputs = vec![MergeInput::in_memory("a-file".to_owned(), file)];
    let merged = merge_files(inputs, MergeLimits::default(), |_| Ok(Vec::new()));
    merged.map_or_else(
        |error| word(&error),
        |parts| format!("{} parts", parts.len().min(3)),
    )
}

/// A summary that is read tells of every hour.
fn summary(bytes: &[u8]) -> String {
    let start = Timestamp::from_millis(1_795_255_200_000);
    let hour = LogHour::containing(start);
    let day = LogDay::containing(hour);
    match DaySummary::parse(day, &Bytes::copy_from_slice(bytes)) {
        Some(summary) => debug(&(summary.hour_digest(hour) == 0)),
        None => "none".to_owned(),
    }
}
