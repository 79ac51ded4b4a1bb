//! Making a subscription.

use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};
use posthaste_core::api::{SubscriptionSettings, TopicSettings};
use posthaste_core::model::SubscriptionName;
use posthaste_yaml::TextMistake;

use crate::address;
use crate::api::Target;
use crate::asked::{Fields, Path};
use crate::console::Pages;
use crate::editing::{Draft, Editor, Step, mistake_in};
use crate::page::{Answer, Page, Section};
use crate::pages::edit_subscription::{Wanted, wanted};
use crate::pages::subscription::{Named, settings_text};
use crate::pages::subscription_actions::secret;
use crate::parts::{after, button, to_copy};
use crate::shown::foreign;
use crate::visit::Visit;

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
pub(crate) async fn form(pages: Pages, visit: Visit, Path([topic]): Path<1>) -> Answer {
    let _: TopicSettings = pages.api.get(Target::new(&["topics", &topic])).await?;
    let draft = Draft {
        text: TEMPLATE.to_owned(),
        version: String::new(),
        name: String::new(),
    };
    Ok(editor(&visit, &topic, &draft).form_page(&[]))
}

/// A step of making one.
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
    let present = pages
        .api
        .get::<TopicSettings>(Target::new(&["topics", &topic]))
        .await;
    let present = present.map_err(|refusal| editor.unread_page(&refusal))?;
    let wanted = new(&present, &draft, &visit).map_err(mistaken)?;
    if step == Step::Check {
        return Ok(review(&editor, &wanted)?.into_response());
    }
    let named = Named {
        topic: &topic,
        name: &draft.name,
    };
    match pages
        .api
        .create::<SubscriptionSettings>(named.target(&[]), &wanted.settings)
        .await
    {
        Ok(created) => Ok(created_page(&visit, named, &created.body)),
        Err(refusal) if refusal.is_of_another_version() => Err(mistaken(vec![taken(&draft.name)])),
        Err(refusal) => Err(editor.unsaved_page(&refusal)),
    }
}

/// The settings of the new subscription, or the mistakes of the draft.
fn new(topic: &TopicSettings, draft: &Draft, visit: &Visit) -> Result<Wanted, Vec<TextMistake>> {
    match SubscriptionName::parse(&draft.name) {
        Ok(name) if topic.stored_name(&name).is_some() => Err(vec![taken(&draft.name)]),
        Ok(_) => wanted(topic, &draft.name, draft, visit.now),
        // The mistakes of the settings are shown with that of the name.
        Err(error) => {
            let others = wanted(topic, "new", draft, visit.now)
                .err()
                .unwrap_or_default();
            Err([vec![mistake_in("name", error)], others].concat())
        }
    }
}

fn taken(name: &str) -> TextMistake {
    mistake_in(
        "name",
        format!("the topic has a subscription {name:?} already"),
    )
}

fn editor<'a>(visit: &'a Visit, topic: &str, draft: &'a Draft) -> Editor<'a> {
    Editor {
        visit,
        title: format!("New subscription of {topic}"),
        action: address::topic(topic, &["subscriptions", address::NEW]),
        back: address::topic(topic, &[]),
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
fn review(editor: &Editor<'_>, wanted: &Wanted) -> Answer {
    let name = &editor.draft.name;
    Ok(editor.decision_page(&html! {
        p { "Saving makes the subscription " strong { (foreign(name)) } " with these settings:" }
        (to_copy("Settings of the new subscription", &settings_text(&wanted.next)?))
        @if wanted.settings.signing.secrets.is_none() {
            p { "A signing secret is made, and shown once after saving." }
        }
    }))
}

/// The page with the secret that was made, or the way to the subscription.
fn created_page(visit: &Visit, named: Named<'_>, created: &SubscriptionSettings) -> Response {
    let made: Vec<_> = created
        .signing
        .timed_secrets()
        .filter(|(secret, _)| !secret.is_masked())
        .collect();
    if made.is_empty() {
        return Redirect::to(&after(&named.page(&[]), "created", visit.now)).into_response();
    }
    let publish = format!("{}#publish", address::topic(named.topic, &[]));
    let body = html! {
        p.done role="status" { "The subscription was created, with a signing secret." }
        @for (made, _) in &made { (secret(made.expose())) }
        h2 { "What next" }
        p {
            a href=(publish) { "Publish an event" } " to the topic, or look at "
            a href=(named.page(&[])) { "the subscription" } "."
        }
        @if created.may_be_sent_to() {
            div.actions { (button(visit, &named.page(&["test"]), "", "Send a test event")) }
        }
    };
    let title = format!("{} / {}", named.topic, named.name);
    Page::new(title, body).of(Section::Topics).into_response()
}
