//! Records of the delivery log as rows.

use maud::{Markup, html};
use posthaste_core::api::events::RecordView;
use posthaste_core::delivery_log::{LogResult, RecordKind};

use super::search::EventSearch;
use super::words::result_word;
use crate::address::PageAddress;
use crate::display::{CELL_CHARS_MAX, foreign_cut, number, time_tag};
use crate::table::TableColumn::{self, Number, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [TableColumn; 8] = [
    Text("Time"),
    Text("Event"),
    Text("Type"),
    Text("Subscription"),
    Text("Result"),
    Number("Status"),
    Number("Duration, ms"),
    Number("Attempt"),
];

/// Most bytes that the links of one table take, since ids may be long.
const LINK_BYTES_MAX: usize = 48_000;

/// Longest `webhook-id` in such a link.
const WEBHOOK_ID_BYTES_MAX: usize = 200;

/// The rows.
pub(super) fn record_table(topic: &str, search: &EventSearch, records: &[RecordView]) -> Markup {
    let mut links = EventLinks {
        topic,
        search,
        bytes_left: LINK_BYTES_MAX,
    };
    table(
        "Records of deliveries",
        &COLUMNS,
        records.iter().map(|record| record_row(record, &mut links)),
    )
}

fn record_row(record: &RecordView, links: &mut EventLinks<'_>) -> Markup {
    let duration = record.duration_ms.map(|duration| number(duration.into()));
    html! {
        tr {
            td { (time_tag(record.time.0)) }
            td { (links.event_link(record)) }
            td { @if let Some(event_type) = &record.event_type { (foreign_cut(event_type, CELL_CHARS_MAX)) } }
            td { (foreign_cut(&record.subscription, CELL_CHARS_MAX)) }
            td { (result_badge(record)) }
            td.number { @if let Some(status) = record.status { (status) } }
            td.number { (duration.unwrap_or_default()) }
            td.number {
                @if !matches!(record.kind, RecordKind::Accepted | RecordKind::Waiting) {
                    @if record.kind != RecordKind::Attempt { "after " }
                    (record.attempt)
                }
            }
        }
    }
}

fn result_badge(record: &RecordView) -> Markup {
    let reason = record.reason.as_deref();
    let class = match record.result {
        LogResult::Delivered => "good",
        LogResult::Pending | LogResult::Held => "warn",
        LogResult::DeadLettered | LogResult::Dropped => "bad",
        LogResult::Retry | LogResult::Unmatched | LogResult::Unknown => "",
    };
    let is_written = record.kind == RecordKind::DeadLettered;
    html! {
        span class={ "badge " (class) } {
            @if is_written { "dead letter written" }
            @else if record.kind == RecordKind::Waiting { "waiting" }
            @else { (result_word(record.result)) }
        }
        @if let Some(reason) = reason { br; span.hint { (foreign_cut(reason, CELL_CHARS_MAX)) } }
    }
}

/// The links to events.
struct EventLinks<'a> {
    topic: &'a str,
    search: &'a EventSearch,
    bytes_left: usize,
}

impl EventLinks<'_> {
    /// The event of a record. Where its id is too long for one more link, it leads to the records of
    /// its request, which are few.
    fn event_link(&mut self, record: &RecordView) -> Markup {
        let Some(id) = record.id.as_deref() else {
            return html! { span.hint { "not known" } };
        };
        let shown = foreign_cut(id, CELL_CHARS_MAX);
        let address = PageAddress::for_event(self.topic, id).to_string();
        if let Some(left) = self.bytes_left.checked_sub(address.len()) {
            self.bytes_left = left;
            return html! { a href=(address) { (shown) } };
        }
        let webhook_id = record
            .webhook_id
            .as_ref()
            .filter(|it| it.len() <= WEBHOOK_ID_BYTES_MAX);
        let Some(webhook_id) = webhook_id else {
            return shown;
        };
        let topic = self.search.topic.clone();
        let narrow = EventSearch {
            topic,
            webhook_id: Some(webhook_id.clone()),
            ..EventSearch::default()
        };
        html! { a href=(narrow.page_address(None)) { (shown) } }
    }
}
