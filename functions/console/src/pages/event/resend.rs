//! An event that is sent again.

use axum::http::Method;
use axum::response::Redirect;
use maud::html;
use posthaste_core::api::events::IdInUrl;
use posthaste_core::api::{DeadLetterPlace, ResendRequest, ResendView};

use super::request::EventIdPageQuery;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ApiResponse, RequestTarget};
use crate::console::PageContext;
use crate::extract::{FormFields, PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection, problem_box};
use crate::parts::address_after;
use crate::uncertain::{failure_title, uncertainty_hint};
use crate::visit::PageVisit;

/// The address of the forms that send an event again. The id is a part of it, because browsers
/// change line breaks in a field.
pub(crate) fn resend_address(topic: &str, id: &str) -> PageAddress {
    PageAddress::new(&["topics", topic, "resend"]).with_event_id(id)
}

/// The notices of an event that was sent again, by the words of the page's query.
pub(super) const DONE: [(&str, &str); 3] = [
    (
        RESENT,
        "The event is sent again: a new delivery of it is queued. Its attempts are shown here. \
         Once it is delivered, its dead letter is resolved.",
    ),
    (
        WAITS,
        "An earlier delivery of the event still waits: that copy may arrive too.",
    ),
    (
        SEARCH_CUT,
        "The delivery log was not wholly searched, so earlier deliveries may be missing.",
    ),
];

const RESENT: &str = "resent";
const WAITS: &str = "waits";
const SEARCH_CUT: &str = "search-cut";

/// Sends the event again. Its page then says what the API returned.
pub(crate) async fn resend(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
    PageQuery(asked): PageQuery<EventIdPageQuery>,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let id = asked.into_id();
    let subscription = fields.get("subscription");
    let carried = IdInUrl::for_id(&id);
    let target = RequestTarget::new(&[
        "topics",
        &topic,
        "subscriptions",
        subscription,
        "events",
        carried.path_segment(),
        "resend",
    ]);
    let target = match carried.query_parameter() {
        Some((name, value)) => target.query(name, Some(value)),
        None => target,
    };
    let event = PageAddress::for_event(&topic, &id).to_string();
    match pages
        .api
        .send_json::<ResendView>(Method::POST, target, None, &resend_request(&fields))
        .await
    {
        Ok(ApiResponse { body, .. }) => Ok(Redirect::to(&address_after(
            &event,
            &notice_words(&body),
            visit.now,
        ))),
        Err(refusal) => Err(refused_page(&refusal, &event)),
    }
}

fn refused_page(refusal: &ApiRefusal, event: &str) -> ConsolePage {
    let body = html! {
        (problem_box(refusal))
        (uncertainty_hint(refusal, "the event was sent again", event, "the event"))
        p { a.button href=(event) { "To the event" } }
    };
    let title = failure_title(refusal, "The event was not sent again");
    ConsolePage::new(title, body)
        .in_section(MenuSection::Events)
        .with_status(refusal.status_code())
}

/// The words of the notices about the new delivery.
fn notice_words(view: &ResendView) -> String {
    let said = [
        (view.earlier_waits, WAITS),
        (view.searched_from.is_some(), SEARCH_CUT),
    ];
    let said = said
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, word)| word);
    [RESENT]
        .into_iter()
        .chain(said)
        .collect::<Vec<_>>()
        .join(",")
}

/// The delivery or the dead letter that a form names.
fn resend_request(fields: &FormFields) -> ResendRequest {
    let index = fields.get("index").parse().ok();
    let dead_letter = fields
        .get_filled("object")
        .zip(index)
        .map(|(object, index)| DeadLetterPlace { object, index });
    ResendRequest {
        key: fields.get_filled("key"),
        dead_letter,
        new_id: false,
    }
}
