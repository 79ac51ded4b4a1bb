//! The target that the page of settings edits: its addresses, and how it is saved.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::Method;
use axum::http::request::Parts;
use serde_json::Value;

use crate::address;
use crate::api::{ApiRefusal, ApiResponse, ManageApi, RequestTarget};
use crate::editing::{EditStep, SettingsDraft};
use crate::page::ConsolePage;
use crate::pages::subscription::SubscriptionInUrl;

/// A topic or a subscription whose settings are edited.
#[derive(Debug, Clone)]
pub(super) enum EditedTarget {
    NewTopic,
    Topic { topic: String },
    NewSubscription { topic: String },
    Subscription { topic: String, name: String },
}

impl<S: Send + Sync> FromRequestParts<S> for EditedTarget {
    type Rejection = ConsolePage;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ConsolePage> {
        let is_new = parts.uri.path().rsplit('/').next() == Some(address::NEW);
        let path = RawPathParams::from_request_parts(parts, state).await;
        let path = path.map_err(|rejection| ConsolePage::bad_request(&rejection.body_text()))?;
        let mut names = path.iter().map(|(_, name)| name.to_owned());
        Ok(match (names.next(), names.next()) {
            (Some(topic), Some(name)) => Self::Subscription { topic, name },
            (Some(topic), None) if is_new => Self::NewSubscription { topic },
            (Some(topic), None) => Self::Topic { topic },
            (None, _) => Self::NewTopic,
        })
    }
}

impl EditedTarget {
    /// The word for what is edited.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::NewTopic | Self::Topic { .. } => "topic",
            Self::NewSubscription { .. } | Self::Subscription { .. } => "subscription",
        }
    }

    /// The thing that a change meanwhile is a change of.
    pub(super) const fn changed_thing(&self) -> &'static str {
        match self {
            Self::Topic { .. } => "topic, or a subscription of it,",
            _ => self.word(),
        }
    }

    pub(super) const fn is_new(&self) -> bool {
        matches!(self, Self::NewTopic | Self::NewSubscription { .. })
    }

    /// The heading of the page.
    pub(super) fn title(&self) -> String {
        match self {
            Self::NewTopic => "New topic".to_owned(),
            Self::Topic { topic } => format!("Edit {topic}"),
            Self::NewSubscription { topic } => format!("New subscription of {topic}"),
            Self::Subscription { topic, name } => format!("Edit {topic} / {name}"),
        }
    }

    /// The page itself, which its form is sent to.
    pub(super) fn edit_path(&self) -> String {
        match self {
            Self::NewTopic => address::page_path(&["topics", address::NEW]),
            Self::Topic { topic } => address::topic_path(topic, &[address::EDIT]),
            Self::NewSubscription { topic } => {
                address::topic_path(topic, &["subscriptions", address::NEW])
            }
            Self::Subscription { topic, name } => {
                address::subscription_path(topic, name, &[address::EDIT])
            }
        }
    }

    /// The page that is left with nothing changed.
    pub(super) fn back_path(&self) -> String {
        match self {
            Self::NewTopic => address::page_path(&["topics"]),
            Self::Topic { topic } | Self::NewSubscription { topic } => {
                address::topic_path(topic, &[])
            }
            Self::Subscription { topic, name } => address::subscription_path(topic, name, &[]),
        }
    }

    /// The page that a step of editing leaves for. `None` if it does not leave.
    pub(super) fn page_to_leave_for(&self, step: EditStep) -> Option<String> {
        match step {
            EditStep::LeaveForNow => Some(self.back_path()),
            EditStep::LeaveForDanger => Some(format!("{}?tab=danger", self.back_path())),
            _ => None,
        }
    }

    /// The page of what is saved. Something new has the name `new_name`.
    pub(super) fn saved_path(&self, new_name: &str) -> String {
        match self {
            Self::NewTopic => address::topic_path(new_name, &[]),
            Self::NewSubscription { topic } => address::subscription_path(topic, new_name, &[]),
            Self::Topic { .. } | Self::Subscription { .. } => self.back_path(),
        }
    }

    /// The resource of the API, if it has one already.
    pub(super) fn request_target(&self, new_name: &str) -> RequestTarget {
        let (topic, name) = match self {
            Self::NewTopic => return RequestTarget::new(&["topics", new_name]),
            Self::Topic { topic } => return RequestTarget::new(&["topics", topic]),
            Self::NewSubscription { topic } => (topic, new_name),
            Self::Subscription { topic, name } => (topic, name.as_str()),
        };
        SubscriptionInUrl { topic, name }.request_target(&[])
    }

    /// Saves settings over the version that the draft was compared with, or as something new.
    pub(super) async fn save(
        &self,
        api: &ManageApi,
        draft: &SettingsDraft,
        settings: &Value,
    ) -> Result<ApiResponse<Value>, ApiRefusal> {
        let target = self.request_target(&draft.name);
        if self.is_new() {
            return api.create(target, settings).await;
        }
        api.send_json(Method::PUT, target, Some(&draft.version), settings)
            .await
    }
}
