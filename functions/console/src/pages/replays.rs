//! Replays: a list, and each with its progress.

mod one;

use maud::{Markup, html};
use posthaste_core::api::{ReplayPage, ReplayState, ReplayView};
use serde::Deserialize;

pub(crate) use self::one::{cancel, replay};
use crate::address::Address;
use crate::api::Target;
use crate::asked::Query;
use crate::console::{PATH, Pages};
use crate::filters::{ROWS_MAX, pager_of};
use crate::page::{Answer, Page, Section};
use crate::shown::{foreign, number, time};

/// The events per second of a replay that names no rate.
const RATE_DEFAULT: u32 = 100;

/// The query of the list.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReplaysAsked {
    cursor: Option<String>,
}

/// The page with the list, the newest first.
pub(crate) async fn replays(pages: Pages, Query(asked): Query<ReplaysAsked>) -> Answer {
    let target = Target::new(&["replays"]).query("newestFirst", Some(true)).query("limit", Some(ROWS_MAX));
    let page: ReplayPage = pages.api.get(target.query("cursor", asked.cursor.as_deref())).await?;
    let body = html! {
        section #replays data-live aria-label="Replays" {
            @if page.replays.is_empty() { (none()) } @else { (table(&page.replays)) }
        }
        (pager_of(&Address::new(&["replays"]), asked.cursor.as_deref(), page.cursor.as_deref()))
    };
    Ok(Page::new("Replays", body).of(Section::Replays))
}

fn none() -> Markup {
    html! {
        p.empty {
            "There is no replay of the last 30 days. "
            a href={ (PATH) "/dead-letters" } { "Choose dead letters" }
            " of a subscription to send them again."
        }
    }
}

fn table(replays: &[ReplayView]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Replays, the newest first" {
            table.rows {
                thead {
                    tr {
                        th scope="col" { "Replay" }
                        th scope="col" { "Topic and subscription" }
                        th scope="col" { "State" }
                        th.number scope="col" { "Found" }
                        th.number scope="col" { "Queued" }
                        th.number scope="col" { "Failed" }
                        th.number scope="col" { "Events per second" }
                        th scope="col" { "Created" }
                    }
                }
                tbody { @for replay in replays { (row(replay)) } }
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

/// The subscription of a replay.
fn target(replay: &ReplayView) -> Markup {
    let (topic, name) = (replay.topic.as_str(), replay.subscription.as_str());
    html! { a href=(Address::subscription(topic, name)) { (foreign(topic)) " / " (foreign(name)) } }
}

fn rate(replay: &ReplayView) -> String {
    number(replay.request.rate_per_second.unwrap_or(RATE_DEFAULT).into())
}

/// The state of a replay, and its reason.
fn state(replay: &ReplayView) -> Markup {
    let (class, word) = match replay.state {
        ReplayState::Running => ("good", "running"),
        ReplayState::Waiting => ("warn", "waiting"),
        ReplayState::Done => ("good", "done"),
        ReplayState::Cancelled => ("bad", "cancelled"),
    };
    html! {
        span class={ "badge " (class) } { (word) }
        @if let Some(reason) = replay.reason { " " span.hint { (reason_text(reason)) } }
    }
}

fn reason_text(reason: posthaste_core::api::ReplayReason) -> &'static str {
    use posthaste_core::api::ReplayReason as Reason;
    match reason {
        Reason::Pressure => "because of back pressure",
        Reason::SubscriptionNotActive => "because the subscription is not active",
        Reason::Unavailable => "because a store or the queue does not answer",
        Reason::Requested => "by an operator",
        Reason::SubscriptionDeleted => "because the subscription was deleted",
    }
}
