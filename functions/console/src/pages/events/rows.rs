//! Records of the delivery log as rows.

use maud::{Markup, html};
use posthaste_core::api::events::RecordView;
use posthaste_core::delivery_log::{LogResult, RecordKind};

use super::words::result_word;
use crate::address::PageAddress;
use crate::display::{CELL_CHARS_MAX, cell_text, foreign_cut, number, time_tag};
use crate::pages::search::search_address;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;

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
pub(super) fn record_table(topic: &str, records: &[RecordView]) -> Markup {
    let mut links = EventLinks {
        topic,
        bytes_left: LINK_BYTES_MAX,
    };
    data_table(
        "Records of deliveries",
        &COLUMNS,
        records.iter().map(|record| record_row(record, &mut links)),
    )
}

fn record_row(record: &RecordView, links: &mut EventLinks<'_>) -> [Markup; 8] {
    let duration = record.duration_ms.map(|duration| number(duration.into()));
    [
        time_tag(record.time.0),
        links.event_link(record),
        cell_text(record.event_type.as_deref()).unwrap_or_default(),
        foreign_cut(&record.subscription, CELL_CHARS_MAX),
        result_badge(record),
        html! { @if let Some(status) = record.status { (status) } },
        html! { (duration.unwrap_or_default()) },
        html! {
            @if !matches!(record.kind, RecordKind::Accepted | RecordKind::Waiting) {
                @if record.kind != RecordKind::Attempt { "after " }
                (record.attempt)
            }
        },
    ]
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
    bytes_left: usize,
}

impl EventLinks<'_> {
    /// The event of a record. Where its id is too long for one more link, the link searches for its
    /// request.
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
        match webhook_id {
            Some(webhook_id) => html! { a href=(search_address(webhook_id)) { (shown) } },
            None => shown,
        }
    }
}
