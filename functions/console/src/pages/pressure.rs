//! Back pressure: how full the resources are, and what producers get because of it.

mod facts;
mod resources;

use maud::{Markup, html};
use posthaste_core::api::{IsoDuration, PressureView};
use posthaste_core::pressure::{PressureLevel, ProducerTier};
use serde::Deserialize;

use crate::api::Target;
use crate::asked::Query;
use crate::chart::Unit;
use crate::console::{PATH, Pages};
use crate::page::{Answer, Page, Section};
use crate::pages::overview::charts::{level, tarpit};
use crate::recent::Recent;
use crate::visit::Visit;

/// The times that the charts can show, in hours.
const HOURS: [u32; 2] = [1, 24];

/// The query of the page.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct PressureQuery {
    /// The time that the charts show.
    hours: Option<u32>,
}

/// The page.
pub(crate) async fn pressure(
    pages: Pages,
    visit: Visit,
    Query(query): Query<PressureQuery>,
) -> Answer {
    let hours = query.hours.unwrap_or(HOURS[0]);
    if !HOURS.contains(&hours) {
        return Err(Page::bad_request("hours is 1 or 24"));
    }
    let view: PressureView = pages.api.get(Target::new(&["pressure"])).await?;
    let recent = pages
        .history
        .as_deref()
        .map(|history| Recent::read(history, hours, visit.now));
    let body = html! {
        @if recent.is_some() { (choice(hours)) }
        section #pressure data-live aria-label="Pressure" {
            (facts::section(&view))
            (resources::topics(&view))
            (resources::resources(&view))
            @if let Some(recent) = &recent {
                h2 { "Over " (recent.window.words()) }
                div.charts {
                    (level(recent).render(&recent.window))
                    (tarpit(recent).render(&recent.window))
                    @for resource in &view.resources {
                        (resources::chart(resource, recent).render(&recent.window))
                    }
                }
            }
        }
    };
    Ok(Page::new("Pressure", body).of(Section::Pressure))
}

/// The times to choose from.
fn choice(shown: u32) -> Markup {
    html! {
        nav.actions aria-label="Time of the charts" {
            @for hours in HOURS {
                a.button href={ (PATH) "/pressure?hours=" (hours) }
                    aria-current=[(hours == shown).then_some("true")] {
                    @if hours == 1 { "Last hour" } @else { "Last " (hours) " hours" }
                }
            }
        }
    }
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
pub(crate) fn tiers(tiers: &[ProducerTier]) -> String {
    tiers
        .iter()
        .map(|tier| tier.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// A wait of producers.
pub(crate) fn wait(length: IsoDuration) -> String {
    Unit::Millis.text(length.0.as_secs_f64() * 1_000.0)
}
