//! The topic and the subscription of records, which may have been deleted since.

use axum::http::StatusCode;
use maud::{Markup, html};
use posthaste_core::api::{SubscriptionSettings, TopicSettings};
use posthaste_core::model::SubscriptionName;

use crate::address::PageAddress;
use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::display::foreign_text;

/// A topic, as far as one look-up says.
pub(crate) enum KnownTopic {
    Here(Box<TopicSettings>),
    Deleted,
    /// The look-up failed.
    Unknown,
}

impl KnownTopic {
    /// Loads the topic.
    pub(crate) async fn load(api: &ManageApi, topic: &str) -> Self {
        Self::from_response(api.get(RequestTarget::new(&["topics", topic])).await)
    }

    /// The topic by the response to a look-up.
    fn from_response(answer: Result<TopicSettings, ApiRefusal>) -> Self {
        match answer {
            Ok(topic) => Self::Here(Box::new(topic)),
            Err(refusal) if refusal.status_code() == StatusCode::NOT_FOUND => Self::Deleted,
            Err(_) => Self::Unknown,
        }
    }

    pub(crate) fn settings(&self) -> Option<&TopicSettings> {
        match self {
            Self::Here(topic) => Some(topic),
            Self::Deleted | Self::Unknown => None,
        }
    }

    /// The topic's name as it was created, or else as it is known.
    pub(crate) fn name<'a>(&'a self, known: &'a str) -> &'a str {
        let name = self.settings().and_then(|topic| topic.name.as_ref());
        name.map_or(known, |name| name.as_str())
    }

    /// A subscription of the topic, by its name in any case.
    pub(crate) fn subscription(
        &self,
        name: &str,
    ) -> Option<(&SubscriptionName, &SubscriptionSettings)> {
        self.settings()?
            .find_subscription(&SubscriptionName::parse(name).ok()?)
    }

    /// Whether a subscription, or the topic, is known to be deleted.
    pub(crate) fn has_deleted(&self, subscription: &str) -> bool {
        match self {
            Self::Here(_) => self.subscription(subscription).is_none(),
            Self::Deleted => true,
            Self::Unknown => false,
        }
    }
}

/// A subscription with its topic, and a link to its page unless that is gone.
pub(crate) fn subscription_link(topic: &str, name: &str, is_deleted: bool) -> Markup {
    html! {
        @if is_deleted {
            (foreign_text(topic)) " / " (foreign_text(name)) " " span.hint { "(deleted)" }
        } @else {
            a href=(PageAddress::for_subscription(topic, name)) { (foreign_text(topic)) " / " (foreign_text(name)) }
        }
    }
}
