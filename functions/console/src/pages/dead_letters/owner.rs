//! The subscription whose dead letter is shown, and which letters beside it are resolved.

use axum::http::StatusCode;
use futures_util::future::join;
use maud::{Markup, html};
use posthaste_core::stored::{ResolvedLetters, layout};

use super::rows::state_badge;
use super::search::DeadLetterSearch;
use crate::address::PageAddress;
use crate::api::{ManageApi, RequestTarget};
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
    /// The letters of the object that are resolved, if that is known.
    resolved: Option<ResolvedLetters>,
}

impl LetterOwner {
    /// Asks for the subscription of an object. `None` if its key names none.
    pub(super) async fn load(api: &ManageApi, object: &str) -> Option<Self> {
        let (topic, subscription) = layout::dead_letter_owner(object)?;
        let topic_asked = KnownTopic::load(api, topic.as_str());
        let (known, resolved) = join(topic_asked, load_resolved(api, object)).await;
        let named = known
            .subscription(subscription.as_str())
            .map(|(name, _)| name);
        Some(Self {
            topic: known.name(topic.as_str()).to_owned(),
            subscription: named.unwrap_or(&subscription).to_string(),
            is_deleted: known.has_deleted(subscription.as_str()),
            object: object.to_owned(),
            resolved,
        })
    }

    /// The subscription, and the way to all of its dead letters.
    pub(super) fn subscription_links(&self) -> Markup {
        html! {
            (subscription_link(&self.topic, &self.subscription, self.is_deleted))
            (DeadLetterSearch::default().only_owner_link(&self.topic, &self.subscription))
        }
    }

    /// The state of the letter in this place. `None` if it is not known.
    pub(super) fn state_text(&self, index: usize) -> Option<Markup> {
        let resolved = self.resolved.as_ref()?;
        Some(state_badge(resolved.is_resolved(index)))
    }

    /// The form that resolves the letter in this place, unless it is resolved. It begins with a dry
    /// run.
    pub(super) fn resolve_form(&self, index: usize, visit: &PageVisit) -> Markup {
        let is_resolved = self
            .resolved
            .as_ref()
            .is_some_and(|resolved| resolved.is_resolved(index));
        if is_resolved {
            return html! {};
        }
        let letter =
            DeadLetterSearch::of_letter(&self.topic, &self.subscription, &self.object, index);
        html! {
            form method="post" action=(PageAddress::new(&["dead-letters", "resolve"])) {
                (form_token(&visit.form_token))
                (hidden_fields(&letter.hidden_fields()))
                (hidden_fields(&[("includeFormer", Some("true"))]))
                button type="submit" { "Resolve this dead letter" }
            }
        }
    }
}

/// The letters of an object that are resolved. `None` if that cannot be read now.
async fn load_resolved(api: &ManageApi, object: &str) -> Option<ResolvedLetters> {
    let list = layout::resolved_letters_key(object);
    let read = api
        .get_bytes(RequestTarget::new(&["dead-letters", &list]))
        .await;
    match read {
        Ok((_, bytes)) => ResolvedLetters::parse(&bytes).ok(),
        Err(refusal) if refusal.status_code() == StatusCode::NOT_FOUND => {
            Some(ResolvedLetters::default())
        }
        Err(_) => None,
    }
}
