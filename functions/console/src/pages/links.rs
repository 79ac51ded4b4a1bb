//! Links and subscriptions that are not well.

mod search;
mod words;

use maud::{Markup, html};
use posthaste_core::api::{LinkScope, LinkState, LinkView, LinksView, SlowTargetView};

use self::search::LinkSearch;
pub(crate) use self::words::{badge, meaning};
use crate::address;
use crate::api::Target;
use crate::asked::Query;
use crate::console::Pages;
use crate::filters::{ROWS_MAX, pager};
use crate::page::{Answer, Page, Section};
use crate::pages::subscription::waiting::in_words;
use crate::shown::{foreign, number, time};
use crate::table::Column::{self, Number, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [Column; 7] = [
    Text("Link or subscription"),
    Text("State"),
    Text("Since"),
    Text("Last failure"),
    Number("Failures"),
    Text("Next try"),
    Number("Waiting events"),
];

/// The columns of those that take the slow lane.
const SLOW_COLUMNS: [Column; 2] = [Text("Link or subscription"), Text("Until at least")];

/// Most rows that the API answers.
const ROWS_KNOWN_MAX: usize = 1_000;

/// The page.
pub(crate) async fn links(pages: Pages, Query(search): Query<LinkSearch>) -> Answer {
    let view: LinksView = pages.api.get(Target::new(&["links"])).await?;
    let found: Vec<_> = view
        .links
        .iter()
        .filter(|link| search.selects(link))
        .collect();
    let shown: Vec<_> = found
        .iter()
        .copied()
        .skip(search.after)
        .take(ROWS_MAX)
        .collect();
    let end = search.after + shown.len();
    let body = html! {
        @if !view.links.is_empty() { (search.form()) }
        section #links data-live aria-label="Links" {
            @if view.links.is_empty() {
                p.empty { "Every link and subscription is well, and nothing is held." }
            } @else if found.is_empty() {
                p.empty { "No link or subscription is like this. Change the filters." }
            } @else if shown.is_empty() {
                p.empty { "There are no more rows." }
            } @else {
                (table("Links that are not well", &COLUMNS, shown.iter().map(|link| row(link))))
            }
            @if view.truncated { (left_out(view.links.len())) }
            @if !view.slow.is_empty() { (slow(&view.slow)) }
        }
        (pager((search.after > 0).then(|| search.page(0)), (end < found.len()).then(|| search.page(end))))
    };
    Ok(Page::new("Links", body).of(Section::Links))
}

/// Those that take the slow lane.
fn slow(targets: &[SlowTargetView]) -> Markup {
    html! {
        h2 { "Slow lane" }
        p.hint {
            "These answer slowly. Their deliveries have a queue of their own, so that no others wait for them."
        }
        (table("Slow links", &SLOW_COLUMNS, targets.iter().map(slow_row)))
    }
}

fn slow_row(slow: &SlowTargetView) -> Markup {
    html! {
        tr {
            td {
                @if let (Some(topic), Some(name)) = (&slow.topic, &slow.subscription) {
                    a href=(address::subscription(topic.as_str(), name.as_str(), &[])) { (topic) " / " (name) }
                    br;
                }
                span.hint { (foreign(&slow.link)) }
            }
            td { (time(slow.slow_until.0)) }
        }
    }
}

/// The note where the API left rows out.
fn left_out(rows: usize) -> Markup {
    html! {
        p.hint {
            @if rows < ROWS_KNOWN_MAX {
                "There are more held objects than the server counts, so rows may be missing."
            } @else {
                "Only the first 1,000 rows are shown and searched; there are more."
            }
        }
    }
}

/// Whether requests to a link or subscription failed, and it does not recover yet. The row of a
/// paused subscription hides its health, but not since when its requests fail.
pub(crate) fn is_down(link: &LinkView) -> bool {
    link.failing_since.is_some() && link.state != LinkState::Recovering
}

fn row(link: &LinkView) -> Markup {
    let failures = link.failures.map(|failures| number(failures.into()));
    html! {
        tr {
            td { (target(link)) }
            td { (badge(link.state)) br; span.hint { (meaning(link.state)) } }
            td { @if let Some(since) = &link.since { (time(since.0)) } }
            td {
                @if let Some(outcome) = &link.last_outcome { (outcome) }
                @if let Some(status) = link.last_http_status_code { " " (status) }
            }
            td.number { (failures.unwrap_or_default()) }
            td { @if let Some(next) = &link.next_probe { (time(next.0)) } }
            td.number { @if let Some(waiting) = link.waiting.as_deref() { (in_words(waiting)) } }
        }
    }
}

/// The link or subscription, with a link to its page.
pub(crate) fn target(link: &LinkView) -> Markup {
    let address = link.link.as_deref().unwrap_or("(not known)");
    html! {
        @match (&link.topic, &link.subscription) {
            (Some(topic), Some(name)) => {
                a href=(address::subscription(topic.as_str(), name.as_str(), &[])) { (topic) " / " (name) }
                br;
                span.hint { (foreign(address)) }
            }
            _ => {
                (foreign(address))
                @if link.scope == LinkScope::Link { br; span.hint { "everything on this link" } }
            }
        }
    }
}
