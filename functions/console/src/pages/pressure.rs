//! Back pressure: how full the resources are, and what producers get because of it.

mod facts;
mod resources;

use axum::routing::get;
use maud::{Markup, html};
use posthaste_core::api::{IsoDuration, PressureView};
use posthaste_core::model::ProducerTier;
use posthaste_core::pressure::PressureLevel;

use crate::address::page_path;
use crate::api::RequestTarget;
use crate::chart::ChartUnit;
use crate::console::{PageContext, PageRoutes};
use crate::extract::PageQuery;
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::pages::hours::HoursQuery;
use crate::pages::overview::charts::{level_chart, no_history_note, tarpit_chart};
use crate::recent::RecentHistory;
use crate::visit::PageVisit;

/// The routes of the page.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new().route("/pressure", get(show_page))
}

/// The page.
async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(query): PageQuery<HoursQuery>,
) -> PageResult {
    let hours = query.shown_hours()?;
    let view: PressureView = pages.api.get(RequestTarget::new(&["pressure"])).await?;
    let recent = pages
        .history
        .as_deref()
        .map(|history| RecentHistory::read(history, hours.number(), visit.now));
    let body = html! {
        @if recent.is_some() { (hours.choice(&page_path(&["pressure"]))) }
        section #pressure data-live aria-label="Pressure" {
            (facts::state_section(&view))
            (resources::topic_table(&view))
            (resources::reading_table(&view))
            @if let Some(recent) = &recent {
                h2 { "Over " (recent.window.in_words()) }
                div.charts {
                    (level_chart(recent).render(&recent.window))
                    (tarpit_chart(recent).render(&recent.window))
                    @for resource in &view.resources {
                        (resources::reading_chart(resource, recent).render(&recent.window))
                    }
                }
            } @else { (no_history_note(&pages)) }
        }
    };
    Ok(ConsolePage::new("Pressure", body).in_section(MenuSection::Pressure))
}

/// A level with its colour.
pub(crate) fn level_badge(level: PressureLevel) -> Markup {
    let class = match level {
        PressureLevel::Normal => "good",
        PressureLevel::Medium => "warn",
        PressureLevel::High => "bad",
    };
    html! { span class={ "badge " (class) } { (level) } }
}

/// The names of tiers.
pub(crate) fn tier_names(tiers: &[ProducerTier]) -> String {
    tiers
        .iter()
        .map(|tier| tier.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// A wait of producers.
pub(crate) fn wait_text(length: IsoDuration) -> String {
    ChartUnit::Millis.format_value(length.0.as_secs_f64() * 1_000.0)
}
