//! The subscription whose dead letter is shown, and how many letters of the object are open.

use axum::http::Method;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::api::ResolveResponse;
use posthaste_core::stored::layout;

use super::rows::state_badge;
use super::search::DeadLetterSearch;
use crate::address::PageAddress;
use crate::api::{ManageApi, RequestTarget};
use crate::display::number;
use crate::filters::hidden_fields;
use crate::page::form_token;
use crate::pages::known_topic::{KnownTopic, subscription_link};
use crate::visit::PageVisit;

/// The subscription of an object.
pub(super) struct LetterOwner {
    /// The topic's name as it was created; as in the key where it is gone.
    pub(super) topic: String,
    pub(super) subscription: String,
    /// Whether the subscription is gone, so that nothing can be sent to it.
    pub(super) is_deleted: bool,
    object: String,
    /// The letters of the object that are not resolved, if that is known.
    open: Option<u64>,
}

impl LetterOwner {
    /// Asks for the subscription of an object. `None` if its key names none.
    pub(super) async fn load(api: &ManageApi, object: &str) -> Option<Self> {
        let (topic, subscription) = layout::dead_letter_owner(object)?;
        let search = DeadLetterSearch::of_object(topic.as_str(), subscription.as_str(), object);
        let topic_asked = KnownTopic::load(api, topic.as_str());
        let (known, open) = join(topic_asked, open_letters(api, &search)).await;
        let named = known
            .subscription(subscription.as_str())
            .map(|(name, _)| name);
        Some(Self {
            topic: known.name(topic.as_str()).to_owned(),
            subscription: named.unwrap_or(&subscription).to_string(),
            is_deleted: known.has_deleted(subscription.as_str()),
            object: object.to_owned(),
            open,
        })
    }

    /// The subscription, and the way to all of its dead letters.
    pub(super) fn subscription_links(&self) -> Markup {
        html! {
            (subscription_link(&self.topic, &self.subscription, self.is_deleted))
            (DeadLetterSearch::default().only_owner_link(&self.topic, &self.subscription))
        }
    }

    /// The state of the object's `letters`. `None` if it is not known.
    pub(super) fn state_text(&self, letters: usize) -> Option<Markup> {
        let open = self.open?;
        let is_partial = open > 0 && open < u64::try_from(letters).unwrap_or(u64::MAX);
        Some(html! {
            @if is_partial {
                (number(open)) " of the " (letters) " dead letters of this object are open"
            } @else {
                (state_badge(open == 0))
            }
        })
    }

    /// The form that resolves what is open of the object. It begins with a dry run.
    pub(super) fn resolve_form(&self, visit: &PageVisit) -> Markup {
        let search = DeadLetterSearch::of_object(&self.topic, &self.subscription, &self.object);
        let Some(open) = self.open.filter(|open| *open > 0) else {
            return html! {};
        };
        html! {
            form method="post" action=(PageAddress::new(&["dead-letters", "resolve"])) {
                (form_token(&visit.form_token))
                (hidden_fields(&search.hidden_fields()))
                (hidden_fields(&[("includeFormer", Some("true"))]))
                button type="submit" {
                    @if open == 1 { "Resolve this dead letter" }
                    @else { "Resolve the " (number(open)) " dead letters of this object" }
                }
            }
        }
    }
}

/// The letters of an object that are open: those that a dry run would resolve.
async fn open_letters(api: &ManageApi, search: &DeadLetterSearch) -> Option<u64> {
    let (topic, name) = search.owner()?;
    let target = RequestTarget::new(&[
        "topics",
        topic,
        "subscriptions",
        name,
        "dead-letters",
        "resolve",
    ]);
    let mut body = search.request_body();
    body.insert("dryRun".to_owned(), true.into());
    body.insert("includeFormer".to_owned(), true.into());
    let answer = api
        .send_json::<ResolveResponse>(Method::POST, target, None, &body)
        .await
        .ok()?
        .body;
    (answer.failed == 0 && answer.cursor.is_none()).then_some(answer.events)
}
