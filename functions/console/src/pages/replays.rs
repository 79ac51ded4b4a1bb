//! Replays: a list, and each with its progress.

mod one;
mod shown;

use maud::{Markup, html};
use posthaste_core::api::{ReplayPage, ReplayView};
use serde::Deserialize;

pub(crate) use self::one::{cancel, replay};
use self::shown::{rate, state, target};
use crate::address::Address;
use crate::api::Target;
use crate::asked::Query;
use crate::console::{PATH, Pages};
use crate::filters::{ROWS_MAX, pager_of, tick};
use crate::page::{Answer, Page, Section};
use crate::shown::{foreign, number, time};
use crate::table::Column::{self, Number, Text};
use crate::table::table;

/// The columns.
const COLUMNS: [Column; 8] = [
    Text("Replay"),
    Text("Topic and subscription"),
    Text("State"),
    Number("Found"),
    Number("Queued"),
    Number("Failed"),
    Number("Events per second"),
    Text("Created"),
];

/// The query of the list.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReplaysAsked {
    /// Whether those that have ended are left out.
    #[serde(default)]
    active: bool,
    cursor: Option<String>,
}

/// The page with the list, the newest first.
pub(crate) async fn replays(pages: Pages, Query(asked): Query<ReplaysAsked>) -> Answer {
    let target = Target::new(&["replays"]).query("newestFirst", Some(true)).query("limit", Some(ROWS_MAX));
    let target = target.query("active", asked.active.then_some(true));
    let page: ReplayPage = pages.api.get(target.query("cursor", asked.cursor.as_deref())).await?;
    let list = Address::new(&["replays"]).query("active", asked.active.then_some(true));
    let body = html! {
        (asked.form())
        section #replays data-live aria-label="Replays" {
            @if page.replays.is_empty() { (asked.none()) } @else { (table("Replays, the newest first", &COLUMNS, page.replays.iter().map(row))) }
        }
        (pager_of(&list, asked.cursor.as_deref(), page.cursor.as_deref()))
    };
    Ok(Page::new("Replays", body).of(Section::Replays))
}

impl ReplaysAsked {
    fn form(&self) -> Markup {
        html! {
            form.filters method="get" action=(Address::new(&["replays"])) {
                (tick("active", "Only those that have not ended", self.active))
                div { button.primary type="submit" { "Search" } }
            }
        }
    }

    fn none(&self) -> Markup {
        html! {
            p.empty {
                @if self.active { "No replay is under way. " }
                @else { "There is no replay of the last 30 days. " }
                a href={ (PATH) "/dead-letters" } { "Choose dead letters" }
                " of a subscription to send them again."
            }
        }
    }
}

fn row(replay: &ReplayView) -> Markup {
    html! {
        tr {
            td { a href=(Address::new(&["replays", &replay.id])) { (foreign(&replay.id)) } }
            td { (target(replay)) }
            td { (state(replay)) }
            td.number { (number(replay.found)) }
            td.number { (number(replay.queued)) }
            td.number { (number(replay.failed)) }
            td.number { (rate(replay)) }
            td { (time(replay.created_at.0)) }
        }
    }
}
