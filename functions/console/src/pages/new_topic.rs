//! The creation of a topic.

use axum::http::StatusCode;
use axum::response::Redirect;
use maud::{Markup, html};
use posthaste_core::model::TopicName;
use posthaste_yaml::TextMistake;
use serde_json::Value;

use crate::address;
use crate::api::RequestTarget;
use crate::console::PageContext;
use crate::editing::{SettingsDraft, mistake_list, text_area, unplaced_mistake, unsaved_note};
use crate::extract::FormFields;
use crate::page::{ConsolePage, MenuSection, form_token};
use crate::pages::edit_topic::parse_settings;
use crate::pages::new_subscription::name_field;
use crate::parts::address_after;
use crate::visit::PageVisit;

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
pub(crate) async fn show_form(visit: PageVisit) -> ConsolePage {
    let draft = SettingsDraft {
        text: TEMPLATE.to_owned(),
        version: String::new(),
        name: String::new(),
    };
    form_page(&visit, &draft, None)
}

/// Makes the topic.
pub(crate) async fn submit_form(
    pages: PageContext,
    visit: PageVisit,
    fields: FormFields,
) -> Result<Redirect, ConsolePage> {
    let draft = SettingsDraft::from_form(&fields)?;
    let name = TopicName::parse(&draft.name)
        .map_err(|error| mistaken_page(&visit, &draft, &[unplaced_mistake("name", error)]))?;
    let settings =
        parse_settings(&name, &draft).map_err(|found| mistaken_page(&visit, &draft, &found))?;
    match pages
        .api
        .create::<Value>(RequestTarget::new(&["topics", name.as_str()]), &settings)
        .await
    {
        Ok(_) => Ok(Redirect::to(&address_after(
            &address::topic_path(name.as_str(), &[]),
            "created",
            visit.now,
        ))),
        Err(refusal) if refusal.is_version_conflict() => {
            let text = format!("there is a topic {:?} already", name.as_str());
            Err(mistaken_page(
                &visit,
                &draft,
                &[unplaced_mistake("name", text)],
            ))
        }
        Err(refusal) => {
            let note = unsaved_note(&draft, &refusal, &address::topic_path(name.as_str(), &[]));
            Err(form_page(&visit, &draft, Some(&note)).with_status(refusal.status_code()))
        }
    }
}

fn mistaken_page(
    visit: &PageVisit,
    draft: &SettingsDraft,
    mistakes: &[TextMistake],
) -> ConsolePage {
    form_page(visit, draft, Some(&mistake_list(mistakes))).with_status(StatusCode::BAD_REQUEST)
}

fn form_page(visit: &PageVisit, draft: &SettingsDraft, note: Option<&Markup>) -> ConsolePage {
    let body = html! {
        @if let Some(note) = note { (note) }
        form method="post" action=(address::page_path(&["topics", address::NEW])) {
            (form_token(&visit.form_token))
            (name_field("topic", &draft.name))
            details open[note.is_some()] {
                summary { "More settings" }
                (text_area(&draft.text))
            }
            div.actions {
                button.primary type="submit" { "Create topic" }
                a.button href=(address::page_path(&["topics"])) { "Cancel" }
            }
        }
    };
    ConsolePage::new("New topic", body).in_section(MenuSection::Topics)
}
