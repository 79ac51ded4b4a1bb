//! `attempts list --follow`: the newest attempts, and then each new one, until a signal ends the
//! process.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use posthaste_core::api::events::{RecordPage, RecordView};
use posthaste_core::model::visible::visible_line;
use posthaste_core::model::{Timestamp, WrittenTime};
use serde_json::json;

use crate::cli::RecordFilterArgs;
use crate::client::ClientError;
use crate::commands::records::{ATTEMPT_HEADER, RecordsRequest, attempt_row, wanted_count};
use crate::commands::session::AdminSession;
use crate::commands::waiting::{LOOK_EVERY, sleep_for, until_answered};
use crate::error::{CommandError, CommandFailure};
use crate::output::CommandReply;
use crate::terminal::{StandardStream, TerminalText, tell_user};

/// Columns of the cells of a line. The texts behind them are as long as they are.
const WIDTHS: [usize; ATTEMPT_HEADER.len()] = [24, 13, 6, 8, 7, 0, 0, 0];

/// Error of a tail that cannot be printed.
#[derive(Debug, thiserror::Error)]
#[error("failed to write to standard output")]
struct PrintError(#[source] io::Error);

impl CommandFailure for PrintError {}

/// Records that were printed, as far back as others may still come between them.
#[derive(Debug, Default)]
struct RecordTail {
    seen: BTreeMap<String, Timestamp>,
    /// Time before which the log had every record at the last look.
    complete_until: Option<Timestamp>,
}

/// Follows until it fails for good or the reader of the output is gone. A signal ends the process
/// as it lies. A first look that fails is the end, since it may be the command that is wrong.
pub(super) fn run(
    session: &AdminSession,
    path: &[&str],
    which: &RecordFilterArgs,
    is_json: bool,
) -> Result<CommandReply, CommandError> {
    let mut tail = RecordTail::default();
    // Whole pages: the last attempts are few, and those that others may still come between are
    // many.
    let pages = RecordFilterArgs {
        all: true,
        ..which.clone()
    };
    let question = RecordsRequest {
        path,
        subscription: None,
        which: &pages,
    };
    let first = question.read_records(session, |page| {
        page.records.len() >= wanted_count(which) && is_past_doubt(page)
    })?;
    first.note.iter().for_each(|note| tell_user(note));
    let mut fresh = tail.take_new_records(first);
    fresh.drain(..fresh.len().saturating_sub(wanted_count(which)));
    let mut is_read = (is_json
        || print_line(&TerminalText::from_text(&format_row(
            &ATTEMPT_HEADER.map(str::to_uppercase),
        )))?)
        && print_records(&fresh, is_json)?;
    let session = session.without_retries();
    while is_read {
        sleep_for(LOOK_EVERY);
        let later = RecordFilterArgs {
            from: tail.complete_until.map(WrittenTime::At),
            all: true,
            ..which.clone()
        };
        let question = RecordsRequest {
            which: &later,
            ..question
        };
        let page = until_answered(
            || question.read_records(&session, |_| false),
            report_and_wait,
        )?;
        is_read = print_records(&tail.take_new_records(page), is_json)?;
    }
    Ok(CommandReply::without_json())
}

/// Whether a page reaches back to a time before which nothing can be missing.
fn is_past_doubt(page: &RecordPage) -> bool {
    page.records
        .last()
        .is_some_and(|oldest| oldest.time < page.complete_until)
}

impl RecordTail {
    /// The records that were not there at the last look, the oldest first. Those from before the
    /// time up to which the log is complete now will not be asked for again, and are forgotten.
    fn take_new_records(&mut self, page: RecordPage) -> Vec<RecordView> {
        let mut fresh = page.records;
        fresh.retain(|record| {
            self.seen
                .insert(record.record_id.clone(), record.time.0)
                .is_none()
        });
        fresh.sort_by(|a, b| (a.time, &a.record_id).cmp(&(b.time, &b.record_id)));
        let complete_until = self.complete_until.max(Some(page.complete_until.0));
        self.seen.retain(|_, time| Some(*time) >= complete_until);
        self.complete_until = complete_until;
        fresh
    }
}

/// Prints records. Answers whether there is a reader for more.
fn print_records(records: &[RecordView], is_json: bool) -> Result<bool, PrintError> {
    for record in records {
        let shown = if is_json {
            TerminalText::from_json(json!(record))
        } else {
            TerminalText::from_text(&format_row(&attempt_row(record)))
        };
        if !print_line(&shown)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Cells on a line of its own.
fn format_row(cells: &[String; ATTEMPT_HEADER.len()]) -> String {
    let cells = cells
        .iter()
        .zip(WIDTHS)
        .map(|(cell, width)| format!("{:width$}", visible_line(cell)));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

/// Prints a line at once, also into a pipe. Answers whether anything reads it.
fn print_line(shown: &TerminalText) -> Result<bool, PrintError> {
    match StandardStream::Output.write_line(shown) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(PrintError(error)),
    }
}

/// Says why nothing is printed, and waits.
fn report_and_wait(error: &ClientError, wait: Duration) {
    tell_user(&format!("{error}; the next try is in {} s", wait.as_secs()));
    sleep_for(wait);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn record(id: &str, second: u32) -> Value {
        let time = format!("2026-11-21T10:00:{second:02}.000Z");
        json!({
            "recordId": id, "time": time, "kind": "attempt", "id": "order-1", "subscription": "billing",
            "result": "retry", "reason": "Busy", "status": 503, "durationMs": 87, "attempt": 1,
            "origin": "first", "key": "k-0", "acceptedAt": time, "answer": "try\n\u{1b}later",
        })
    }

    fn page(complete: u32, records: &[(&str, u32)]) -> RecordPage {
        let records: Vec<_> = records
            .iter()
            .map(|(id, second)| record(id, *second))
            .collect();
        let until = format!("2026-11-21T10:00:{complete:02}.000Z");
        serde_json::from_value(json!({ "records": records, "completeUntil": until })).unwrap()
    }

    fn ids(records: &[RecordView]) -> String {
        records
            .iter()
            .map(|record| record.record_id.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Record that comes into the log after newer ones were printed is printed once as well.
    #[test]
    fn late_records_are_printed_once_and_oldest_first() {
        let mut tail = RecordTail::default();
        assert_eq!(
            ids(&tail.take_new_records(page(5, &[("c", 7), ("a", 4), ("b", 4)]))),
            "a b c"
        );
        // `d` lies before what was printed, and came into the log only now.
        assert_eq!(
            ids(&tail.take_new_records(page(6, &[("e", 9), ("c", 7), ("d", 6)]))),
            "d e"
        );
        assert_eq!(
            ids(&tail.take_new_records(page(8, &[("e", 9), ("c", 7)]))),
            ""
        );
        assert_eq!(tail.seen.keys().collect::<Vec<_>>(), ["e"]);
    }

    #[test]
    fn a_clock_that_was_set_back_repeats_nothing() {
        let mut tail = RecordTail::default();
        tail.take_new_records(page(8, &[("a", 9)]));
        assert_eq!(
            ids(&tail.take_new_records(page(2, &[("b", 9), ("a", 9)]))),
            "b"
        );
        assert_eq!(
            tail.complete_until,
            Timestamp::parse("2026-11-21T10:00:08Z").ok()
        );
    }

    #[test]
    fn a_first_look_goes_back_to_where_nothing_can_be_missing() {
        assert!(is_past_doubt(&page(5, &[("b", 7), ("a", 4)])));
        assert!(!is_past_doubt(&page(5, &[("b", 7), ("a", 5)])));
        assert!(!is_past_doubt(&page(5, &[])));
    }

    #[test]
    fn a_record_is_one_line_under_the_header() {
        let page = page(0, &[("a", 1)]);
        let expected = "2026-11-21T10:00:01.000Z  retry          503     87 ms     1        order-1  Busy  \
            try ⟦U+001B⟧later";
        assert_eq!(format_row(&attempt_row(&page.records[0])), expected);
        let header = "TIME                      RESULT         STATUS  TOOK      ATTEMPT  EVENT  OUTCOME  ANSWER";
        assert_eq!(format_row(&ATTEMPT_HEADER.map(str::to_uppercase)), header);
    }
}
