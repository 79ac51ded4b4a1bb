//! The beginning of the outage of a subscription that a list is narrowed to.

use posthaste_core::api::SubscriptionSettings;
use posthaste_core::model::Timestamp;

use crate::api::{ManageApi, RequestTarget};

/// Loads the time since which events of the chosen subscription do not arrive; `None` where none is
/// chosen, where they arrive, and where it is not known.
pub(crate) async fn load_outage_begin(
    api: &ManageApi,
    topic: Option<&str>,
    subscription: Option<&str>,
) -> Option<Timestamp> {
    let target = RequestTarget::new(&["topics", topic?, "subscriptions", subscription?]);
    let chosen: SubscriptionSettings = api.get(target).await.ok()?;
    let health = chosen.health?;
    let since = health.since.filter(|_| health.state.is_failing())?;
    Some(since.0)
}
