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
use crate::api::{ApiResponse, RequestTarget};
use crate::console::PageContext;
use crate::editing::{DraftEditor, EditStep, SettingsDraft};
use crate::extract::{FormFields, PathParts};
use crate::page::{ConsolePage, PageResult};
use crate::parts::address_after;
use crate::visit::PageVisit;

/// The form with the present settings.
pub(crate) async fn show_form(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
) -> PageResult {
    let found = pages
        .api
        .get_versioned::<TopicSettings>(RequestTarget::new(&["topics", &topic]))
        .await?;
    let settings = TopicSettings {
        name: None,
        endpoint: None,
        subscriptions: BTreeMap::new(),
        ..found.body
    };
    let text = posthaste_yaml::to_text(&settings)
        .map_err(|error| ConsolePage::bad_request(&error.to_string()))?;
    let draft = SettingsDraft {
        text,
        version: found.etag.unwrap_or_default(),
        name: String::new(),
    };
    Ok(draft_editor(&visit, &topic, &draft).form_page(&[]))
}

/// Takes the step of editing that the form names.
pub(crate) async fn submit_form(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
    fields: FormFields,
) -> Result<Response, ConsolePage> {
    let step = EditStep::from_form(&fields);
    let draft = SettingsDraft::from_form(&fields)?;
    let editor = draft_editor(&visit, &topic, &draft);
    if step == EditStep::Edit {
        return Ok(editor.form_page(&[]).into_response());
    }
    let target = RequestTarget::new(&["topics", &topic]);
    let present = pages
        .api
        .get_versioned::<TopicSettings>(target.clone())
        .await;
    let present = present.map_err(|refusal| editor.unread_page(&refusal))?;
    let Some(name) = &present.body.name else {
        return Err(ConsolePage::bad_request("the topic has no name"));
    };
    let settings = parse_settings(name, &draft).map_err(|mistakes| editor.form_page(&mistakes))?;
    let next = preview_topic(name, &present.body, &settings, visit.now)
        .map_err(|problem| editor.form_page(&draft.problem_mistakes(&problem, "")))?;
    if step == EditStep::Check {
        return Ok(review_page(&editor, &present, &next).into_response());
    }
    match pages
        .api
        .send_json::<Value>(Method::PUT, target, Some(&draft.version), &settings)
        .await
    {
        Ok(_) => Ok(Redirect::to(&address_after(
            &address::topic_path(&topic, &[]),
            "saved",
            visit.now,
        ))
        .into_response()),
        Err(refusal) if refusal.is_version_conflict() => {
            Ok(review_page(&editor, &present, &next).into_response())
        }
        Err(refusal) => Err(editor.unsaved_page(&refusal)),
    }
}

/// The settings in a draft, or its mistakes.
pub(super) fn parse_settings(
    name: &TopicName,
    draft: &SettingsDraft,
) -> Result<TopicSettings, Vec<TextMistake>> {
    let text = draft.text.as_bytes();
    let settings = posthaste_yaml::read_topic(text, &|settings| check_topic(name, settings))?;
    if settings.subscriptions.is_empty() {
        return Ok(settings);
    }
    let fault = "subscriptions have pages of their own, leave them out here".to_owned();
    Err(vec![name_mistake(text, "subscriptions".to_owned(), fault)])
}

/// The page with the difference, and the way to save it.
fn review_page(
    editor: &DraftEditor<'_>,
    present: &ApiResponse<TopicSettings>,
    next: &TopicSettings,
) -> ConsolePage {
    let changes = topic_differences(&json!(present.body), &json!(next));
    let version = present.etag.as_deref().unwrap_or_default();
    editor.difference_page("topic, or a subscription of it,", version, &changes)
}

fn draft_editor<'a>(
    visit: &'a PageVisit,
    topic: &str,
    draft: &'a SettingsDraft,
) -> DraftEditor<'a> {
    DraftEditor {
        visit,
        title: format!("Edit {topic}"),
        action: address::topic_path(topic, &["edit"]),
        back: address::topic_path(topic, &[]),
        first: Markup::default(),
        draft,
    }
}
