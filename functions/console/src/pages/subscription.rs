//! A subscription: its health, its last attempts and what can be done. Its settings have a page of
//! their own.

mod actions;
mod attempts;
mod danger;
pub(crate) mod filter;
pub(crate) mod health;
mod in_url;
pub(crate) mod state;
mod tabs;
pub(crate) mod waiting;

use axum::response::{IntoResponse, Redirect, Response};
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::SubscriptionSettings;
use serde::Deserialize;

use self::actions::action_buttons;
use self::attempts::LastAttempts;
use self::danger::danger_part;
pub(crate) use self::in_url::SubscriptionInUrl;
use self::tabs::{DANGER, SubscriptionTab, tab_links};
use crate::address;
use crate::console::PageContext;
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text};
use crate::extract::{PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection};
use crate::parts::{DoneNoticeQuery, fact};
use crate::visit::PageVisit;

/// The notices of actions.
const DONE: [(&str, &str); 10] = [
    ("created", "The subscription was created."),
    ("saved", "The subscription was saved."),
    ("pause", "The subscription is paused. Its events wait."),
    ("resume", "The subscription delivers again."),
    (
        "enable",
        "The subscription was enabled. Its state says whether its endpoint must still consent.",
    ),
    (
        "disable",
        "The subscription is disabled. New events pass by, and those that wait are given up.",
    ),
    (
        "validate",
        "The endpoint was asked. The state below says what it answered.",
    ),
    ("no-hold", "Nothing was in its way."),
    ("hold-ended", TRIED_AGAIN),
    ("forced", OUTLOOK),
];

/// The effect of a retry of something that was down.
const TRIED_AGAIN: &str = "Its endpoint is tried again. If its whole link was down, so are other subscriptions \
    whose endpoint has the same scheme, host and port.";

/// The outlook on events that wait for a subscription that is tried again.
const OUTLOOK: &str = "Events that wait go out within a minute, little by little at first. \
    Retries that are already in the queue go out within 15 minutes.";

/// The query of the page.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct SubscriptionQuery {
    /// The part that is shown.
    tab: Option<String>,
}

/// The page.
pub(crate) async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name]): PathParts<2>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
    PageQuery(query): PageQuery<SubscriptionQuery>,
) -> Result<Response, ConsolePage> {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    let tab = match query.tab.as_deref() {
        Some("settings") => return Ok(Redirect::to(&named.page_path(&["edit"])).into_response()),
        Some("yaml") => {
            let yaml = format!("{}?tab=yaml", named.page_path(&["edit"]));
            return Ok(Redirect::to(&yaml).into_response());
        }
        Some(DANGER) => SubscriptionTab::Danger,
        _ => SubscriptionTab::Now,
    };
    let shown = pages
        .api
        .get::<SubscriptionSettings>(named.request_target(&[]));
    let (shown, attempts) = match tab {
        SubscriptionTab::Now => {
            let (shown, attempts) = join(shown, LastAttempts::load(&pages.api, named)).await;
            (shown?, Some(attempts))
        }
        SubscriptionTab::Danger => (shown.await?, None),
    };
    let named = SubscriptionInUrl {
        name: shown.name.as_ref().map_or(&name, |name| name.as_str()),
        ..named
    };
    let page = html! {
        (done.notice(visit.now, &DONE))
        p { "A subscription of the topic " a href=(address::topic_path(&topic, &[])) { (foreign_text(&topic)) } "." }
        (tab_links(named, tab))
        @match &attempts {
            Some(attempts) => (now_part(&visit, named, &shown, attempts)),
            None => (danger_part(&visit, named, &shown)),
        }
    };
    Ok(ConsolePage::new(format!("{topic} / {}", named.name), page)
        .in_section(MenuSection::Topics)
        .into_response())
}

/// The health, the buttons and the last attempts.
fn now_part(
    visit: &PageVisit,
    named: SubscriptionInUrl<'_>,
    shown: &SubscriptionSettings,
    attempts: &LastAttempts,
) -> Markup {
    html! {
        // The sentence has room for its longest form, so that no button moves while it changes.
        section #health.tile data-live aria-label="Health" { (health::health_sentence(shown, visit.now)) }
        section #actions data-live aria-label="Actions" { (action_buttons(visit, named, shown)) }
        h2 { "Last attempts" }
        section #attempts data-live { (attempts.render(named, visit.now)) }
        h2 { "State" }
        section #now data-live aria-label="State" { (state_facts(shown)) }
    }
}

fn state_facts(shown: &SubscriptionSettings) -> Markup {
    html! {
        dl.facts {
            @if let Some(status) = &shown.status { (fact("State", &state::describe_state(status, shown.keeping_missed()))) }
            (fact("Health", &health::describe_health(shown)))
            (fact("Circuit", &health::describe_circuit(shown)))
            (fact("Waiting", &waiting::describe_waiting(shown.waiting.as_deref())))
            (fact("Last attempt", &waiting::describe_last_outcome(shown.last_outcome.as_deref())))
            (fact("Endpoint", &foreign_text(&shown.endpoint.url)))
            (fact("Filter", &foreign_cut(&filter::summary(&shown.filter), 4 * CELL_CHARS_MAX)))
        }
    }
}
