//! The deliveries of an event, page by page.

use maud::{Markup, html};
use posthaste_core::api::events::{DeliveryView, EventView};
use posthaste_core::delivery_log::DeliveryState;

use super::context::EventPageContext;
use super::delivery::{AttemptRoom, delivery_section};
use super::request::{EventPageQuery, EventPageRequest};
use crate::address::PageAddress;
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text, time_tag};
use crate::filters::pager;

/// Most deliveries that the page shows.
const DELIVERIES_MAX: usize = 20;

pub(super) fn delivery_list(
    asked: &EventPageRequest<'_>,
    view: &EventView,
    around: &EventPageContext<'_>,
) -> Markup {
    let mut room = AttemptRoom::for_query(asked.query);
    html! {
        @if let Some(note) = &view.note {
            p.hint { (foreign_text(note)) }
        }
        (filter_note(asked))
        @if view.deliveries.is_empty() { (no_delivery_note(asked, view)) }
        @for it in shown_deliveries(asked, view) { (delivery_section(asked, it, around, &mut room)) }
        (delivery_pager(asked, view.deliveries.len()))
        p.hint { "The log is complete until " (time_tag(view.complete_until.0)) "." }
    }
}

/// The deliveries that the page shows. With a key, `skip` is that of its attempts.
fn shown_deliveries<'a>(
    asked: &EventPageRequest<'_>,
    view: &'a EventView,
) -> impl Iterator<Item = &'a DeliveryView> {
    let skip = if asked.query.key.is_some() {
        0
    } else {
        asked.query.skip
    };
    view.deliveries.iter().skip(skip).take(DELIVERIES_MAX)
}

/// The filters that hold, and the way to all deliveries.
fn filter_note(asked: &EventPageRequest<'_>) -> Markup {
    let EventPageQuery {
        subscription, key, ..
    } = asked.query;
    let all = EventPageQuery {
        subscription: None,
        key: None,
        skip: 0,
        ..asked.query.clone()
    };
    html! {
        @if subscription.is_some() || key.is_some() {
            p {
                "Only deliveries "
                @if let Some(subscription) = subscription { "to " (foreign_text(subscription)) " " }
                @if let Some(key) = key { "with the key " code { (foreign_cut(key, CELL_CHARS_MAX)) } " " }
                "are shown. "
                a href=(asked.address_with(&all)) { "Show all deliveries" } "."
            }
        }
    }
}

fn no_delivery_note(asked: &EventPageRequest<'_>, view: &EventView) -> Markup {
    let search = &asked.query;
    let is_narrow = search.from.is_some() || search.to.is_some();
    html! {
        p.empty {
            @if is_narrow || search.subscription.is_some() || search.key.is_some() {
                "The log has no delivery of this event with these values. "
                a href=(PageAddress::for_event(asked.topic, asked.id)) { "Search without them" } "."
            } @else if view.state == Some(DeliveryState::Unmatched) {
                "The event matched no subscription, so there is nothing to deliver."
            } @else {
                "No delivery of this event is in the log. This page shows new attempts by itself. While a \
                 link is on hold, its events wait for their first attempt. "
                a href=(PageAddress::new(&["links"])) { "Show the links that are not well" } "."
            }
        }
    }
}

/// The ways to newer and older deliveries.
fn delivery_pager(asked: &EventPageRequest<'_>, count: usize) -> Markup {
    let EventPageQuery { key, skip, .. } = asked.query;
    let end = skip.saturating_add(DELIVERIES_MAX);
    html! {
        @if key.is_none() && (*skip > 0 || end < count) {
            p.hint {
                (count) " deliveries were found"
                @if end < count { "; " (count - end) " older deliveries are on the next page" }
                "."
            }
            (pager((*skip > 0).then(|| asked.address_skipping(0)), (end < count).then(|| asked.address_skipping(end))))
        }
    }
}
