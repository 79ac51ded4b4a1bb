//! The words of the console, with those that the API, the command line and the documents have for the
//! same.

use axum::routing::get;
use maud::{Markup, html};

use crate::console::PageRoutes;
use crate::page::ConsolePage;
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;
use crate::words::{RESPONSE_TIME, RETRY_NOW, WAITING_FOR_RECOVERY, WAITING_FOR_RETRY};

/// The columns.
const COLUMNS: [TableColumn; 3] = [Text("Word"), Text("Also called"), Text("Meaning")];

/// A word that pages show, with its other names and its meaning.
struct GlossaryEntry {
    /// The last part of the word's address.
    anchor: &'static str,
    word: &'static str,
    others: &'static str,
    meaning: &'static str,
}

/// The words of states and figures.
const ENTRIES: [GlossaryEntry; 16] = [
    entry(
        "healthy",
        "healthy",
        "well, closed",
        "The events of the subscription arrive.",
    ),
    entry(
        "glitch",
        "failing",
        "glitch",
        "Requests failed or were refused just now. They pause for a minute at a time, and events stay in the queue.",
    ),
    entry(
        "retry-after",
        "asked to wait",
        "retryAfter, pause",
        "The endpoint asked for a pause, by Retry-After. Events stay in the queue until it is over.",
    ),
    entry(
        "down",
        "down",
        "retry",
        "Requests have failed or were refused for minutes. They pause for longer, and events wait until it recovers.",
    ),
    entry(
        "recovering",
        "recovering",
        "",
        "The endpoint answered again, or an operator asked for a retry. Requests go out little by little.",
    ),
    entry(
        "held",
        WAITING_FOR_RECOVERY,
        "held",
        "The event waits because its endpoint is down, or its subscription is paused or has no consent.",
    ),
    entry(
        "parked",
        WAITING_FOR_RETRY,
        "parked",
        "The next attempt is more than 15 minutes ahead.",
    ),
    entry(
        "force",
        RETRY_NOW,
        "force",
        "Ends the pauses of an endpoint: what waits is tried again at once, little by little.",
    ),
    entry(
        "tarpit",
        "slowed",
        "tarpit",
        "Producers wait for their acknowledgement, longer with each poll, because a resource is under pressure.",
    ),
    entry(
        "response-time",
        RESPONSE_TIME,
        "answers, duration",
        "The time from sending a request to the end of its answer.",
    ),
    entry(
        "delivery-id",
        "delivery id",
        "delivery key",
        "Names one event on its way to one subscription, with all its attempts.",
    ),
    entry(
        "link",
        "link",
        "host",
        "Scheme, host and port of endpoints. What fails on it affects every subscription on it.",
    ),
    entry(
        "dead-letter",
        "dead letter",
        "given up",
        "An event that was given up and is kept, with the reason, so that it can be sent again.",
    ),
    entry(
        "replay",
        "replay",
        "redrive",
        "Sends many events again to their subscription, at a rate.",
    ),
    entry(
        "resend",
        "send again",
        "resend",
        "Sends one event again to one subscription, at once.",
    ),
    entry(
        "pressure",
        "pressure",
        "load",
        "How full queues, disk and memory are: it decides which producers wait or are refused.",
    ),
];

const fn entry(
    anchor: &'static str,
    word: &'static str,
    others: &'static str,
    meaning: &'static str,
) -> GlossaryEntry {
    GlossaryEntry {
        anchor,
        word,
        others,
        meaning,
    }
}

/// The routes of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/words", get(show_page))
}

/// The page.
async fn show_page() -> ConsolePage {
    let body = html! {
        p { "The second column has the words of the API, of the command line, of settings and of the documents." }
        (data_table("Words", &COLUMNS, ENTRIES.iter().map(entry_cells)))
    };
    ConsolePage::new("Words", body)
}

fn entry_cells(entry: &GlossaryEntry) -> [Markup; 3] {
    [
        html! { strong id=(entry.anchor) { (entry.word) } },
        html! { (entry.others) },
        html! { (entry.meaning) },
    ]
}
