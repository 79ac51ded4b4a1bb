//! Records of the delivery log, as `events list` and `attempts list` ask for them and show them.

use posthaste_core::api::events::{RecordPage, RecordView};
use posthaste_core::delivery_log::RecordKind;
use serde_json::json;
use ureq::http::Method;

use super::session::AdminSession;
use crate::cli::RecordFilterArgs;
use crate::client::ClientError;
use crate::commands::period::query_period;
use crate::output::CommandReply;

/// Most records on one page.
const PAGE_MAX: usize = 1_000;

/// Most characters of a cell with a text of an endpoint.
const TEXT_CHARS_MAX: usize = 60;

/// Columns of a list of attempts.
pub(super) const ATTEMPT_HEADER: [&str; 8] = [
    "time", "result", "status", "took", "attempt", "event", "outcome", "answer",
];

/// A list of records.
pub(super) struct RecordsRequest<'a> {
    pub(super) path: &'a [&'a str],
    pub(super) subscription: Option<&'a String>,
    pub(super) which: &'a RecordFilterArgs,
}

impl RecordsRequest<'_> {
    /// The newest records, page after page, until there are enough of them or no more. If there are
    /// more, the answer has a cursor.
    pub(super) fn read_records(
        &self,
        session: &AdminSession,
        is_enough: impl Fn(&RecordPage) -> bool,
    ) -> Result<RecordPage, ClientError> {
        let mut all = self.read_page(session, None, 0)?;
        while !is_enough(&all) {
            let Some(cursor) = all.cursor.take() else {
                break;
            };
            let page = self.read_page(session, Some(cursor), all.records.len())?;
            all.records.extend(page.records);
            all.cursor = page.cursor;
            all.note = join_notes(all.note, page.note);
        }
        Ok(all)
    }

    fn read_page(
        &self,
        session: &AdminSession,
        cursor: Option<String>,
        had: usize,
    ) -> Result<RecordPage, ClientError> {
        let RecordFilterArgs {
            result,
            event_type,
            status,
            webhook_id,
            from,
            to,
            ..
        } = self.which;
        let [from, to] = query_period(*from, *to);
        let call = session
            .call(Method::GET, self.path)
            .query("subscription", self.subscription)
            .query("result", result.as_ref())
            .query("type", event_type.as_ref())
            .query("status", status.as_ref())
            .query("webhookId", webhook_id.as_ref())
            .query("from", from)
            .query("to", to)
            .query(
                "limit",
                Some(
                    wanted_count(self.which)
                        .saturating_sub(had)
                        .clamp(1, PAGE_MAX),
                ),
            )
            .query("cursor", cursor);
        session.client.send_for_json(call)
    }
}

/// The number of records that are asked for.
pub(super) fn wanted_count(which: &RecordFilterArgs) -> usize {
    which
        .limit
        .filter(|_| !which.all)
        .map_or(usize::MAX, |limit| limit as usize)
}

/// The advice where a list ends before the log does.
fn more_hint(page: &RecordPage) -> Option<String> {
    page.cursor
        .is_some()
        .then(|| "There are more: --all lists them, or a larger --limit.".to_owned())
}

/// The reply to a list of records, each of them a row; or `none` where there is no record.
pub(super) fn records_reply<const N: usize>(
    page: &RecordPage,
    header: [&'static str; N],
    row: impl Fn(&RecordView) -> [String; N],
    none: String,
) -> CommandReply {
    let rows = page.records.iter().map(row).collect();
    let reply = CommandReply::new(json!(page)).list(header, rows, none);
    let reply = reply.note(format!(
        "The log is complete up to {}.",
        page.complete_until.0
    ));
    page.note
        .clone()
        .into_iter()
        .chain(more_hint(page))
        .fold(reply, CommandReply::note)
}

/// An attempt in a list.
pub(super) fn attempt_row(record: &RecordView) -> [String; 8] {
    [
        record.time.0.to_string(),
        record.result.as_str().to_owned(),
        status_cell(record.status),
        duration_cell(record.duration_ms),
        record.attempt.to_string(),
        record.id.clone().unwrap_or_default(),
        record.reason.clone().unwrap_or_default(),
        response_cell(record.answer.as_ref(), record.error.as_ref()),
    ]
}

/// The attempt of a record, or which change it is.
pub(super) fn kind_cell(record: &RecordView) -> String {
    match record.kind {
        RecordKind::Attempt => format!("attempt {}", record.attempt),
        change => change.as_str().to_owned(),
    }
}

/// A length of time in a cell.
pub(super) fn duration_cell(duration_ms: Option<u32>) -> String {
    duration_ms.map(|ms| format!("{ms} ms")).unwrap_or_default()
}

/// A status in a cell.
pub(super) fn status_cell(status: Option<u16>) -> String {
    status.map(|status| status.to_string()).unwrap_or_default()
}

/// The beginning of an answer on one line, or the failure in words where there was none.
pub(super) fn response_cell(answer: Option<&String>, error: Option<&String>) -> String {
    let text = answer.or(error).map(String::as_str).unwrap_or_default();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// The notes of two pages. Most pages have the same.
fn join_notes(first: Option<String>, second: Option<String>) -> Option<String> {
    match (first, second) {
        (Some(first), Some(second)) if !first.contains(&second) => {
            Some(format!("{first} {second}"))
        }
        (first, second) => first.or(second),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_cut_to_one_short_line() {
        let check = |text: &str, expected: &str| {
            assert_eq!(response_cell(Some(&text.to_owned()), None), expected);
        };
        check("try\r\n\tlater ", "try later");
        check(&"ü".repeat(60), &"ü".repeat(60));
        check(&"ü".repeat(61), &("ü".repeat(60) + "…"));
        assert_eq!(
            response_cell(None, Some(&"connection refused".to_owned())),
            "connection refused"
        );
        assert_eq!(response_cell(None, None), "");
    }

    #[test]
    fn notes_of_pages_are_said_once() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(join_notes(some("a."), some("a.")), some("a."));
        assert_eq!(join_notes(some("a."), some("b.")), some("a. b."));
        assert_eq!(join_notes(None, some("b.")), some("b."));
    }

    #[test]
    fn all_wins_over_a_limit() {
        let which = |limit, all| RecordFilterArgs {
            limit,
            all,
            ..RecordFilterArgs::default()
        };
        assert_eq!(wanted_count(&which(Some(7), false)), 7);
        assert_eq!(wanted_count(&which(Some(7), true)), usize::MAX);
    }
}
