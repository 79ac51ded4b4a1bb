//! The subscriptions of an event: what became of it at each, and its attempts.

use maud::{Markup, html};
use posthaste_core::api::events::EventView;
use posthaste_core::delivery_log::DeliveryState;

use super::by_subscription::{SubscriptionDeliveries, group_by_subscription};
use super::context::EventPageContext;
use super::request::{EventPageQuery, EventPageRequest};
use super::resend::resend_form;
use super::rows::{COLUMNS, SubscriptionRow, row_bytes, subscription_row};
use super::timeline::{TimelineRoom, subscription_timeline, timeline_part};
use crate::address::PageAddress;
use crate::display::{CELL_CHARS_MAX, foreign_cut, foreign_text, time_tag};
use crate::filters::pager;
use crate::table::data_table;

/// Most subscriptions on a page.
const SUBSCRIPTIONS_MAX: usize = 50;

/// Most bytes of the rows of a page, so that it stays below 100 KB; fewer beside a payload.
const ROWS_BYTES_MAX: usize = 44_000;
const ROWS_BYTES_BESIDE_PAYLOAD_MAX: usize = 18_000;

/// Bytes of the tags around the cells of a row.
const ROW_TAG_BYTES: usize = 300;

/// The rows of a page, and the timelines below them.
struct ShownSubscriptions {
    rows: Vec<SubscriptionRow>,
    timelines: Vec<Markup>,
}

/// The subscriptions of the event that are asked for.
pub(super) fn subscription_list(
    asked: &EventPageRequest<'_>,
    view: &EventView,
    around: &EventPageContext<'_>,
) -> Markup {
    let all = group_by_subscription(&view.deliveries);
    let shown = show_subscriptions(asked, &all, around);
    let has_form = all.iter().any(|it| it.resendable().is_some());
    let end = asked.skipped_subscriptions() + shown.rows.len();
    html! {
        @if let Some(note) = &view.note {
            p.hint { (foreign_text(note)) }
        }
        (filter_note(asked))
        @if all.is_empty() {
            (no_delivery_note(asked, view))
        } @else {
            @if has_form { (resend_form(asked.topic, asked.id, around.visit)) }
            (data_table("Subscriptions", &COLUMNS, shown.rows))
            (subscription_pager(asked, end, all.len()))
            @for timeline in &shown.timelines { (timeline) }
        }
        p.hint { "The log is complete until " (time_tag(view.complete_until.0)) "." }
    }
}

/// The subscriptions for which there is room. Where it does not suffice for all attempts, it is for
/// those of subscriptions that do not have the event.
fn show_subscriptions(
    asked: &EventPageRequest<'_>,
    all: &[SubscriptionDeliveries<'_>],
    around: &EventPageContext<'_>,
) -> ShownSubscriptions {
    let skip = asked.skipped_subscriptions().min(all.len());
    let page = &all[skip..all.len().min(skip + SUBSCRIPTIONS_MAX)];
    let is_alone = all.len() == 1;
    let mut in_order: Vec<usize> = (0..page.len()).collect();
    in_order.sort_by_key(|at| page[*at].is_delivered());
    let mut room = TimelineRoom::for_query(asked.query, is_alone);
    let mut timelines: Vec<Option<Markup>> = vec![None; page.len()];
    for at in in_order {
        timelines[at] = subscription_timeline(asked, &page[at], is_alone, around, &mut room);
    }
    let mut bytes_left = if asked.query.payload {
        ROWS_BYTES_BESIDE_PAYLOAD_MAX
    } else {
        ROWS_BYTES_MAX
    };
    let mut shown = ShownSubscriptions {
        rows: Vec::new(),
        timelines: Vec::new(),
    };
    for (at, (it, timeline)) in page.iter().zip(timelines).enumerate() {
        let anchor = format!("attempts-{}", skip + at);
        let anchor = timeline.as_ref().map(|_| &*anchor);
        let row = subscription_row(asked, it, anchor, around);
        let bytes = row_bytes(&row) + ROW_TAG_BYTES;
        if bytes > bytes_left && !shown.rows.is_empty() {
            break;
        }
        bytes_left = bytes_left.saturating_sub(bytes);
        shown.rows.push(row);
        if let (Some(anchor), Some(timeline)) = (anchor, &timeline) {
            let is_unfolded = is_alone || !it.is_delivered();
            shown
                .timelines
                .push(timeline_part(it, anchor, is_unfolded, timeline));
        }
    }
    shown
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
                @if let Some(key) = key { "with the delivery id " code { (foreign_cut(key, CELL_CHARS_MAX)) } " " }
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
                "No delivery of this event is in the log. This page shows new attempts by itself. While an \
                 endpoint is down, its events wait for their first attempt. "
                a href=(PageAddress::new(&["failing"])) { "Show what fails" } "."
            }
        }
    }
}

/// The ways to other subscriptions.
fn subscription_pager(asked: &EventPageRequest<'_>, end: usize, count: usize) -> Markup {
    let skip = asked.skipped_subscriptions();
    let has_more = end < count && asked.query.key.is_none();
    html! {
        @if skip > 0 || end < count {
            p.hint { (count) " subscriptions were found; " (end.saturating_sub(skip)) " are on this page." }
            (pager((skip > 0).then(|| asked.address_skipping(0)), has_more.then(|| asked.address_skipping(end))))
        }
    }
}
