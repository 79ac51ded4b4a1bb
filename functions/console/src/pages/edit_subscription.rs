//! Editing the settings of a subscription.

use std::collections::BTreeMap;
use std::fmt::Display;

use axum::http::Method;
use axum::response::{IntoResponse, Redirect, Response};
use maud::Markup;
use posthaste_core::api::edit::{check_subscription, preview_topic};
use posthaste_core::api::{SubscriptionSettings, TopicSettings, subscription_differences};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_yaml::TextMistake;
use serde_json::{Value, json};

use crate::api::{ApiRefusal, RequestTarget};
use crate::console::{ConsoleState, PageContext};
use crate::editing::{DraftEditor, EditStep, SettingsDraft, unplaced_mistake};
use crate::extract::{FormFields, PathParts};
use crate::page::{ConsolePage, PageResult};
use crate::pages::subscription::{SubscriptionInUrl, settings_text};
use crate::parts::address_after;
use crate::visit::PageVisit;

/// The settings that result from a draft.
pub(super) struct WantedSettings {
    pub(super) settings: SubscriptionSettings,
    /// The subscription as it would be shown.
    pub(super) next: SubscriptionSettings,
}

/// The settings that a draft is compared with.
struct PresentSettings {
    /// The topic as it is shown, with the subscription.
    topic: TopicSettings,
    /// The version of the subscription.
    version: String,
}

/// The form with the present settings.
pub(crate) async fn show_form(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name]): PathParts<2>,
) -> PageResult {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    let found = pages
        .api
        .get_versioned::<SubscriptionSettings>(named.request_target(&[]))
        .await?;
    let draft = SettingsDraft {
        text: settings_text(&found.body)?,
        version: found.etag.unwrap_or_default(),
        name: String::new(),
    };
    let draft = draft.check_length("Nothing was changed.")?;
    Ok(draft_editor(&visit, named, &draft).form_page(&[]))
}

/// Takes the step of editing that the form names.
pub(crate) async fn submit_form(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic, name]): PathParts<2>,
    fields: FormFields,
) -> Result<Response, ConsolePage> {
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &name,
    };
    let step = EditStep::from_form(&fields);
    let draft = SettingsDraft::from_form(&fields)?;
    let editor = draft_editor(&visit, named, &draft);
    if step == EditStep::Edit {
        return Ok(editor.form_page(&[]).into_response());
    }
    let present = load_present(&pages, named).await;
    let present = present.map_err(|refusal| editor.unread_page(&refusal))?;
    let wanted = wanted_settings(&present.topic, &name, &draft, visit.now)
        .map_err(|mistakes| editor.form_page(&mistakes))?;
    if step == EditStep::Check {
        return Ok(review_page(&editor, named, &present, &wanted).into_response());
    }
    let saved = pages.api.send_json::<Value>(
        Method::PUT,
        named.request_target(&[]),
        Some(&draft.version),
        &wanted.settings,
    );
    match saved.await {
        Ok(_) => Ok(
            Redirect::to(&address_after(&named.page_path(&[]), "saved", visit.now)).into_response(),
        ),
        Err(refusal) if refusal.is_version_conflict() => {
            Ok(review_page(&editor, named, &present, &wanted).into_response())
        }
        Err(refusal) => Err(editor.unsaved_page(&refusal)),
    }
}

async fn load_present(
    pages: &ConsoleState,
    named: SubscriptionInUrl<'_>,
) -> Result<PresentSettings, ApiRefusal> {
    // The version is read first: if the topic is newer, saving is refused and does not undo the
    // newer change.
    let found = pages
        .api
        .get_versioned::<Value>(named.request_target(&[]))
        .await?;
    let topic = pages
        .api
        .get(RequestTarget::new(&["topics", named.topic]))
        .await?;
    Ok(PresentSettings {
        topic,
        version: found.etag.unwrap_or_default(),
    })
}

/// The settings that a draft gives the topic's subscription `name`, or the mistakes of the draft.
pub(super) fn wanted_settings(
    topic: &TopicSettings,
    name: &str,
    draft: &SettingsDraft,
    now: Timestamp,
) -> Result<WantedSettings, Vec<TextMistake>> {
    let name = SubscriptionName::parse(name).map_err(|error| name_mistakes(&error))?;
    let of = topic
        .name
        .clone()
        .ok_or_else(|| name_mistakes(&"the topic has no name"))?;
    let settings = posthaste_yaml::read_subscription(draft.text.as_bytes(), &|written| {
        check_subscription(&of, topic, &name, written)
    })?;
    let next = preview_settings(&of, topic, &name, &settings, now)
        .map_err(|problem| draft.problem_mistakes(&problem, &format!("subscriptions.{name}.")))?;
    Ok(WantedSettings { settings, next })
}

fn name_mistakes(error: &dyn Display) -> Vec<TextMistake> {
    vec![unplaced_mistake("name", error)]
}

fn preview_settings(
    of: &TopicName,
    topic: &TopicSettings,
    name: &SubscriptionName,
    settings: &SubscriptionSettings,
    now: Timestamp,
) -> Result<SubscriptionSettings, posthaste_core::api::problem::ApiProblem> {
    let subscriptions = BTreeMap::from([(name.clone(), settings.clone())]);
    let next = preview_topic(
        of,
        topic,
        &TopicSettings {
            subscriptions,
            ..topic.clone()
        },
        now,
    )?;
    Ok(next
        .find_subscription(name)
        .map_or_else(|| settings.clone(), |(_, next)| next.clone()))
}

/// The page with the difference, and the way to save it.
fn review_page(
    editor: &DraftEditor<'_>,
    named: SubscriptionInUrl<'_>,
    present: &PresentSettings,
    wanted: &WantedSettings,
) -> ConsolePage {
    let name = SubscriptionName::parse(named.name).ok();
    let before = name
        .as_ref()
        .and_then(|name| present.topic.find_subscription(name))
        .map(|(_, before)| json!(before));
    let changes = subscription_differences(&before.unwrap_or_default(), &json!(wanted.next));
    editor.difference_page("subscription", &present.version, &changes)
}

fn draft_editor<'a>(
    visit: &'a PageVisit,
    named: SubscriptionInUrl<'_>,
    draft: &'a SettingsDraft,
) -> DraftEditor<'a> {
    DraftEditor {
        visit,
        title: format!("Edit {} / {}", named.topic, named.name),
        action: named.page_path(&["edit"]),
        back: named.page_path(&[]),
        first: Markup::default(),
        draft,
    }
}
