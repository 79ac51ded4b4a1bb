//! Replays: a list, and each with its progress.

pub(crate) mod display;
mod replay;

use axum::http::StatusCode;
use axum::routing::{get, post};
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::{ReplayPage, ReplayView};
use posthaste_core::model::Timestamp;
use serde::Deserialize;

use self::display::{is_uncounted, rate_text, state_badge, target_link};
use self::replay::{cancel, show_replay};
use super::topic_names::TopicNames;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::console::{PATH, PageContext, PageRoutes};
use crate::display::{foreign_text, number, relative_time};
use crate::extract::PageQuery;
use crate::filters::{FormField, ROWS_MAX, checkbox, list_pager, refusal_note};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::table::TableColumn::{self, Number, Text};
use crate::table::data_table;
use crate::visit::PageVisit;

/// The columns.
const COLUMNS: [TableColumn; 8] = [
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
pub(crate) struct ReplaysPageQuery {
    topic: Option<String>,
    subscription: Option<String>,
    /// Whether those that have ended are left out.
    #[serde(default)]
    active: bool,
    cursor: Option<String>,
}

/// The routes of replays.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/replays", get(show_list))
        .route("/replays/{id}", get(show_replay))
        .route("/replays/{id}/cancel", post(cancel))
}

/// The page with the list, the newest first.
async fn show_list(
    pages: PageContext,
    visit: PageVisit,
    PageQuery(asked): PageQuery<ReplaysPageQuery>,
) -> PageResult {
    let (topics, found) = join(TopicNames::load(&pages.api), asked.load_replays(&pages.api)).await;
    let topics = topics?;
    let refusal = found.as_ref().err();
    let body = html! {
        p.hint { "What is under way, with other long work, is under " a href=(PageAddress::new(&["work"])) { "Work" } "." }
        (asked.filter_form(&topics, refusal))
        @if let Some(refusal) = refusal { (refusal_note(refusal, &FIELDS)) }
        section #replays data-live aria-label="Replays" {
            @if let Ok(page) = &found { (asked.replay_table(page, visit.now)) }
        }
        @if let Ok(page) = &found {
            (list_pager(&asked.list_address(), asked.cursor.as_deref(), page.cursor.as_deref()))
        }
    };
    let status = refusal.map_or(StatusCode::OK, ApiRefusal::status_code);
    Ok(ConsolePage::new("Replays", body)
        .in_section(MenuSection::Work)
        .with_status(status))
}

impl ReplaysPageQuery {
    async fn load_replays(&self, api: &ManageApi) -> Result<ReplayPage, ApiRefusal> {
        let target = RequestTarget::new(&["replays"])
            .query("newestFirst", Some(true))
            .query("outcomes", Some(true))
            .query("limit", Some(ROWS_MAX));
        let target = self
            .filters()
            .into_iter()
            .fold(target, |target, (name, value)| target.query(name, value));
        api.get(target.query("cursor", self.cursor.as_deref()))
            .await
    }

    /// The address of the first page.
    fn list_address(&self) -> PageAddress {
        let list = PageAddress::new(&["replays"]);
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

    fn filter_form(&self, topics: &TopicNames, refusal: Option<&ApiRefusal>) -> Markup {
        let name = self.subscription.as_deref();
        let subscription = FormField::new("subscription", "Subscription", name, refusal);
        html! {
            form.filters method="get" action=(PageAddress::new(&["replays"])) {
                (topics.topic_field("(any topic)", self.topic.as_deref(), refusal))
                (subscription.with_example("billing").text_input())
                (checkbox("active", "Only those that have not ended", self.active))
                div { button.primary type="submit" { "Search" } }
            }
        }
    }

    fn replay_table(&self, page: &ReplayPage, now: Timestamp) -> Markup {
        let rows = page.replays.iter().map(|replay| replay_row(replay, now));
        let uncounted = page.replays.iter().filter(|it| is_uncounted(it)).count();
        html! {
            @if page.replays.is_empty() {
                (self.empty_note(page))
            } @else {
                (data_table("Replays, the newest first", &COLUMNS, rows))
            }
            @if uncounted > 0 {
                p.hint {
                    "What became of the events is not counted of " (number(uncounted as u64)) " of these replays. \
                     A list counts that of some at a time, and of none where the delivery log is off. The page \
                     of a replay says it."
                }
            }
        }
    }

    fn empty_note(&self, page: &ReplayPage) -> Markup {
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

fn replay_row(replay: &ReplayView, now: Timestamp) -> [Markup; 8] {
    [
        html! { a href=(PageAddress::new(&["replays", &replay.id])) { (foreign_text(&replay.id)) } },
        target_link(replay),
        html! {
            (state_badge(replay))
            @if is_uncounted(replay) { " " span.hint { "not counted" } }
        },
        html! { (number(replay.found)) },
        html! { (number(replay.queued)) },
        html! { (number(replay.failed)) },
        html! { (rate_text(replay)) },
        relative_time(replay.created_at.0, now),
    ]
}
