//! The changes that a write makes to subscriptions.

use crate::api::{SecretText, StatusState, StatusView, SubscriptionSettings, TopicSettings};
use crate::model::{EndpointUrl, Link, SubscriptionName, Timestamp};

/// The change that a write made to one subscription.
#[derive(Debug, Clone)]
pub struct SubscriptionChange {
    /// The name, as the subscription's creator wrote it.
    pub name: SubscriptionName,
    /// Whether the subscription was created.
    pub is_new: bool,
    /// Whether a signing secret was made, which the answer shows this once.
    pub has_made_secret: bool,
    /// Whether the subscription delivers, and its endpoint became another one on the same link, or
    /// gets other requests than before: what is known of the old one says nothing of the new one,
    /// and what was refused may be taken now.
    pub is_corrected: bool,
    /// The links that were left or joined: what is known of the subscription there is out of date.
    pub links_changed: Vec<Link>,
    /// The handshake that is to be run after this write.
    pub handshake: Option<PendingHandshake>,
}

/// A handshake that is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingHandshake {
    /// The subscription, as its creator wrote it.
    pub subscription: SubscriptionName,
    /// The code with which its endpoint proves itself.
    pub code: SecretText,
}

impl SubscriptionChange {
    /// The subscription as the answer to the write shows it: in clear a secret that was made,
    /// masked any other.
    pub fn response_view(
        &self,
        stored: &SubscriptionSettings,
        now: Timestamp,
    ) -> SubscriptionSettings {
        let shown = stored.to_view(&self.name, now);
        let signing = if self.has_made_secret {
            stored.signing.clone()
        } else {
            shown.signing
        };
        SubscriptionSettings { signing, ..shown }
    }
}

impl PendingHandshake {
    /// The handshake that this status asks for: the one with this new code, or one that an earlier
    /// request began and could not finish.
    pub(super) fn from_status(
        subscription: &SubscriptionName,
        status: &StatusView,
        new_code: &SecretText,
    ) -> Option<Self> {
        let code = status.handshake.as_ref()?.code_to_ask_with()?;
        let is_to_be_run = code == new_code || status.state == StatusState::Pending;
        is_to_be_run.then(|| Self {
            subscription: subscription.clone(),
            code: code.clone(),
        })
    }
}

/// Whether events go out in this state, or will as soon as the endpoint consents.
pub(super) fn may_deliver(status: &StatusView) -> bool {
    matches!(status.state, StatusState::Active | StatusState::Pending)
}

/// Whether the endpoint becomes another one on the same link, or gets other requests there.
pub(crate) fn is_corrected(
    present: Option<&SubscriptionSettings>,
    stored: &SubscriptionSettings,
) -> bool {
    let Some(present) = present else {
        return false;
    };
    let before = EndpointUrl::parse(&present.endpoint.url);
    let after = EndpointUrl::parse(&stored.endpoint.url);
    let (Ok(before), Ok(after)) = (before, after) else {
        return false;
    };
    before.link() == after.link() && (before != after || are_requests_changed(present, stored))
}

/// Whether an event makes another request. A secret that signs no more changes none that an
/// endpoint takes.
fn are_requests_changed(present: &SubscriptionSettings, stored: &SubscriptionSettings) -> bool {
    let known: Vec<_> = present.signing.secrets.iter().flatten().collect();
    let mut secrets = stored.signing.secrets.iter().flatten();
    let is_signed_anew = secrets.any(|secret| !known.contains(&secret));
    is_signed_anew
        || present.delivery_headers != stored.delivery_headers
        || present.content_mode != stored.content_mode
        || present.delivery_schema != stored.delivery_schema
        || present.batching != stored.batching
}

/// The links that the subscription leaves or joins.
pub(super) fn links_changed(
    present: Option<&SubscriptionSettings>,
    wanted: &SubscriptionSettings,
) -> Vec<Link> {
    let before = present
        .map(|present| present.endpoint.links())
        .unwrap_or_default();
    before
        .symmetric_difference(&wanted.endpoint.links())
        .cloned()
        .collect()
}

/// Whether each event that is given up has a notice after a write. Of each topic with notices this
/// is said, to tell it from one that release 0.1 wrote.
pub(super) fn failed_notices(before: &TopicSettings, written: &TopicSettings) -> Option<bool> {
    let has_notices = written.notices_topic.is_some();
    let said = written.delivery_failed_notices;
    said.or(before.delivery_failed_notices)
        .or(has_notices.then_some(false))
}
