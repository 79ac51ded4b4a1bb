//! Making a topic.

use axum::http::StatusCode;
use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::model::TopicName;
use posthaste_yaml::TextMistake;
use serde_json::Value;

use crate::address;
use crate::api::Target;
use crate::asked::Fields;
use crate::console::Pages;
use crate::editing::{Draft, mistake_in, mistakes, text_area, unsaved};
use crate::page::{Page, Section, form_token};
use crate::pages::edit_topic::settings;
use crate::pages::new_subscription::name_field;
use crate::parts::after;
use crate::visit::Visit;

/// The settings that a new topic begins with.
const TEMPLATE: &str = "\
# The schema of the events: CloudEvents, EventGrid or Custom.
inputSchema: CloudEvents

# Events that were not delivered in this time are given up.
#defaultTimeToLive: P1D

# What the delivery log keeps: payloads, attempts or off.
#deliveryLog: payloads
";

/// The form.
pub(crate) async fn form(visit: Visit) -> Page {
    let draft = Draft {
        text: TEMPLATE.to_owned(),
        version: String::new(),
        name: String::new(),
    };
    page(&visit, &draft, None)
}

/// Makes the topic.
pub(crate) async fn send(pages: Pages, visit: Visit, fields: Fields) -> Result<Redirect, Page> {
    let draft = Draft::of(&fields)?;
    let mistaken = |found: Vec<TextMistake>| {
        page(&visit, &draft, Some(&mistakes(&found))).with_status(StatusCode::BAD_REQUEST)
    };
    let name =
        TopicName::parse(&draft.name).map_err(|error| mistaken(vec![mistake_in("name", error)]))?;
    let settings = settings(&name, &draft).map_err(mistaken)?;
    match pages
        .api
        .create::<Value>(Target::new(&["topics", name.as_str()]), &settings)
        .await
    {
        Ok(_) => Ok(Redirect::to(&after(
            &address::topic(name.as_str(), &[]),
            "created",
            visit.now,
        ))),
        Err(refusal) if refusal.is_of_another_version() => Err(mistaken(vec![mistake_in(
            "name",
            format!("there is a topic {:?} already", name.as_str()),
        )])),
        Err(refusal) => {
            let note = unsaved(&draft, &refusal, &address::topic(name.as_str(), &[]));
            Err(page(&visit, &draft, Some(&note)).with_status(refusal.status()))
        }
    }
}

fn page(visit: &Visit, draft: &Draft, note: Option<&Markup>) -> Page {
    let body = html! {
        @if let Some(note) = note { (note) }
        form method="post" action=(address::page(&["topics", address::NEW])) {
            (form_token(&visit.form_token))
            (name_field("topic", &draft.name))
            details open[note.is_some()] {
                summary { "More settings" }
                (text_area(&draft.text))
            }
            div.actions {
                button.primary type="submit" { "Create topic" }
                a.button href=(address::page(&["topics"])) { "Cancel" }
            }
        }
    };
    Page::new("New topic", body).of(Section::Topics)
}
