//! The creation of a subscription.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_core::api::{SubscriptionSettings, TopicSettings};
use posthaste_core::model::SubscriptionName;
use posthaste_yaml::TextMistake;

use crate::address;
use crate::api::RequestTarget;
use crate::console::PageContext;
use crate::display::foreign_text;
use crate::editing::{DraftEditor, EditStep, SettingsDraft, unplaced_mistake};
use crate::extract::{FormFields, PathParts};
use crate::page::{ConsolePage, MenuSection, PageResult};
use crate::pages::edit_subscription::{WantedSettings, wanted_settings};
use crate::pages::subscription::{SubscriptionInUrl, settings_text};
use crate::pages::subscription_actions::secret_to_copy;
use crate::parts::{address_after, button_form, copy_block};
use crate::visit::PageVisit;

/// The settings that a new subscription begins with.
const TEMPLATE: &str = "\
# Where the events go.
endpoint:
  url: https://example.com/hooks

# Which events go there. Without a filter, all of the topic.
#filter:
#  includedEventTypes: [com.example.order.paid]
#  subjectBeginsWith: orders/

# How often it is tried. Without a policy, 30 times within a day.
#retryPolicy:
#  maxDeliveryAttempts: 10
#  eventTimeToLiveInMinutes: 60

# Headers of every request.
#deliveryHeaders:
#  - { name: Authorization, value: \"Bearer ...\", isSecret: true }

# A signing secret is made, and shown once after saving.
";

/// The form.
pub(crate) async fn show_form(
    pages: PageContext,
    visit: PageVisit,
    PathParts([topic]): PathParts<1>,
) -> PageResult {
    let _: TopicSettings = pages
        .api
        .get(RequestTarget::new(&["topics", &topic]))
        .await?;
    let draft = SettingsDraft {
        text: TEMPLATE.to_owned(),
        version: String::new(),
        name: String::new(),
    };
    Ok(draft_editor(&visit, &topic, &draft).form_page(&[]))
}

/// Takes the step of creation that the form names.
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
    let present = pages
        .api
        .get::<TopicSettings>(RequestTarget::new(&["topics", &topic]))
        .await;
    let present = present.map_err(|refusal| editor.unread_page(&refusal))?;
    let wanted =
        new_settings(&present, &draft, &visit).map_err(|mistakes| editor.form_page(&mistakes))?;
    if step == EditStep::Check {
        return Ok(review_page(&editor, &wanted)?.into_response());
    }
    let named = SubscriptionInUrl {
        topic: &topic,
        name: &draft.name,
    };
    match pages
        .api
        .create::<SubscriptionSettings>(named.request_target(&[]), &wanted.settings)
        .await
    {
        Ok(created) => Ok(created_page(&visit, named, &created.body)),
        Err(refusal) if refusal.is_version_conflict() => {
            Err(editor.form_page(&[name_taken_mistake(&draft.name)]))
        }
        Err(refusal) => Err(editor.unsaved_page(&refusal)),
    }
}

/// The settings of the new subscription, or the mistakes of the draft.
fn new_settings(
    topic: &TopicSettings,
    draft: &SettingsDraft,
    visit: &PageVisit,
) -> Result<WantedSettings, Vec<TextMistake>> {
    match SubscriptionName::parse(&draft.name) {
        Ok(name) if topic.stored_name(&name).is_some() => {
            Err(vec![name_taken_mistake(&draft.name)])
        }
        Ok(_) => wanted_settings(topic, &draft.name, draft, visit.now),
        // The mistakes of the settings are shown with that of the name.
        Err(error) => {
            let others = wanted_settings(topic, "new", draft, visit.now)
                .err()
                .unwrap_or_default();
            Err([vec![unplaced_mistake("name", error)], others].concat())
        }
    }
}

fn name_taken_mistake(name: &str) -> TextMistake {
    unplaced_mistake(
        "name",
        format!("the topic has a subscription {name:?} already"),
    )
}

fn draft_editor<'a>(
    visit: &'a PageVisit,
    topic: &str,
    draft: &'a SettingsDraft,
) -> DraftEditor<'a> {
    DraftEditor {
        visit,
        title: format!("New subscription of {topic}"),
        action: address::topic_path(topic, &["subscriptions", address::NEW]),
        back: address::topic_path(topic, &[]),
        first: name_field("subscription", &draft.name),
        draft,
    }
}

/// The field for the name of something new.
pub(super) fn name_field(what: &str, name: &str) -> Markup {
    html! {
        label for="name" { "Name of the " (what) }
        input #name name="name" value=(name) autocomplete="off" maxlength="64" required autofocus
            aria-describedby="name-hint";
        p.hint #name-hint { "Letters, digits and hyphens. It cannot be changed later." }
    }
}

/// The page with the settings, and the way to save them.
fn review_page(editor: &DraftEditor<'_>, wanted: &WantedSettings) -> PageResult {
    let name = &editor.draft.name;
    Ok(editor.decision_page(&html! {
        p { "Saving makes the subscription " strong { (foreign_text(name)) } " with these settings:" }
        (copy_block("Settings of the new subscription", &settings_text(&wanted.next)?))
        @if wanted.settings.signing.secrets.is_none() {
            p { "A signing secret is made, and shown once after saving." }
        }
    }))
}

/// The page with the secret that was made, or the way to the subscription.
fn created_page(
    visit: &PageVisit,
    named: SubscriptionInUrl<'_>,
    created: &SubscriptionSettings,
) -> Response {
    let made: Vec<_> = created
        .signing
        .timed_secrets()
        .filter(|(secret, _)| !secret.is_masked())
        .collect();
    if made.is_empty() {
        return Redirect::to(&address_after(&named.page_path(&[]), "created", visit.now))
            .into_response();
    }
    let publish = format!("{}#publish", address::topic_path(named.topic, &[]));
    let body = html! {
        p.done role="status" { "The subscription was created, with a signing secret." }
        @for (made, _) in &made { (secret_to_copy(made.expose())) }
        h2 { "What next" }
        p {
            a href=(publish) { "Publish an event" } " to the topic, or look at "
            a href=(named.page_path(&[])) { "the subscription" } "."
        }
        @if created.may_be_sent_to() {
            div.actions { (button_form(visit, &named.page_path(&["test"]), "", "Send a test event")) }
        }
    };
    let title = format!("{} / {}", named.topic, named.name);
    ConsolePage::new(title, body)
        .in_section(MenuSection::Topics)
        .into_response()
}
