//! The treatment of producers now, and the age of the state.

use maud::{Markup, html};
use posthaste_core::api::{PressureFreshness, PressureView};
use posthaste_core::model::ProducerTier;

use super::{level_badge, wait_text};
use crate::display::time_tag;
use crate::table::TableColumn::{self, Text};
use crate::table::data_table;
use crate::words::explained_word;

/// The columns.
const COLUMNS: [TableColumn; 3] = [Text("Tier"), Text("Producers"), Text("Answer")];

/// The state as a whole.
pub(super) fn state_section(view: &PressureView) -> Markup {
    html! {
        @if !view.monitored { p.problem { "Resources are not monitored: no producer is slowed or refused." } }
        dl.facts {
            dt { "Level" }
            dd { (level_badge(view.level)) @if let Some(since) = &view.since { " since " (time_tag(since.0)) } }
            dt { "Measured" }
            dd {
                @if let Some(at) = &view.polled_at { (time_tag(at.0)) ": " }
                (freshness_badge(view.freshness))
            }
            @if let Some(next) = &view.next_tarpit {
                dt { "Wait after the next poll" }
                dd { (wait_text(*next)) ", if that finds the same" }
            }
        }
        h2 { "What producers get" }
        (producer_table(view))
        p.hint {
            "The " (explained_word("tarpit", "tarpit")) " makes acknowledgements wait, longer with each poll, \
             so that producers slow down before they are refused."
        }
    }
}

fn freshness_badge(freshness: PressureFreshness) -> Markup {
    let (class, word, meaning) = match freshness {
        PressureFreshness::Current => ("good", "current", "the state counts"),
        PressureFreshness::Stale => (
            "warn",
            "stale",
            "The monitor has missed polls. Until it reads again, nobody is refused, and producers that wait \
             get the shortest delay.",
        ),
        PressureFreshness::Forgotten => (
            "bad",
            "forgotten",
            "the monitor has written nothing for 15 minutes; producers are treated as at normal",
        ),
        PressureFreshness::Missing => (
            "warn",
            "missing",
            "the monitor has written nothing yet; producers are treated as at normal",
        ),
        PressureFreshness::Unreadable => (
            "bad",
            "unreadable",
            "the state cannot be read; producers are treated as at normal",
        ),
    };
    html! { span class={ "badge " (class) } { (word) } " " span.hint { (meaning) } }
}

fn producer_table(view: &PressureView) -> Markup {
    data_table(
        "What producers get",
        &COLUMNS,
        ProducerTier::ALL
            .into_iter()
            .map(|tier| tier_cells(view, tier)),
    )
}

fn tier_cells(view: &PressureView, tier: ProducerTier) -> [Markup; 3] {
    [
        html! { (tier.as_str()) },
        html! { (tier_producers(tier)) },
        tier_treatment(view, tier),
    ]
}

const fn tier_producers(tier: ProducerTier) -> &'static str {
    match tier {
        ProducerTier::Internal => "critical producers",
        ProducerTier::Standard => "ordinary producers",
        ProducerTier::Bulk => "imports and replays",
    }
}

fn tier_treatment(view: &PressureView, tier: ProducerTier) -> Markup {
    html! {
        @if view.refused_tiers.contains(&tier) {
            span.badge.bad { "refused" } " with 503 and " code { "Retry-After" }
        } @else if view.delayed_tiers.contains(&tier) {
            span.badge.warn { "waits" } " " (wait_text(view.tarpit))
            " for each acknowledgement. On AWS: 429 with this " code { "Retry-After" }
        } @else {
            span.badge.good { "accepted" } " at once"
        }
    }
}
