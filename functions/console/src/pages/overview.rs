//! The state of the installation at a glance: what fails, and the last hour or day.

pub(crate) mod charts;
mod data;
mod failing_now;
mod first_steps;
mod kept_line;
mod tiles;

use axum::routing::get;
use futures_util::future::join;
use maud::html;

use self::data::load_overview;
use self::failing_now::failing_section;
use self::kept_line::kept_line;
use self::tiles::OverviewTiles;
use crate::console::{PATH, PageContext, PageRoutes};
use crate::extract::PageQuery;
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::pages::failing::NOTICES;
use crate::pages::hours::HoursQuery;
use crate::parts::DoneNoticeQuery;
use crate::recent::RecentHistory;
use crate::visit::PageVisit;

/// The route of the front page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/", get(show_page))
}

/// The page.
async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(query): PageQuery<HoursQuery>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let hours = query.shown_hours()?;
    let recent = pages
        .history
        .as_deref()
        .map(|history| RecentHistory::read(history, hours.number(), visit.now));
    let progress = first_steps::load_progress(&pages.api, recent.as_ref(), visit.now);
    let (progress, data) = join(progress, load_overview(&pages)).await;
    let back = format!("{PATH}?hours={}", hours.number());
    let body = html! {
        (done.notice(visit.now, &NOTICES))
        (first_steps::live_section(progress.as_ref()))
        @if recent.is_some() { (hours.choice(PATH)) }
        section #overview data-live aria-label="Overview" {
            (kept_line(&data, recent.as_ref()))
            (OverviewTiles { data: &data, recent: recent.as_ref(), hours }.render())
        }
        // Below the tiles, which keep their places while rows come and go.
        (failing_section(data.failing.as_ref(), &visit, &back))
        section #over-time data-live aria-label="Over time" {
            @if let Some(recent) = &recent { (charts::recent_section(recent)) } @else { (charts::no_history_note(&pages)) }
        }
    };
    Ok(ConsolePage::new("Overview", body).in_section(MenuSection::Overview))
}
