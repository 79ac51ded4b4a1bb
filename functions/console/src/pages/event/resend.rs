//! An event that is sent again.

use axum::http::Method;
use axum::response::Redirect;
use maud::html;
use posthaste_core::api::events::IdInUrl;
use posthaste_core::api::{DeadLetterPlace, ResendRequest, ResendView};

use super::asked::IdAsked;
use crate::address::Address;
use crate::api::{Answered, Refusal, Target};
use crate::asked::{Fields, Path, Query};
use crate::console::Pages;
use crate::doubt::{hint, title};
use crate::page::{Page, Section, problem};
use crate::parts::after;
use crate::visit::Visit;

/// The address to which forms that send an event again are sent. The id stands in it: of a field,
/// browsers change line breaks.
pub(crate) fn resend_address(topic: &str, id: &str) -> Address {
    Address::new(&["topics", topic, "resend"]).id(id)
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

/// Sends the event again. Its page says what the API says of it.
pub(crate) async fn resend(
    pages: Pages,
    visit: Visit,
    Path([topic]): Path<1>,
    Query(asked): Query<IdAsked>,
    fields: Fields,
) -> Result<Redirect, Page> {
    let id = asked.id();
    let subscription = fields.get("subscription");
    let carried = IdInUrl::for_id(&id);
    let target = Target::new(&[
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
    let event = Address::event(&topic, &id).to_string();
    match pages
        .api
        .send::<ResendView>(Method::POST, target, None, &request(&fields))
        .await
    {
        Ok(Answered { body, .. }) => Ok(Redirect::to(&after(&event, &words(&body), visit.now))),
        Err(refusal) => Err(refused(&refusal, &event)),
    }
}

fn refused(refusal: &Refusal, event: &str) -> Page {
    let body = html! {
        (problem(refusal))
        (hint(refusal, "the event was sent again", event, "the event"))
        p { a.button href=(event) { "To the event" } }
    };
    let title = title(refusal, "The event was not sent again");
    Page::new(title, body)
        .of(Section::Events)
        .with_status(refusal.status())
}

/// The words for what the API says of the new delivery.
fn words(view: &ResendView) -> String {
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
fn request(fields: &Fields) -> ResendRequest {
    let field = |name| {
        Some(fields.get(name))
            .filter(|value| !value.is_empty())
            .map(str::to_owned)
    };
    let index = fields.get("index").parse().ok();
    let dead_letter = field("object")
        .zip(index)
        .map(|(object, index)| DeadLetterPlace { object, index });
    ResendRequest {
        key: field("key"),
        dead_letter,
        new_id: false,
    }
}
