//! The last attempts of a subscription: a chart of their response times, and a table.

use std::time::Duration;

use maud::{Markup, html};
use posthaste_core::api::events::{RecordPage, RecordView};
use posthaste_core::delivery_log::LogResult;
use posthaste_core::model::Timestamp;

use super::in_url::SubscriptionInUrl;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi};
use crate::chart::{ChartDot, ChartUnit, DotChart};
use crate::display::{CELL_CHARS_MAX, foreign_cut, number, relative_time, time_tag};
use crate::page::problem_box;
use crate::recent::ChartWindow;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;
use crate::words::{RESPONSE_TIME, result_word};

/// Attempts that are asked for, all of which the chart shows.
const ATTEMPTS_MAX: usize = 200;

/// Attempts that the table shows.
const ROWS_MAX: usize = 20;

/// The age of the oldest attempt that is asked for, as the API's parameter and in hours. Without a
/// bound, the log of a subscription without attempts would be read to its beginning.
const AGE_MAX: &str = "24h";
const HOURS_MAX: u32 = 24;

/// The time in which attempts are searched. The page refreshes every few seconds, and the rest of it
/// does not wait for a long log.
const SEARCH_TIME: Duration = Duration::from_secs(1);

/// Longest address of an event in a link of the table: ids may be long, and a page is not.
const ADDRESS_BYTES_MAX: usize = 500;

/// Most characters of the log's own note.
const NOTE_CHARS_MAX: usize = 1_000;

/// The columns.
const COLUMNS: [TableColumn; 6] = [
    Text("Time"),
    Text("Result"),
    Text("Answer"),
    Number(RESPONSE_TIME),
    Text("Event"),
    Number("Attempt"),
];

/// The last attempts, or the reason for which they are not known.
pub(super) struct LastAttempts(Result<RecordPage, ApiRefusal>);

impl LastAttempts {
    /// Loads them.
    pub(super) async fn load(api: &ManageApi, named: SubscriptionInUrl<'_>) -> Self {
        let target = named
            .request_target(&["attempts"])
            .query("limit", Some(ATTEMPTS_MAX))
            .query("from", Some(AGE_MAX));
        Self(api.within(SEARCH_TIME).get(target).await)
    }

    /// The chart and the table.
    pub(super) fn render(&self, named: SubscriptionInUrl<'_>, now: Timestamp) -> Markup {
        let page = match &self.0 {
            Ok(page) => page,
            Err(refusal) => {
                return html! { p { "The last attempts are not known now." } (problem_box(refusal)) };
            }
        };
        html! {
            @if page.records.is_empty() {
                p.empty { (empty_note(page, named)) }
            } @else {
                (response_chart(page, now))
                (data_table("Last attempts", &COLUMNS, page.records.iter().take(ROWS_MAX)
                    .map(|record| attempt_row(named.topic, record, now))))
                @if let Some(note) = &page.note { p.hint { (foreign_cut(note, NOTE_CHARS_MAX)) } }
                @if page.cursor.is_some() && page.records.len() < ATTEMPTS_MAX { p.hint { (unsearched_note(page, named)) } }
            }
            div.actions {
                a.button href=(named.list_path("events")) { "Events and attempts" }
                a.button href=(named.list_path("dead-letters")) { "Dead letters" }
            }
        }
    }
}

fn empty_note(page: &RecordPage, named: SubscriptionInUrl<'_>) -> Markup {
    html! {
        @if let Some(note) = &page.note {
            (foreign_cut(note, NOTE_CHARS_MAX))
        } @else if page.cursor.is_some() {
            "No attempt was found so far. " (unsearched_note(page, named))
        } @else {
            "There was no attempt within 24 hours."
        }
    }
}

/// Says how far back the log was searched, with the way on.
fn unsearched_note(page: &RecordPage, named: SubscriptionInUrl<'_>) -> Markup {
    html! {
        "Attempts before "
        @if let Some(searched) = &page.searched_back_to { (time_tag(searched.0)) } @else { "these" }
        " were not searched within a second. "
        a href=(named.list_path("events")) { "Search further back" }
    }
}

fn response_chart(page: &RecordPage, now: Timestamp) -> Markup {
    let oldest = page.records.last().map(|record| record.time.0);
    let hour = ChartWindow::last_hours(1, now);
    let is_recent = oldest.is_some_and(|oldest| hour.time_range().contains(&oldest));
    let window = if is_recent {
        hour
    } else {
        ChartWindow::last_hours(HOURS_MAX, now)
    };
    let dots: Vec<_> = page.records.iter().filter_map(attempt_dot).collect();
    let chart = DotChart {
        title: format!("Response times of the last {} attempts", dots.len()),
        unit: ChartUnit::Millis,
        dots,
    };
    html! { div.charts { (chart.render(&window)) } }
}

fn attempt_dot(record: &RecordView) -> Option<ChartDot> {
    Some(ChartDot {
        at: record.time.0,
        value: f64::from(record.duration_ms?),
        is_failure: record.result != LogResult::Delivered,
    })
}

fn attempt_row(topic: &str, record: &RecordView, now: Timestamp) -> [Markup; 6] {
    let duration = record.duration_ms.map(|it| number(it.into()));
    [
        relative_time(record.time.0, now),
        result_cell(record),
        answer_cell(record),
        html! { @if let Some(duration) = duration { (duration) " ms" } },
        event_cell(topic, record),
        html! { (record.attempt) },
    ]
}

fn result_cell(record: &RecordView) -> Markup {
    html! {
        (result_word(record.result).badge())
        @if let Some(reason) = &record.reason { " " span.hint { (foreign_cut(reason, CELL_CHARS_MAX)) } }
    }
}

fn answer_cell(record: &RecordView) -> Markup {
    let text = record.answer.as_ref().or(record.error.as_ref());
    html! {
        @if let Some(status) = record.status { (status) " " }
        @if let Some(text) = text { (foreign_cut(text, CELL_CHARS_MAX)) }
    }
}

fn event_cell(topic: &str, record: &RecordView) -> Markup {
    let Some(id) = record.id.as_deref() else {
        return html! { span.hint { "not known" } };
    };
    let address = PageAddress::for_event(topic, id).to_string();
    let shown = foreign_cut(id, CELL_CHARS_MAX);
    html! {
        @if address.len() <= ADDRESS_BYTES_MAX { a href=(address) { (shown) } } @else { (shown) }
    }
}
