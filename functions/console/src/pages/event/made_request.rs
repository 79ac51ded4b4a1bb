//! The request of an attempt, made again.

use axum::routing::get;
use maud::{Markup, html};
use posthaste_core::api::EventRequestView;
use posthaste_core::api::events::IdInUrl;
use serde::Deserialize;

use super::request::{EventIdPageQuery, ID_CHARS_MAX};
use crate::address::PageAddress;
use crate::api::{ApiRefusal, RequestTarget};
use crate::console::{PageContext, PageRoutes};
use crate::display::{foreign_cut, foreign_text, relative_time, time_tag};
use crate::extract::{PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult, problem_box};
use crate::pages::sent_request::request_part;
use crate::parts::{fact, foreign_fact};
use crate::visit::PageVisit;

/// The title of the page.
const TITLE: &str = "The request of an attempt";

/// Most characters of an endpoint.
const ENDPOINT_CHARS_MAX: usize = 300;

/// The query of the page. The API refuses what it cannot read.
#[derive(Debug, Clone, Default, Deserialize)]
struct MadeRequestQuery {
    subscription: Option<String>,
    key: Option<String>,
    attempt: Option<String>,
}

/// The event and the attempt that the page is about.
struct MadeRequestPage<'a> {
    topic: &'a str,
    id: &'a str,
    query: &'a MadeRequestQuery,
}

/// The routes of the page.
pub(super) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/topics/{topic}/events/{id}/request", get(show_page))
        .route("/topics/{topic}/event/request", get(show_page_by_query))
}

async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, id]): PathParts<2>,
    PageQuery(query): PageQuery<MadeRequestQuery>,
) -> PageResult {
    let asked = MadeRequestPage {
        topic: &topic,
        id: &id,
        query: &query,
    };
    asked.load_page(&pages, &visit).await
}

/// The page of an event whose id stands in the query.
async fn show_page_by_query(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
    PageQuery(named): PageQuery<EventIdPageQuery>,
    PageQuery(query): PageQuery<MadeRequestQuery>,
) -> PageResult {
    let asked = MadeRequestPage {
        topic: &topic,
        id: &named.into_id(),
        query: &query,
    };
    asked.load_page(&pages, &visit).await
}

impl MadeRequestPage<'_> {
    async fn load_page(&self, pages: &PageContext, visit: &PageVisit) -> PageResult {
        let view = pages.api.get::<EventRequestView>(self.request_target());
        let view = view.await.map_err(|refusal| self.refused_page(&refusal))?;
        let body = html! {
            (self.facts(&view))
            (self.changes(&view, visit))
            p.hint { (foreign_text(&view.note)) }
            (request_part(&view.request))
        };
        Ok(ConsolePage::new(TITLE, body).in_section(MenuSection::Events))
    }

    fn request_target(&self) -> RequestTarget {
        let carried = IdInUrl::for_id(self.id);
        let segment = carried.path_segment();
        let target = RequestTarget::new(&["topics", self.topic, "events", segment, "request"]);
        let target = match carried.query_parameter() {
            Some((name, value)) => target.query(name, Some(value)),
            None => target,
        };
        let MadeRequestQuery {
            subscription,
            key,
            attempt,
        } = self.query;
        target
            .query("subscription", subscription.as_deref())
            .query("key", key.as_deref())
            .query("attempt", attempt.as_deref())
    }

    fn refused_page(&self, refusal: &ApiRefusal) -> ConsolePage {
        let body = html! {
            (problem_box(refusal))
            p { (self.event_link("Back to the event")) }
        };
        ConsolePage::new(TITLE, body)
            .in_section(MenuSection::Events)
            .with_status(refusal.status_code())
    }

    fn event_link(&self, text: &str) -> Markup {
        html! { a href=(PageAddress::for_event(self.topic, self.id)) { (text) } }
    }

    fn facts(&self, view: &EventRequestView) -> Markup {
        let name = view.subscription.as_str();
        let receiver = PageAddress::for_subscription(self.topic, name);
        let event = html! {
            (foreign_cut(self.id, ID_CHARS_MAX)) " " (self.event_link("Back to the event"))
        };
        html! {
            dl.facts {
                (fact("Event", &event))
                (fact("Subscription", &html! { a href=(receiver) { (foreign_text(name)) } }))
                (fact("Attempt", &html! { (view.attempt) ", ended " (time_tag(view.at.0)) }))
                (fact("Delivery id", &html! { code { (foreign_text(&view.key)) } }))
                (foreign_fact("Endpoint then", view.endpoint_then.as_deref(), ENDPOINT_CHARS_MAX))
            }
        }
    }

    /// The facts that are not as they were at the attempt.
    fn changes(&self, view: &EventRequestView, visit: &PageVisit) -> Markup {
        let audit = PageAddress::new(&["audit"])
            .query("topic", Some(self.topic))
            .query("from", Some(view.at.0));
        html! {
            @if let Some(changed) = view.settings_changed_at {
                p {
                    strong { "By today's settings" }
                    ": those of the topic or of a subscription of it were saved after this attempt began, "
                    (relative_time(changed.0, visit.now)) ". "
                    a href=(audit) { "Show who changed what" } "."
                }
            }
            @if view.endpoint_then.is_some() {
                p { "The attempt went to another endpoint than the subscription has today." }
            }
            @if view.is_batch {
                p { "This attempt was a batch of several events. It is shown as of this event alone." }
            }
        }
    }
}
