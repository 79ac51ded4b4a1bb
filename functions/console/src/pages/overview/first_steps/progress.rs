//! The progress of a new installation.

use std::time::Duration;

use futures_util::future::{join, join_all};
use posthaste_core::api::events::RecordPage;
use posthaste_core::api::{TopicPage, TopicSummary};
use posthaste_core::model::Timestamp;

use crate::api::{ApiRefusal, ManageApi, RequestTarget};
use crate::recent::RecentHistory;

/// Most topics of a new installation.
const TOPICS_MAX: usize = 3;

/// The time for which an installation is new. An older one is not asked for its deliveries.
const NEW_FOR: Duration = Duration::from_hours(7 * 24);

/// The steps that are done.
#[derive(Debug, Default)]
pub(crate) struct SetupProgress {
    /// The topic that the next step is about.
    pub(super) topic: Option<String>,
    pub(super) has_subscription: bool,
    pub(super) has_event: bool,
}

/// The most that the delivery log says about a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LoggedProgress {
    Nothing,
    Events,
    Deliveries,
}

/// The steps that are done; `None` if there was a delivery, or if the installation is not new. If
/// deliveries are known from the history, the API is not asked.
pub(crate) async fn load_progress(
    api: &ManageApi,
    recent: Option<&RecentHistory>,
    now: Timestamp,
) -> Option<SetupProgress> {
    if recent.is_some_and(|recent| recent.total.counts.delivered > 0) {
        return None;
    }
    let page: TopicPage = api
        .get(RequestTarget::new(&["topics"]).query("limit", Some(TOPICS_MAX)))
        .await
        .ok()?;
    if !is_new(&page, now) {
        return None;
    }
    let logged = join_all(
        page.topics
            .iter()
            .map(|topic| load_logged(api, topic.name.as_str())),
    )
    .await;
    let most = logged.into_iter().max().unwrap_or(LoggedProgress::Nothing);
    (most != LoggedProgress::Deliveries).then(|| from_topics(&page.topics, most))
}

/// Whether all topics are new, and few. The rest of a deleted one is not shown, but a page may end
/// with it.
fn is_new(page: &TopicPage, now: Timestamp) -> bool {
    let are_young = page
        .topics
        .iter()
        .all(|topic| now.since(topic.created_at.0) < NEW_FOR);
    are_young && page.unreadable.is_empty() && page.cursor.is_none()
}

fn from_topics(topics: &[TopicSummary], logged: LoggedProgress) -> SetupProgress {
    let subscribed = topics.iter().find(|topic| topic.subscription_count > 0);
    SetupProgress {
        topic: subscribed
            .or(topics.first())
            .map(|topic| topic.name.to_string()),
        has_subscription: subscribed.is_some(),
        has_event: logged >= LoggedProgress::Events,
    }
}

async fn load_logged(api: &ManageApi, topic: &str) -> LoggedProgress {
    let any = RequestTarget::new(&["topics", topic, "events"]).query("limit", Some(1));
    let delivered = any.clone().query("result", Some("delivered"));
    match join(api.get(delivered), api.get(any)).await {
        (delivered, _) if may_have(&delivered) => LoggedProgress::Deliveries,
        (_, any) if may_have(&any) => LoggedProgress::Events,
        _ => LoggedProgress::Nothing,
    }
}

/// Whether the log has such a record, as far as it says.
fn may_have(page: &Result<RecordPage, ApiRefusal>) -> bool {
    page.as_ref().map_or(true, |page| {
        !page.records.is_empty() || page.cursor.is_some() || page.note.is_some()
    })
}
