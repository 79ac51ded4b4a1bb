//! One event: a sentence about what became of it, a row for each subscription, and its attempts.

mod attempt;
mod by_subscription;
mod context;
mod facts;
mod made_request;
mod payload;
mod request;
mod resend;
mod rows;
mod sentence;
mod subscriptions;
mod timeline;

use std::time::Duration;

use axum::routing::{get, post};
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::events::{DeliveryView, EventView, IdInUrl};
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::model::Timestamp;

use self::by_subscription::group_by_subscription;
use self::context::EventPageContext;
pub(crate) use self::payload::json_body;
use self::payload::payload_section;
use self::request::{EventIdPageQuery, EventPageQuery, EventPageRequest, ID_CHARS_MAX};
use self::resend::DONE;
pub(crate) use self::resend::{resend, resend_address};
pub(crate) use self::rows::state_badge;
use self::sentence::EventSentence;
use self::subscriptions::subscription_list;
use super::known_topic::KnownTopic;
use crate::address::PageAddress;
use crate::api::ApiRefusal;
use crate::console::{PageContext, PageRoutes};
use crate::display::{foreign_cut, foreign_text, visible_text};
use crate::extract::{PageQuery, PathParts};
use crate::filters::{TimeLabels, TimeRangeFields, hidden_fields};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::parts::{DoneNoticeQuery, foreign_fact};
use crate::visit::PageVisit;

/// The time after which all subscriptions have had their first attempt, where nothing holds it up.
const FIRST_ATTEMPTS: Duration = Duration::from_mins(1);

/// The routes of an event.
pub(crate) fn routes() -> PageRoutes {
    PageRoutes::new()
        .route("/topics/{topic}/events/{id}", get(show_page))
        .route("/topics/{topic}/event", get(show_page_by_query))
        .route("/topics/{topic}/resend", post(resend))
        .merge(made_request::routes())
}

/// The page.
async fn show_page(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, id]): PathParts<2>,
    PageQuery(query): PageQuery<EventPageQuery>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    event_page(
        &pages,
        &visit,
        &EventPageRequest {
            topic: &topic,
            id: &id,
            query: &query,
        },
        &done,
    )
    .await
}

/// The page of an event whose id stands in the query.
async fn show_page_by_query(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
    PageQuery(asked): PageQuery<EventIdPageQuery>,
    PageQuery(query): PageQuery<EventPageQuery>,
    PageQuery(done): PageQuery<DoneNoticeQuery>,
) -> PageResult {
    let id = asked.into_id();
    event_page(
        &pages,
        &visit,
        &EventPageRequest {
            topic: &topic,
            id: &id,
            query: &query,
        },
        &done,
    )
    .await
}

async fn event_page(
    pages: &PageContext,
    visit: &PageVisit,
    asked: &EventPageRequest<'_>,
    done: &DoneNoticeQuery,
) -> PageResult {
    let view = pages.api.get::<EventView>(asked.request_target());
    // A topic that is gone still has its log.
    let (view, topic) = join(view, KnownTopic::load(&pages.api, asked.topic)).await;
    let view = match view {
        Ok(view) => view,
        Err(refusal) => return Err(refused_page(asked, &refusal)),
    };
    let sentence = sentence_text(&view, visit.now);
    let view = select_deliveries(asked, view);
    let around = EventPageContext {
        visit,
        topic: &topic,
    };
    let is_live = done.is_recent(visit.now) || is_changing(&view, visit.now);
    let body = html! {
        (done.notice(visit.now, &DONE))
        section #sentence data-live[is_live] aria-label="What became of it" { (sentence) }
        (event_summary(asked, &view, &topic))
        section #deliveries data-live[is_live] aria-label="Deliveries" { (subscription_list(asked, &view, &around)) }
        (time_filter_form(asked, None))
        (payload_section(asked, &view))
    };
    Ok(ConsolePage::new(asked.title(), body).in_section(MenuSection::Events))
}

/// The state of the event and the sentence about it, over all of its subscriptions.
fn sentence_text(view: &EventView, now: Timestamp) -> Markup {
    let subscriptions = group_by_subscription(&view.deliveries);
    let sentence = EventSentence::from_subscriptions(&subscriptions);
    html! {
        @if let Some(state) = view.state { p { (state_badge(state)) " " (sentence.render(now)) } }
    }
}

/// Whether the page may still change by itself. Other subscriptions may have their first attempt,
/// and so their first record, a little later.
fn is_changing(view: &EventView, now: Timestamp) -> bool {
    view.state.is_none()
        || view
            .deliveries
            .iter()
            .any(|it| now.since(it.accepted_at.0) <= FIRST_ATTEMPTS || !has_ended(it))
}

fn has_ended(it: &DeliveryView) -> bool {
    match it.state {
        DeliveryState::Delivered | DeliveryState::Dropped => true,
        DeliveryState::DeadLettered => it.dead_letter_object.is_some(),
        DeliveryState::Pending
        | DeliveryState::Unmatched
        | DeliveryState::Waiting
        | DeliveryState::Held
        | DeliveryState::Unknown => false,
    }
}

/// The event with the deliveries that are asked for.
fn select_deliveries(asked: &EventPageRequest<'_>, mut view: EventView) -> EventView {
    view.deliveries.retain(|it| asked.is_selected(it));
    view
}

/// The page of a query that the API refuses.
fn refused_page(asked: &EventPageRequest<'_>, refusal: &ApiRefusal) -> ConsolePage {
    let body = html! {
        (crate::filters::refusal_note(refusal, &["from", "to"]))
        (time_filter_form(asked, Some(refusal)))
    };
    ConsolePage::new(asked.title(), body)
        .in_section(MenuSection::Events)
        .with_status(refusal.status_code())
}

fn event_summary(asked: &EventPageRequest<'_>, view: &EventView, topic: &KnownTopic) -> Markup {
    let first = view.deliveries.first();
    html! {
        dl.facts {
            dt { "Topic" }
            dd {
                @if matches!(topic, KnownTopic::Deleted) {
                    (foreign_text(asked.topic)) " " span.hint { "(deleted)" }
                } @else {
                    a href=(PageAddress::for_topic(asked.topic)) { (foreign_text(topic.name(asked.topic))) }
                }
            }
            dt { "Id" }
            dd { (foreign_cut(&view.id, ID_CHARS_MAX)) }
            (foreign_fact("Type", first.and_then(|it| it.event_type.as_deref()), ID_CHARS_MAX))
            (foreign_fact("Source", first.and_then(|it| it.source.as_deref()), ID_CHARS_MAX))
            (foreign_fact("Subject", first.and_then(|it| it.subject.as_deref()), ID_CHARS_MAX))
        }
    }
}

/// The form that narrows the search to a time.
fn time_filter_form(asked: &EventPageRequest<'_>, refusal: Option<&ApiRefusal>) -> Markup {
    let from = asked.query.from.as_deref();
    let to = asked.query.to.as_deref();
    let times = TimeRangeFields::new(from, to, refusal).with_labels(TimeLabels {
        from: "Records from",
        to: "Records before",
    });
    // A field does not keep line breaks and control characters as they are.
    let is_kept = !asked.id.contains('\n') && visible_text(asked.id) == asked.id;
    let carried = if is_kept {
        IdInUrl::for_id(asked.id)
    } else {
        IdInUrl::always_encoded(asked.id)
    };
    let (action, in_query) = match carried.query_parameter() {
        Some(parameter) => (
            PageAddress::new(&["topics", asked.topic, "event"]),
            parameter,
        ),
        None => (PageAddress::for_event(asked.topic, asked.id), ("id", "")),
    };
    let EventPageQuery {
        subscription, key, ..
    } = asked.query;
    let kept = [
        (in_query.0, Some(in_query.1).filter(|id| !id.is_empty())),
        ("subscription", subscription.as_deref()),
        ("key", key.as_deref()),
    ];
    html! {
        details open[refusal.is_some()] {
            summary { "Search another time" }
            form.filters method="get" action=(action) {
                (hidden_fields(&kept))
                (times.render())
                div { button type="submit" { "Search" } }
            }
        }
    }
}
