//! One event: its deliveries, and the attempts of each.

mod around;
mod asked;
mod attempt;
mod deliveries;
mod delivery;
mod facts;
mod headers;
mod payload;
mod resend;

use std::time::Duration;

use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::events::{DeliveryView, EventView, IdInUrl};
use posthaste_core::delivery_log::DeliveryState;
use posthaste_core::model::Timestamp;

use self::around::Around;
use self::asked::{Asked, EventAsked, ID_CHARS_MAX, IdAsked};
use self::deliveries::deliveries;
pub(crate) use self::delivery::state_badge;
use self::headers::headers;
pub(crate) use self::payload::json_body;
use self::payload::payload;
use self::resend::DONE;
pub(crate) use self::resend::{resend, resend_address};
use super::known_topic::KnownTopic;
use crate::address::Address;
use crate::api::Refusal;
use crate::asked::{Path, Query};
use crate::console::Pages;
use crate::filters::{Field, TIME_EXAMPLE, hidden};
use crate::page::{Answer, Page, Section};
use crate::parts::DoneAsked;
use crate::shown::{foreign, foreign_cut, visible_text};
use crate::visit::Visit;

/// The time after which all subscriptions have had their first attempt, where nothing holds it up.
const FIRST_ATTEMPTS: Duration = Duration::from_mins(1);

/// The page.
pub(crate) async fn event(
    pages: Pages,
    visit: Visit,
    Path([topic, id]): Path<2>,
    Query(query): Query<EventAsked>,
    Query(done): Query<DoneAsked>,
) -> Answer {
    show(
        &pages,
        &visit,
        &Asked {
            topic: &topic,
            id: &id,
            query: &query,
        },
        &done,
    )
    .await
}

/// The page of an event whose id stands in the query.
pub(crate) async fn event_by_query(
    pages: Pages,
    visit: Visit,
    Path([topic]): Path<1>,
    Query(asked): Query<IdAsked>,
    Query(query): Query<EventAsked>,
    Query(done): Query<DoneAsked>,
) -> Answer {
    let id = asked.id();
    show(
        &pages,
        &visit,
        &Asked {
            topic: &topic,
            id: &id,
            query: &query,
        },
        &done,
    )
    .await
}

async fn show(pages: &Pages, visit: &Visit, asked: &Asked<'_>, done: &DoneAsked) -> Answer {
    let view = pages.api.get::<EventView>(asked.target());
    // A topic that is gone still has its log.
    let (view, topic) = join(view, KnownTopic::ask(&pages.api, asked.topic)).await;
    let view = match view {
        Ok(view) => selected(asked, view),
        Err(refusal) => return Err(refused(asked, &refusal)),
    };
    let around = Around {
        visit,
        topic: &topic,
    };
    let is_live = done.is_recent(visit.now) || is_changing(&view, visit.now);
    let body = html! {
        (done.notice(visit.now, &DONE))
        (summary(asked, &view, &topic))
        section #deliveries data-live[is_live] aria-label="Deliveries" { (deliveries(asked, &view, &around)) }
        (narrowing(asked, None))
        (payload(asked, &view))
        (headers(topic.settings(), &view, pages, visit.now))
    };
    Ok(Page::new(asked.title(), body).of(Section::Events))
}

/// Whether the page may still change by itself. Other subscriptions may have their first attempt,
/// and so their first record, a little later.
fn is_changing(view: &EventView, now: Timestamp) -> bool {
    let is_fresh = |it: &DeliveryView| now.since(it.accepted_at.0) <= FIRST_ATTEMPTS;
    view.state.is_none()
        || view
            .deliveries
            .iter()
            .any(|it| is_fresh(it) || !has_ended(it))
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
fn selected(asked: &Asked<'_>, mut view: EventView) -> EventView {
    view.deliveries.retain(|it| asked.takes(it));
    view
}

/// The page of a question that the API refuses.
fn refused(asked: &Asked<'_>, refusal: &Refusal) -> Page {
    let body = html! {
        (crate::filters::refused(refusal, &["from", "to"]))
        (narrowing(asked, Some(refusal)))
    };
    Page::new(asked.title(), body)
        .of(Section::Events)
        .with_status(refusal.status())
}

fn summary(asked: &Asked<'_>, view: &EventView, topic: &KnownTopic) -> Markup {
    let first = view.deliveries.first();
    let text = |name, value: Option<&String>| {
        html! { @if let Some(value) = value { dt { (name) } dd { (foreign_cut(value, ID_CHARS_MAX)) } } }
    };
    html! {
        dl.facts {
            dt { "Topic" }
            dd {
                @if matches!(topic, KnownTopic::Deleted) {
                    (foreign(asked.topic)) " " span.hint { "(deleted)" }
                } @else {
                    a href=(Address::topic(asked.topic)) { (foreign(topic.name(asked.topic))) }
                }
            }
            dt { "Id" }
            dd { (foreign_cut(&view.id, ID_CHARS_MAX)) }
            @if let Some(state) = view.state { dt { "State" } dd { (state_badge(state)) } }
            (text("Type", first.and_then(|it| it.event_type.as_ref())))
            (text("Source", first.and_then(|it| it.source.as_ref())))
            (text("Subject", first.and_then(|it| it.subject.as_ref())))
        }
    }
}

/// The form that narrows the search to a time.
fn narrowing(asked: &Asked<'_>, refusal: Option<&Refusal>) -> Markup {
    let field = |name, label, value: &Option<String>| {
        Field {
            name,
            label,
            value: value.as_deref(),
            example: TIME_EXAMPLE,
            refusal,
        }
        .text()
    };
    // A field does not keep line breaks and control characters as they are.
    let is_kept = !asked.id.contains('\n') && visible_text(asked.id) == asked.id;
    let carried = if is_kept {
        IdInUrl::for_id(asked.id)
    } else {
        IdInUrl::always_encoded(asked.id)
    };
    let (action, in_query) = match carried.query_parameter() {
        Some(parameter) => (Address::new(&["topics", asked.topic, "event"]), parameter),
        None => (Address::event(asked.topic, asked.id), ("id", "")),
    };
    let EventAsked {
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
                (hidden(&kept))
                (field("from", "Records from (UTC)", &asked.query.from))
                (field("to", "Records before (UTC)", &asked.query.to))
                div { button type="submit" { "Search" } }
            }
        }
    }
}
