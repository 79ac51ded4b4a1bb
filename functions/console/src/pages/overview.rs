//! The state of the installation at a glance, and over the last hour.

pub(crate) mod charts;
mod data;
mod first_steps;
mod tiles;

use axum::routing::get;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::LinksView;

use self::data::load_overview;
use self::tiles::OverviewTiles;
use crate::api::ApiRefusal;
use crate::console::{ConsoleState, PATH, PageContext, PageRoutes};
use crate::display::number;
use crate::page::{ConsolePage, MenuSection};
use crate::pages::links::{is_down, target_link};
use crate::recent::RecentHistory;
use crate::visit::PageVisit;

/// Hours that the page shows.
const HOURS: u32 = 1;

/// Links that the page names.
const LINKS_NAMED_MAX: usize = 3;

/// The route of the front page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/", get(show_page))
}

/// The page.
async fn show_page(pages: PageContext, visit: PageVisit) -> ConsolePage {
    let recent = pages
        .history
        .as_deref()
        .map(|history| RecentHistory::read(history, HOURS, visit.now));
    let progress = first_steps::load_progress(&pages.api, recent.as_ref(), visit.now);
    let (progress, data) = join(progress, load_overview(&pages)).await;
    let body = html! {
        (first_steps::live_section(progress.as_ref()))
        section #overview data-live aria-label="Overview" {
            (OverviewTiles { data: &data, recent: recent.as_ref() }.render())
            (down_links(data.links.as_ref()))
            @if let Some(recent) = &recent { (charts::last_hour_section(recent)) } @else { (no_history_note(&pages)) }
        }
    };
    ConsolePage::new("Overview", body).in_section(MenuSection::Overview)
}

/// The first links that are down. It has the same place whatever their number, so that the charts
/// below never move.
fn down_links(links: Result<&LinksView, &ApiRefusal>) -> Markup {
    let down = links.map(|view| {
        view.links
            .iter()
            .filter(|link| is_down(link))
            .collect::<Vec<_>>()
    });
    let more = down
        .as_ref()
        .map_or(0, |down| down.len().saturating_sub(LINKS_NAMED_MAX));
    html! {
        h2 {
            "Down now"
            @if more > 0 { ", and " a href={ (PATH) "/links" } { (number(more as u64)) " more" } }
        }
        div.down-now {
            @match down {
                Ok(down) if down.is_empty() => p { "No link is down." },
                Ok(down) => ul { @for link in down.iter().take(LINKS_NAMED_MAX) { li { (target_link(link)) } } },
                Err(_) => p { "The links cannot be read at the moment." },
            }
        }
    }
}

/// The note of an installation without a history.
fn no_history_note(pages: &ConsoleState) -> Markup {
    html! {
        h2 { "Over time" }
        p {
            "Rates, durations and charts are not shown here: on AWS no process sees all deliveries. "
            @if let Some(url) = &pages.dashboard_url {
                "The " a href=(url) rel="noreferrer" { "CloudWatch dashboard" } " shows them."
            } @else {
                "The metrics in CloudWatch have them."
            }
        }
    }
}
