//! The state of the installation at a glance, and over the last hour.

pub(crate) mod charts;
mod first_steps;
mod seen;
mod tiles;

use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::LinksView;

use self::seen::see;
use self::tiles::Tiles;
use crate::api::Refusal;
use crate::console::{Console, PATH, Pages};
use crate::page::{Page, Section};
use crate::pages::find::find_form;
use crate::pages::links::{is_down, target};
use crate::recent::Recent;
use crate::shown::number;
use crate::visit::Visit;

/// Hours that the page shows.
const HOURS: u32 = 1;

/// Links that the page names.
const LINKS_NAMED_MAX: usize = 3;

/// The page.
pub(crate) async fn overview(pages: Pages, visit: Visit) -> Page {
    let recent = pages
        .history
        .as_deref()
        .map(|history| Recent::read(history, HOURS, visit.now));
    let progress = first_steps::progress(&pages.api, recent.as_ref(), visit.now);
    let (progress, seen) = join(progress, see(&pages)).await;
    let body = html! {
        (first_steps::part(progress.as_ref()))
        (find_form())
        section #overview data-live aria-label="Overview" {
            (Tiles { seen: &seen, recent: recent.as_ref() }.render())
            (down(seen.links.as_ref()))
            @if let Some(recent) = &recent { (charts::section(recent)) } @else { (without_history(&pages)) }
        }
    };
    Page::new("Overview", body).of(Section::Overview)
}

/// The first links that are down. It has the same place whatever their number, so that the charts
/// below never move.
fn down(links: Result<&LinksView, &Refusal>) -> Markup {
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
                Ok(down) => ul { @for link in down.iter().take(LINKS_NAMED_MAX) { li { (target(link)) } } },
                Err(_) => p { "The links cannot be read at the moment." },
            }
        }
    }
}

/// The note where nobody keeps a history.
fn without_history(pages: &Console) -> Markup {
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
