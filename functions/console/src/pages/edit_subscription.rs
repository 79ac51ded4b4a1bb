//! Editing the settings of a subscription.

use std::collections::BTreeMap;

use axum::http::Method;
use axum::response::{IntoResponse, Redirect, Response};
use maud::Markup;
use posthaste_core::api::edit::{check_subscription, preview_topic};
use posthaste_core::api::{SubscriptionSettings, TopicSettings, subscription_differences};
use posthaste_core::model::{SubscriptionName, Timestamp, TopicName};
use posthaste_yaml::TextMistake;
use serde_json::{Value, json};

use crate::api::{Refusal, Target};
use crate::asked::{Fields, Path};
use crate::console::{Console, Pages};
use crate::editing::{Draft, Editor, Step};
use crate::page::{Answer, Page};
use crate::pages::subscription::{Named, settings_text};
use crate::parts::after;
use crate::visit::Visit;

/// The settings that result from a draft.
pub(super) struct Wanted {
    pub(super) settings: SubscriptionSettings,
    /// The subscription as it would be shown.
    pub(super) next: SubscriptionSettings,
}

/// The form with the present settings.
pub(crate) async fn form(pages: Pages, visit: Visit, Path([topic, name]): Path<2>) -> Answer {
    let named = Named {
        topic: &topic,
        name: &name,
    };
    let found = pages
        .api
        .get_versioned::<SubscriptionSettings>(named.target(&[]))
        .await?;
    let draft = Draft {
        text: settings_text(&found.body)?,
        version: found.etag.unwrap_or_default(),
        name: String::new(),
    };
    let draft = draft.checked("Nothing was changed.")?;
    Ok(editor(&visit, named, &draft).form_page(&[]))
}

/// A step of editing.
pub(crate) async fn send(
    pages: Pages,
    visit: Visit,
    Path([topic, name]): Path<2>,
    fields: Fields,
) -> Result<Response, Page> {
    let named = Named {
        topic: &topic,
        name: &name,
    };
    let step = Step::of(&fields);
    let draft = Draft::of(&fields)?;
    let editor = editor(&visit, named, &draft);
    if step == Step::Edit {
        return Ok(editor.form_page(&[]).into_response());
    }
    let mistaken = |mistakes: Vec<TextMistake>| editor.form_page(&mistakes);
    let present = present(&pages, named).await;
    let (present, version) = present.map_err(|refusal| editor.unread_page(&refusal))?;
    let wanted = wanted(&present, &name, &draft, visit.now).map_err(mistaken)?;
    if step == Step::Check {
        return Ok(review(&editor, named, (&present, &version), &wanted).into_response());
    }
    let saved = pages.api.send::<Value>(
        Method::PUT,
        named.target(&[]),
        Some(&draft.version),
        &wanted.settings,
    );
    match saved.await {
        Ok(_) => Ok(Redirect::to(&after(&named.page(&[]), "saved", visit.now)).into_response()),
        Err(refusal) if refusal.is_of_another_version() => {
            Ok(review(&editor, named, (&present, &version), &wanted).into_response())
        }
        Err(refusal) => Err(editor.unsaved_page(&refusal)),
    }
}

/// The topic as it is shown, and the version of the subscription.
async fn present(pages: &Console, named: Named<'_>) -> Result<(TopicSettings, String), Refusal> {
    // The version first: if the topic is newer than it, saving is refused, and not the newer one
    // lost.
    let found = pages.api.get_versioned::<Value>(named.target(&[])).await?;
    let topic = pages.api.get(Target::new(&["topics", named.topic])).await?;
    Ok((topic, found.etag.unwrap_or_default()))
}

/// The settings that a draft gives the topic's subscription `name`, or the mistakes of the draft.
pub(super) fn wanted(
    topic: &TopicSettings,
    name: &str,
    draft: &Draft,
    now: Timestamp,
) -> Result<Wanted, Vec<TextMistake>> {
    let mistaken = |error: &dyn std::fmt::Display| vec![crate::editing::mistake_in("name", error)];
    let name = SubscriptionName::parse(name).map_err(|error| mistaken(&error))?;
    let of = topic
        .name
        .clone()
        .ok_or_else(|| mistaken(&"the topic has no name"))?;
    let check = |written: &SubscriptionSettings| check_subscription(&of, topic, &name, written);
    let settings = posthaste_yaml::read_subscription(draft.text.as_bytes(), &check)?;
    let next = previewed(&of, topic, &name, &settings, now)
        .map_err(|problem| draft.mistakes_of(&problem, &format!("subscriptions.{name}.")))?;
    Ok(Wanted { settings, next })
}

fn previewed(
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
fn review(
    editor: &Editor<'_>,
    named: Named<'_>,
    (present, version): (&TopicSettings, &str),
    wanted: &Wanted,
) -> Page {
    let name = SubscriptionName::parse(named.name).ok();
    let before = name
        .as_ref()
        .and_then(|name| present.find_subscription(name))
        .map(|(_, before)| json!(before));
    let changes = subscription_differences(&before.unwrap_or_default(), &json!(wanted.next));
    editor.difference_page("subscription", version, &changes)
}

fn editor<'a>(visit: &'a Visit, named: Named<'_>, draft: &'a Draft) -> Editor<'a> {
    Editor {
        visit,
        title: format!("Edit {} / {}", named.topic, named.name),
        action: named.page(&["edit"]),
        back: named.page(&[]),
        first: Markup::default(),
        draft,
    }
}
