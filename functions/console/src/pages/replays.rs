//! Replays: a list, and each with its progress.

mod one;
mod shown;

use axum::http::StatusCode;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::{ReplayPage, ReplayView};
use serde::Deserialize;

pub(crate) use self::one::{cancel, replay};
use self::shown::{rate, state, target};
use super::topic_names::TopicNames;
use crate::address::Address;
use crate::api::{Api, Refusal, Target};
use crate::asked::Query;
use crate::console::{PATH, Pages};
use crate::filters::{Field, ROWS_MAX, pager_of, refused, tick};
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

/// The fields of the form that the API may refuse.
const FIELDS: [&str; 2] = ["topic", "subscription"];

/// The query of the list.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ReplaysAsked {
    topic: Option<String>,
    subscription: Option<String>,
    /// Whether those that have ended are left out.
    #[serde(default)]
    active: bool,
    cursor: Option<String>,
}

/// The page with the list, the newest first.
pub(crate) async fn replays(pages: Pages, Query(asked): Query<ReplaysAsked>) -> Answer {
    let (topics, found) = join(TopicNames::ask(&pages.api), asked.replays(&pages.api)).await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let body = html! {
        (asked.form(&topics, refusal))
        @if let Some(refusal) = refusal { (refused(refusal, &FIELDS)) }
        section #replays data-live aria-label="Replays" {
            @if let Ok(page) = &found { (asked.rows(page)) }
        }
        @if let Ok(page) = &found {
            (pager_of(&asked.address(), asked.cursor.as_deref(), page.cursor.as_deref()))
        }
    };
    let status = refusal.map_or(StatusCode::OK, Refusal::status);
    Ok(Page::new("Replays", body)
        .of(Section::Replays)
        .with_status(status))
}

impl ReplaysAsked {
    async fn replays(&self, api: &Api) -> Result<ReplayPage, Refusal> {
        let target = Target::new(&["replays"])
            .query("newestFirst", Some(true))
            .query("limit", Some(ROWS_MAX));
        let target = self
            .filters()
            .into_iter()
            .fold(target, |target, (name, value)| target.query(name, value));
        api.get(target.query("cursor", self.cursor.as_deref()))
            .await
    }

    /// The address of the first page.
    fn address(&self) -> Address {
        let list = Address::new(&["replays"]);
        self.filters()
            .into_iter()
            .fold(list, |list, (name, value)| list.query(name, value))
    }

    fn filters(&self) -> [(&'static str, Option<&str>); 3] {
        [
            ("topic", self.topic.as_deref()),
            ("subscription", self.subscription.as_deref()),
            ("active", self.active.then_some("true")),
        ]
    }

    fn form(&self, topics: &TopicNames, refusal: Option<&Refusal>) -> Markup {
        let subscription = Field {
            name: "subscription",
            label: "Subscription",
            value: self.subscription.as_deref(),
            example: "billing",
            refusal,
        };
        html! {
            form.filters method="get" action=(Address::new(&["replays"])) {
                (topics.field("(any topic)", self.topic.as_deref(), refusal))
                (subscription.text())
                (tick("active", "Only those that have not ended", self.active))
                div { button.primary type="submit" { "Search" } }
            }
        }
    }

    fn rows(&self, page: &ReplayPage) -> Markup {
        html! {
            @if page.replays.is_empty() {
                (self.none(page))
            } @else {
                (table("Replays, the newest first", &COLUMNS, page.replays.iter().map(row)))
            }
        }
    }

    fn none(&self, page: &ReplayPage) -> Markup {
        html! {
            p.empty {
                @if page.cursor.is_some() {
                    "No replay was found so far. The next page searches further back."
                } @else if self.cursor.is_some() {
                    "There are no more replays. Go back to the first page."
                } @else if self.topic.is_some() || self.subscription.is_some() {
                    "No replay has these values. Leave a filter out to see more."
                } @else {
                    @if self.active { "No replay is under way. " }
                    @else { "There is no replay of the last 30 days. " }
                    a href={ (PATH) "/dead-letters" } { "Choose dead letters" }
                    " of a subscription to send them again."
                }
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
