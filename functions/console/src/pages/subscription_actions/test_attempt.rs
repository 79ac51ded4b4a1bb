//! The attempt with a test event.

use std::collections::BTreeMap;

use maud::{Markup, html};
use posthaste_core::api::TestAttempt;

use crate::display::{foreign_cut, foreign_text, number};
use crate::parts::{body_block, fact};
use crate::table::TableColumn::{self, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [TableColumn; 2] = [Text("Header"), Text("Value")];

/// Most characters of a header's value.
const VALUE_CHARS_MAX: usize = 1_000;

/// Most bytes of the rows of a table of headers, so that the page stays short.
const ROWS_BYTES_MAX: usize = 24_000;

/// Most characters of a reason.
const REASON_CHARS_MAX: usize = 1_000;

pub(super) fn attempt_facts(attempt: &TestAttempt) -> Markup {
    let (class, word) = if attempt.delivered {
        ("good", "delivered")
    } else {
        ("bad", "not delivered")
    };
    html! {
        dl.facts {
            (fact("Result", &html! { span class={ "badge " (class) } { (word) } }))
            (fact("Outcome", &foreign_text(&attempt.outcome)))
            @if let Some(failure) = &attempt.failure {
                (fact("Reason", &foreign_cut(failure, REASON_CHARS_MAX)))
            }
            (fact("Time", &html! { (number(attempt.took_ms)) " ms" }))
        }
        h2 { "Request" }
        p { code { (foreign_text(&attempt.request.method)) " " (foreign_text(&attempt.request.url)) } }
        (headers_table("Headers of the request", &attempt.request.headers))
        (body_block("Body of the request", &attempt.request.body))
        h2 { "Answer" }
        @match &attempt.response {
            None => p.empty { "The endpoint did not answer." },
            Some(response) => {
                p { "Status " strong { (response.status) } }
                (headers_table("Headers of the answer", &response.headers))
                (body_block("Body of the answer", &response.body))
                @if !response.body_is_whole { p.hint { "The endpoint sent more than was read." } }
            }
        }
    }
}

fn headers_table(label: &str, headers: &BTreeMap<String, String>) -> Markup {
    let rows = header_rows(headers);
    let shown = rows.len();
    html! {
        (table(label, &COLUMNS, rows))
        @if shown < headers.len() {
            p.hint { "The first " (shown) " of " (headers.len()) " headers are shown." }
        }
    }
}

/// The rows for which there is room.
fn header_rows(headers: &BTreeMap<String, String>) -> Vec<Markup> {
    let mut bytes = 0;
    let rows = headers.iter().map(|(name, value)| header_row(name, value));
    rows.take_while(|row| {
        bytes += row.0.len();
        bytes <= ROWS_BYTES_MAX
    })
    .collect()
}

fn header_row(name: &str, value: &str) -> Markup {
    html! {
        tr {
            td { code { (foreign_cut(name, VALUE_CHARS_MAX)) } }
            td { (foreign_cut(value, VALUE_CHARS_MAX)) }
        }
    }
}
