//! Unhealthy links and subscriptions.

mod search;
mod words;

use axum::routing::get;
use maud::{Markup, html};
use posthaste_core::api::{LinkScope, LinkState, LinkView, LinksView, SlowTargetView};

use self::search::LinkSearch;
pub(crate) use self::words::{state_badge, state_meaning};
use crate::address;
use crate::api::RequestTarget;
use crate::console::{PageContext, PageRoutes};
use crate::display::{foreign_text, number, time_tag};
use crate::extract::PageQuery;
use crate::filters::{ROWS_MAX, pager};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::pages::subscription::waiting::count_in_words;
use crate::table::TableColumn::{self, Number, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [TableColumn; 7] = [
    Text("Link or subscription"),
    Text("State"),
    Text("Since"),
    Text("Last failure"),
    Number("Failures"),
    Text("Next try"),
    Number("Waiting events"),
];

/// The columns of targets in the slow lane.
const SLOW_COLUMNS: [TableColumn; 2] = [Text("Link or subscription"), Text("Until at least")];

/// Most rows that the API returns.
const ROWS_KNOWN_MAX: usize = 1_000;

/// The routes of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/links", get(show_page))
}

/// The page.
async fn show_page(pages: PageContext, PageQuery(search): PageQuery<LinkSearch>) -> PageResult {
    let view: LinksView = pages.api.get(RequestTarget::new(&["links"])).await?;
    let found: Vec<_> = view
        .links
        .iter()
        .filter(|link| search.is_selected(link))
        .collect();
    let shown: Vec<_> = found
        .iter()
        .copied()
        .skip(search.after)
        .take(ROWS_MAX)
        .collect();
    let end = search.after + shown.len();
    let body = html! {
        @if !view.links.is_empty() { (search.filter_form()) }
        section #links data-live aria-label="Links" {
            @if view.links.is_empty() {
                p.empty { "Every link and subscription is well, and nothing is held." }
            } @else if found.is_empty() {
                p.empty { "No link or subscription is like this. Change the filters." }
            } @else if shown.is_empty() {
                p.empty { "There are no more rows." }
            } @else {
                (table("Links that are not well", &COLUMNS, shown.iter().map(|link| link_row(link))))
            }
            @if view.truncated { (left_out_note(view.links.len())) }
            @if !view.slow.is_empty() { (slow_section(&view.slow)) }
        }
        (pager((search.after > 0).then(|| search.page_address(0)), (end < found.len()).then(|| search.page_address(end))))
    };
    Ok(ConsolePage::new("Links", body).in_section(MenuSection::Links))
}

/// The targets in the slow lane.
fn slow_section(targets: &[SlowTargetView]) -> Markup {
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
                    a href=(address::subscription_path(topic.as_str(), name.as_str(), &[])) { (topic) " / " (name) }
                    br;
                }
                span.hint { (foreign_text(&slow.link)) }
            }
            td { (time_tag(slow.slow_until.0)) }
        }
    }
}

/// The note where the API left rows out.
fn left_out_note(rows: usize) -> Markup {
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

/// Whether requests to a link or subscription failed, and it is not recovering yet. The row of a
/// paused subscription hides its health, but not the time since which its requests fail.
pub(crate) fn is_down(link: &LinkView) -> bool {
    link.failing_since.is_some() && link.state != LinkState::Recovering
}

fn link_row(link: &LinkView) -> Markup {
    let failures = link.failures.map(|failures| number(failures.into()));
    html! {
        tr {
            td { (target_link(link)) }
            td { (state_badge(link.state)) br; span.hint { (state_meaning(link.state)) } }
            td { @if let Some(since) = &link.since { (time_tag(since.0)) } }
            td {
                @if let Some(outcome) = &link.last_outcome { (outcome) }
                @if let Some(status) = link.last_http_status_code { " " (status) }
            }
            td.number { (failures.unwrap_or_default()) }
            td { @if let Some(next) = &link.next_probe { (time_tag(next.0)) } }
            td.number { @if let Some(waiting) = link.waiting.as_deref() { (count_in_words(waiting)) } }
        }
    }
}

/// The link or subscription, with a link to its page.
pub(crate) fn target_link(link: &LinkView) -> Markup {
    let address = link.link.as_deref().unwrap_or("(not known)");
    html! {
        @match (&link.topic, &link.subscription) {
            (Some(topic), Some(name)) => {
                a href=(address::subscription_path(topic.as_str(), name.as_str(), &[])) { (topic) " / " (name) }
                br;
                span.hint { (foreign_text(address)) }
            }
            _ => {
                (foreign_text(address))
                @if link.scope == LinkScope::Link { br; span.hint { "everything on this link" } }
            }
        }
    }
}
