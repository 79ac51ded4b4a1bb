//! Editing the settings of a topic. Its subscriptions have pages of their own.

use std::collections::BTreeMap;

use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_core::api::edit::{check_topic, preview};
use posthaste_core::api::{TopicSettings, topic_differences};
use posthaste_core::model::TopicName;
use posthaste_yaml::{TextMistake, name_mistake};
use serde_json::{Value, json};

use crate::address;
use crate::api::{Answered, Target};
use crate::asked::{Fields, Path};
use crate::console::Pages;
use crate::editing::{Draft, Editor, Step, changed_meanwhile, difference};
use crate::page::{Answer, Page, Section};
use crate::parts::after;
use crate::visit::Visit;

/// The form with the present settings.
pub(crate) async fn form(pages: Pages, visit: Visit, Path([topic]): Path<1>) -> Answer {
    let found = pages.api.get_versioned::<TopicSettings>(Target::new(&["topics", &topic])).await?;
    let settings = TopicSettings { name: None, endpoint: None, subscriptions: BTreeMap::new(), ..found.body };
    let text = posthaste_yaml::write(&settings).map_err(|error| Page::bad_request(&error.to_string()))?;
    let draft = Draft { text, version: found.etag.unwrap_or_default(), name: String::new() };
    Ok(form_page(&visit, &topic, &draft, &[]))
}

/// A step of editing.
pub(crate) async fn send(
    pages: Pages,
    visit: Visit,
    Path([topic]): Path<1>,
    fields: Fields,
) -> Result<Response, Page> {
    let (step, draft) = (Step::of(&fields), Draft::of(&fields)?);
    if step == Step::Edit {
        return Ok(form_page(&visit, &topic, &draft, &[]).into_response());
    }
    let mistaken = |mistakes: Vec<TextMistake>| form_page(&visit, &topic, &draft, &mistakes);
    let target = Target::new(&["topics", &topic]);
    let present = pages.api.get_versioned::<TopicSettings>(target.clone()).await?;
    let Some(name) = &present.body.name else { return Err(Page::bad_request("the topic has no name")) };
    let settings = settings(name, &draft).map_err(mistaken)?;
    let next = preview(name, &present.body, &settings, visit.now)
        .map_err(|problem| mistaken(draft.mistakes_of(&problem, "")))?;
    if step == Step::Check {
        return Ok(review(&visit, &topic, &draft, &present, &next).into_response());
    }
    match pages.api.send::<Value>(Method::PUT, target, Some(&draft.version), &settings).await {
        Ok(_) => Ok(Redirect::to(&after(&address::topic(&topic, &[]), "saved")).into_response()),
        Err(refusal) if refusal.is_of_another_version() => {
            Ok(review(&visit, &topic, &draft, &present, &next).into_response())
        }
        Err(refusal) => Err(mistaken(draft.mistakes_found(&refusal)).with_status(refusal.status())),
    }
}

/// The settings in a draft, or its mistakes.
pub(super) fn settings(name: &TopicName, draft: &Draft) -> Result<TopicSettings, Vec<TextMistake>> {
    let text = draft.text.as_bytes();
    let settings = posthaste_yaml::read(text, |settings: &TopicSettings| check_topic(name, settings))?;
    if settings.subscriptions.is_empty() {
        return Ok(settings);
    }
    let fault = "subscriptions have pages of their own, leave them out here".to_owned();
    Err(vec![name_mistake(text, "subscriptions".to_owned(), fault)])
}

fn form_page(visit: &Visit, topic: &str, draft: &Draft, mistakes: &[TextMistake]) -> Page {
    let (action, back) = (address::topic(topic, &["edit"]), address::topic(topic, &[]));
    let editor = Editor { visit, action: &action, back: &back, draft };
    let status = if mistakes.is_empty() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    page(topic, editor.form(&html! {}, mistakes)).with_status(status)
}

/// The page with the difference. Saving from here is of the version that the difference is to.
fn review(
    visit: &Visit,
    topic: &str,
    draft: &Draft,
    present: &Answered<TopicSettings>,
    next: &TopicSettings,
) -> Page {
    let changes = topic_differences(&json!(present.body), &json!(next));
    let (action, back) = (address::topic(topic, &["edit"]), address::topic(topic, &[]));
    let compared = Draft { version: present.etag.clone().unwrap_or_default(), ..draft.clone() };
    let editor = Editor { visit, action: &action, back: &back, draft: &compared };
    let is_changed = draft.version != compared.version;
    let body = html! {
        @if is_changed { (changed_meanwhile("topic, or a subscription of it,")) }
        (difference(&changes))
        (editor.decision())
    };
    page(topic, body).with_status(if is_changed { StatusCode::CONFLICT } else { StatusCode::OK })
}

fn page(topic: &str, body: Markup) -> Page {
    Page::new(format!("Edit {topic}"), body).of(Section::Topics)
}
