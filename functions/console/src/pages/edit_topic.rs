//! Editing the settings of a topic. Its subscriptions have pages of their own.

use std::collections::BTreeMap;

use axum::http::Method;
use axum::response::{IntoResponse, Redirect, Response};
use maud::Markup;
use posthaste_core::api::edit::{check_topic, preview_topic};
use posthaste_core::api::{TopicSettings, topic_differences};
use posthaste_core::model::TopicName;
use posthaste_yaml::{TextMistake, name_mistake};
use serde_json::{Value, json};

use crate::address;
use crate::api::{Answered, Target};
use crate::asked::{Fields, Path};
use crate::console::Pages;
use crate::editing::{Draft, Editor, Step};
use crate::page::{Answer, Page};
use crate::parts::after;
use crate::visit::Visit;

/// The form with the present settings.
pub(crate) async fn form(pages: Pages, visit: Visit, Path([topic]): Path<1>) -> Answer {
    let found = pages
        .api
        .get_versioned::<TopicSettings>(Target::new(&["topics", &topic]))
        .await?;
    let settings = TopicSettings {
        name: None,
        endpoint: None,
        subscriptions: BTreeMap::new(),
        ..found.body
    };
    let text = posthaste_yaml::to_text(&settings)
        .map_err(|error| Page::bad_request(&error.to_string()))?;
    let draft = Draft {
        text,
        version: found.etag.unwrap_or_default(),
        name: String::new(),
    };
    Ok(editor(&visit, &topic, &draft).form_page(&[]))
}

/// A step of editing.
pub(crate) async fn send(
    pages: Pages,
    visit: Visit,
    Path([topic]): Path<1>,
    fields: Fields,
) -> Result<Response, Page> {
    let step = Step::of(&fields);
    let draft = Draft::of(&fields)?;
    let editor = editor(&visit, &topic, &draft);
    if step == Step::Edit {
        return Ok(editor.form_page(&[]).into_response());
    }
    let mistaken = |mistakes: Vec<TextMistake>| editor.form_page(&mistakes);
    let target = Target::new(&["topics", &topic]);
    let present = pages
        .api
        .get_versioned::<TopicSettings>(target.clone())
        .await;
    let present = present.map_err(|refusal| editor.unread_page(&refusal))?;
    let Some(name) = &present.body.name else {
        return Err(Page::bad_request("the topic has no name"));
    };
    let settings = settings(name, &draft).map_err(mistaken)?;
    let next = preview_topic(name, &present.body, &settings, visit.now)
        .map_err(|problem| mistaken(draft.mistakes_of(&problem, "")))?;
    if step == Step::Check {
        return Ok(review(&editor, &present, &next).into_response());
    }
    match pages
        .api
        .send::<Value>(Method::PUT, target, Some(&draft.version), &settings)
        .await
    {
        Ok(_) => Ok(
            Redirect::to(&after(&address::topic(&topic, &[]), "saved", visit.now)).into_response(),
        ),
        Err(refusal) if refusal.is_of_another_version() => {
            Ok(review(&editor, &present, &next).into_response())
        }
        Err(refusal) => Err(editor.unsaved_page(&refusal)),
    }
}

/// The settings in a draft, or its mistakes.
pub(super) fn settings(name: &TopicName, draft: &Draft) -> Result<TopicSettings, Vec<TextMistake>> {
    let text = draft.text.as_bytes();
    let settings = posthaste_yaml::read_topic(text, &|settings| check_topic(name, settings))?;
    if settings.subscriptions.is_empty() {
        return Ok(settings);
    }
    let fault = "subscriptions have pages of their own, leave them out here".to_owned();
    Err(vec![name_mistake(text, "subscriptions".to_owned(), fault)])
}

/// The page with the difference, and the way to save it.
fn review(editor: &Editor<'_>, present: &Answered<TopicSettings>, next: &TopicSettings) -> Page {
    let changes = topic_differences(&json!(present.body), &json!(next));
    let version = present.etag.as_deref().unwrap_or_default();
    editor.difference_page("topic, or a subscription of it,", version, &changes)
}

fn editor<'a>(visit: &'a Visit, topic: &str, draft: &'a Draft) -> Editor<'a> {
    Editor {
        visit,
        title: format!("Edit {topic}"),
        action: address::topic(topic, &["edit"]),
        back: address::topic(topic, &[]),
        first: Markup::default(),
        draft,
    }
}
