//! A request to an endpoint, as pages show it.

use std::collections::BTreeMap;

use maud::{Markup, html};
use posthaste_core::api::TestRequest;

use crate::display::{foreign_cut, foreign_text};
use crate::parts::body_block;
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;

/// The columns.
const COLUMNS: [TableColumn; 2] = [Text("Header"), Text("Value")];

/// Most characters of a header's value.
const VALUE_CHARS_MAX: usize = 1_000;

/// Most bytes of the rows of a table of headers, so that the page stays short.
const ROWS_BYTES_MAX: usize = 24_000;

/// The line, the headers and the body of a request.
pub(super) fn request_part(request: &TestRequest) -> Markup {
    html! {
        p { code { (foreign_text(&request.method)) " " (foreign_text(&request.url)) } }
        (headers_table("Headers of the request", &request.headers))
        (body_block("Body of the request", &request.body))
    }
}

/// The headers of a request or of an answer, as far as there is room.
pub(super) fn headers_table(label: &str, headers: &BTreeMap<String, String>) -> Markup {
    let rows = header_rows(headers);
    let shown = rows.len();
    html! {
        (data_table(label, &COLUMNS, rows))
        @if shown < headers.len() {
            p.hint { "The first " (shown) " of " (headers.len()) " headers are shown." }
        }
    }
}

/// The rows for which there is room.
fn header_rows(headers: &BTreeMap<String, String>) -> Vec<[Markup; COLUMNS.len()]> {
    let mut bytes = 0;
    let rows = headers.iter().map(|(name, value)| header_row(name, value));
    rows.take_while(|[name, value]| {
        bytes += name.0.len() + value.0.len();
        bytes <= ROWS_BYTES_MAX
    })
    .collect()
}

fn header_row(name: &str, value: &str) -> [Markup; COLUMNS.len()] {
    [
        html! { code { (foreign_cut(name, VALUE_CHARS_MAX)) } },
        foreign_cut(value, VALUE_CHARS_MAX),
    ]
}
