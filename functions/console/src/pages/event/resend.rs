//! An event that is sent again.

use axum::http::Method;
use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::api::events::{DeliveryView, IdInUrl};
use posthaste_core::api::{DeadLetterPlace, ResendRequest, ResendView};

use super::request::EventIdPageQuery;
use crate::address::PageAddress;
use crate::api::{ApiRefusal, ApiResponse, RequestTarget};
use crate::console::PageContext;
use crate::display::visible_text;
use crate::extract::{FormFields, PageQuery, PathParts};
use crate::page::{ConsolePage, MenuSection, form_token, problem_box};
use crate::parts::address_after;
use crate::uncertain::{failure_title, uncertainty_hint};
use crate::visit::PageVisit;

/// The address of the forms that send an event again. The id is a part of it, because browsers
/// change line breaks in a field.
pub(crate) fn resend_address(topic: &str, id: &str) -> PageAddress {
    PageAddress::new(&["topics", topic, "resend"]).with_event_id(id)
}

/// The form of all buttons of a page that send the event again. One form, because an id may be
/// long.
const FORM: &str = "send-again";

/// The field with the delivery that is sent again: its subscription, a space and its key.
const DELIVERY: &str = "delivery";

/// The form of the buttons that send a delivery of the event again.
pub(super) fn resend_form(topic: &str, id: &str, visit: &PageVisit) -> Markup {
    html! {
        form id=(FORM) method="post" action=(resend_address(topic, id)) { (form_token(&visit.form_token)) }
    }
}

/// The button that sends a delivery again.
pub(super) fn resend_button(it: &DeliveryView) -> Markup {
    let name = format!("Send again to {}", visible_text(&it.subscription));
    let value = format!("{} {}", it.subscription, it.key);
    html! {
        button form=(FORM) type="submit" name=(DELIVERY) value=(value) aria-label=(name) { "Send again" }
    }
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
    let named = ResentDelivery::from_fields(&fields);
    let carried = IdInUrl::for_id(&id);
    let target = RequestTarget::new(&[
        "topics",
        &topic,
        "subscriptions",
        named.subscription,
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
        .send_json::<ResendView>(
            Method::POST,
            target,
            None,
            &resend_request(&fields, named.key),
        )
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

/// The delivery that a form names. One for a dead letter names its subscription alone.
struct ResentDelivery<'a> {
    subscription: &'a str,
    key: Option<&'a str>,
}

impl<'a> ResentDelivery<'a> {
    fn from_fields(fields: &'a FormFields) -> Self {
        match fields.get(DELIVERY).split_once(' ') {
            Some((subscription, key)) => Self {
                subscription,
                key: Some(key),
            },
            None => Self {
                subscription: fields.get("subscription"),
                key: None,
            },
        }
    }
}

/// The request for the delivery, or for the dead letter that a form names.
fn resend_request(fields: &FormFields, key: Option<&str>) -> ResendRequest {
    let index = fields.get("index").parse().ok();
    let dead_letter = fields
        .get_filled("object")
        .zip(index)
        .map(|(object, index)| DeadLetterPlace { object, index });
    ResendRequest {
        key: key.map(str::to_owned),
        dead_letter,
        new_id: false,
    }
}
