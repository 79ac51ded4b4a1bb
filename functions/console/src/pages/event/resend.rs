//! An event that is sent again.

use axum::http::Method;
use maud::{Markup, html};
use posthaste_core::api::{DeadLetterPlace, ResendRequest, ResendView};

use super::asked::{ID_CHARS_MAX, IdAsked};
use crate::address::Address;
use crate::api::{Answered, Target};
use crate::asked::{Fields, Path, Query};
use crate::console::Pages;
use crate::doubt::{hint, title};
use crate::page::{Answer, Page, Section, problem};
use crate::shown::foreign;

/// The address to which forms that send an event again are sent. The id stands in it: of a field, browsers
/// change line breaks.
pub(crate) fn resend_address(topic: &str, id: &str) -> Address {
    Address::new(&["topics", topic, "resend"]).query("id", Some(id))
}

/// Sends the event again, and shows what the API says of it.
pub(crate) async fn resend(
    pages: Pages,
    Path([topic]): Path<1>,
    Query(IdAsked { id }): Query<IdAsked>,
    fields: Fields,
) -> Answer {
    let subscription = fields.get("subscription");
    let target = Target::new(&["topics", &topic, "subscriptions", subscription, "events", &id, "resend"]);
    let sent = pages.api.send(Method::POST, target, None, &request(&fields)).await;
    let event = Address::event(&topic, &id);
    let back = html! { p { a.button href=(event) { "To the event" } } };
    match sent {
        Ok(Answered { body, .. }) => {
            let body = html! { (said(&body, subscription)) (back) };
            Ok(Page::new("The event is sent again", body).of(Section::Events))
        }
        Err(refusal) => {
            let look = Address::event(&topic, &id).to_string();
            let body = html! {
                (problem(&refusal))
                (hint(&refusal, "the event was sent again", &look, "the event"))
                (back)
            };
            Err(Page::new(title(&refusal, "The event was not sent again"), body)
                .of(Section::Events)
                .with_status(refusal.status()))
        }
    }
}

/// The delivery or the dead letter that a form names.
fn request(fields: &Fields) -> ResendRequest {
    let field = |name| Some(fields.get(name)).filter(|value| !value.is_empty()).map(str::to_owned);
    let index = fields.get("index").parse().ok();
    let dead_letter = field("object").zip(index).map(|(object, index)| DeadLetterPlace { object, index });
    ResendRequest { key: field("key"), dead_letter }
}

fn said(view: &ResendView, subscription: &str) -> Markup {
    html! {
        p.done role="status" { (foreign(&view.note)) "." }
        dl.facts {
            dt { "Event" }
            dd { (crate::shown::foreign_cut(&view.id, ID_CHARS_MAX)) }
            dt { "Subscription" }
            dd { (foreign(subscription)) }
            dt { "Key of the new delivery" }
            dd { code { (foreign(&view.key)) } }
            dt { "webhook-id" }
            dd { code { (foreign(&view.webhook_id)) } }
        }
    }
}
