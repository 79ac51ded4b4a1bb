//! Sweeping temporary entities: subscriptions whose time is over, and subscriptions and topics that are idle, leave their
//! records. What still waits for them is dead-lettered by deliver, which finds nobody to deliver to.
//!
//! A subscription that is idle by its notes stays as long as an event waits for it in the object store. No time counts
//! as idle from before the last outage of wake ended, and 15 minutes after: what was due in it is yet to be attempted.
//!
//! Only topics that `temporary/` names are looked at. A record is changed under the condition that nobody changed it
//! since it was read, and after a second look at what is to go: whoever uses or writes an entity meanwhile keeps it.

mod waiting;

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::model::idle::{is_idle, wait_noted_at};
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::model::time::Timestamp;
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::{RecordError, TopicRecord};
use posthaste_ports::{
    Clock, ETag, Entropy, ErrorKind, ObjectMeta, ObjectStore, PortError, PutCondition, QueueSender,
};
use posthaste_services::activity::{ActivityError, noted};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::topics::delete_topic;

use crate::limits::Limits;
use crate::{PAGE_MAX, Wake};
use waiting::ParkedOwners;

/// Topics looked at side by side.
const TOPICS_AT_ONCE: usize = 8;

/// Why a topic was not swept; the next run looks again.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error("failed to read or write the topic's record")]
    Store(#[source] PortError),
    #[error("failed to understand the topic's record")]
    Record(#[source] RecordError),
    #[error("failed to learn when something last happened")]
    Activity(#[source] ActivityError),
    #[error("failed to learn whether something waits")]
    Waiting(#[source] PortError),
}

/// What is to go.
#[derive(Debug, PartialEq, Eq)]
enum Doomed {
    Nothing,
    Topic,
    Subscriptions(Vec<SubscriptionName>),
}

/// One run's way through the temporary topics.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// The last one that was looked at; `None` at the start, and when all were.
    pub(crate) after: Option<String>,
    /// What was deleted.
    pub(crate) swept: Swept,
    known: Known,
}

/// Facts that a sweep needs for every entity.
#[derive(Debug, Default)]
struct Known {
    /// For whom something is parked.
    parked: ParkedOwners,
    /// When the last outage ended.
    awake_since: Option<Timestamp>,
}

impl Sweep {
    /// Goes on after this one. Nothing is parked before the key `parked_from`.
    pub(crate) fn after(
        after: Option<String>,
        parked_from: Option<String>,
        awake_since: Option<Timestamp>,
    ) -> Self {
        let known = Known { parked: ParkedOwners::from(parked_from), awake_since };
        Self { after, swept: Swept::default(), known }
    }
}

impl Known {
    /// Whether an entity is idle to which something last happened then.
    fn is_idle(&self, idle: Duration, last: Timestamp, now: Timestamp) -> bool {
        let last = self.awake_since.map_or(last, |awake_since| wait_noted_at(awake_since).max(last));
        is_idle(idle, last, now)
    }
}

/// What a sweep deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Swept {
    pub(crate) topics: usize,
    pub(crate) subscriptions: usize,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Looks at every topic that is temporary or has temporary subscriptions, from where the last run ended and while
    /// there is time to begin.
    pub(crate) async fn sweep(&self, limits: Limits, sweep: &mut Sweep) {
        loop {
            if self.ports.clock.monotonic() >= limits.begin {
                return;
            }
            let page = match self.ports.state.list(layout::TEMPORARY, sweep.after.as_deref(), PAGE_MAX).await
            {
                Ok(page) => page,
                Err(error) => {
                    tracing::warn!(error = &error as &dyn std::error::Error, "temporary topics not listed");
                    return;
                }
            };
            if !self.sweep_page(page.objects, limits, sweep).await {
                return;
            }
            sweep.after = page.next_after;
            if sweep.after.is_none() {
                return;
            }
        }
    }

    /// Whether all of the page was looked at. In its order, so that one key says how far a run came.
    async fn sweep_page(&self, page: Vec<ObjectMeta>, limits: Limits, sweep: &mut Sweep) -> bool {
        let known = &sweep.known;
        let look = |key: String| async move { (self.sweep_key(&key, known, limits).await, key) };
        let mut looks = stream::iter(page).map(|object| look(object.key)).buffered(TOPICS_AT_ONCE);
        while let Some((swept, key)) = looks.next().await {
            let Some(Swept { topics, subscriptions }) = swept else { return false };
            sweep.swept.topics += topics;
            sweep.swept.subscriptions += subscriptions;
            sweep.after = Some(key);
        }
        true
    }

    /// Looks at one topic; `None` if there is no time to begin any more.
    async fn sweep_key(&self, key: &str, known: &Known, limits: Limits) -> Option<Swept> {
        if self.ports.clock.monotonic() >= limits.begin {
            return None;
        }
        let Some(topic) = layout::temporary_topic(key) else {
            tracing::warn!(%key, "not the name of a topic");
            return Some(Swept::default());
        };
        Some(match catch_panic(self.sweep_topic(&topic, known)).await {
            Ok(Ok(swept)) => swept,
            Ok(Err(error)) => {
                tracing::error!(%topic, error = &error as &dyn std::error::Error, "temporary topic not swept");
                Swept::default()
            }
            Err(error) => {
                tracing::error!(%topic, error = &error as &dyn std::error::Error, "sweeping a topic panicked");
                Swept::default()
            }
        })
    }

    async fn sweep_topic(&self, topic: &TopicName, known: &Known) -> Result<Swept, SweepError> {
        let key = layout::topic(topic);
        let Some(object) = self.ports.state.get(&key).await.map_err(SweepError::Store)? else {
            return self.forget(topic).await;
        };
        let record = TopicRecord::parse(&object.bytes).map_err(SweepError::Record)?;
        let now = self.ports.clock.now();
        if record.is_abandoned(now) {
            return self.finish(record, object.etag, now).await;
        }
        if record.deleted_at.is_some() {
            return Ok(Swept::default());
        }
        if !record.is_temporary() {
            return self.forget(topic).await;
        }
        let doomed = self.doomed(&record, known, now).await?;
        // What was used between the first look and this one stays.
        if doomed == Doomed::Nothing || self.doomed(&record, known, now).await? != doomed {
            return Ok(Swept::default());
        }
        match self.apply(record, object.etag, doomed, now).await {
            // Somebody wrote it: the next run sees what.
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(Swept::default()),
            result => result.map_err(SweepError::Store),
        }
    }

    /// Removes the object of a topic whose deletion was cut short. It is marked once more, because from now on somebody
    /// may write a new topic in its place: the condition lets one of the two win.
    async fn finish(&self, record: TopicRecord, etag: ETag, now: Timestamp) -> Result<Swept, SweepError> {
        match delete_topic(&self.ports.state, record, etag, now).await {
            Err(error) if error.kind != ErrorKind::PreconditionFailed => Err(SweepError::Store(error)),
            Ok(_) | Err(_) => Ok(Swept::default()),
        }
    }

    /// What of a topic is to go by now.
    async fn doomed(
        &self,
        record: &TopicRecord,
        known: &Known,
        now: Timestamp,
    ) -> Result<Doomed, SweepError> {
        if let Some(idle) = record.settings.auto_delete_on_idle {
            let key = layout::topic_activity(&record.name);
            let is_idle = |last| known.is_idle(idle.0, last, now);
            if is_idle(record.updated_at) && self.last(&key).await?.is_none_or(is_idle) {
                return Ok(Doomed::Topic);
            }
        }
        let mut names = Vec::new();
        for (name, settings) in &record.settings.subscriptions {
            if self.is_doomed(record, name, settings, known, now).await? {
                names.push(name.clone());
            }
        }
        Ok(if names.is_empty() { Doomed::Nothing } else { Doomed::Subscriptions(names) })
    }

    async fn is_doomed(
        &self,
        record: &TopicRecord,
        name: &SubscriptionName,
        settings: &SubscriptionSettings,
        known: &Known,
        now: Timestamp,
    ) -> Result<bool, SweepError> {
        if settings.expiration_time_utc.is_some_and(|ends_at| now >= ends_at.0) {
            return Ok(true);
        }
        let Some(idle) = settings.auto_delete_on_idle else { return Ok(false) };
        let since = settings.status.as_ref().map_or(Timestamp::EPOCH, |status| status.since.0);
        if !known.is_idle(idle.0, since, now) {
            return Ok(false);
        }
        let key = layout::subscription_activity(&record.name, name);
        // A note may have been tidied up while its topic became temporary: that write was a use.
        let last = self.last(&key).await?.unwrap_or(record.updated_at);
        if !known.is_idle(idle.0, last, now) {
            return Ok(false);
        }
        let waits = self.has_waiting(&record.name, name, &known.parked).await.map_err(SweepError::Waiting)?;
        Ok(!waits)
    }

    /// When something last happened, if that was noted.
    async fn last(&self, key: &str) -> Result<Option<Timestamp>, SweepError> {
        noted(&self.ports.state, key).await.map_err(SweepError::Activity)
    }

    async fn apply(
        &self,
        mut record: TopicRecord,
        etag: ETag,
        doomed: Doomed,
        now: Timestamp,
    ) -> Result<Swept, PortError> {
        let names = match doomed {
            Doomed::Nothing => return Ok(Swept::default()),
            Doomed::Topic => {
                let topic = record.name.clone();
                delete_topic(&self.ports.state, record, etag, now).await?;
                tracing::info!(%topic, "topic deleted: it was idle");
                return Ok(Swept { topics: 1, subscriptions: 0 });
            }
            Doomed::Subscriptions(names) => names,
        };
        record.settings.subscriptions.retain(|name, _| !names.contains(name));
        record.updated_at = now;
        let key = layout::topic(&record.name);
        self.ports.state.put(&key, record.render(), PutCondition::IfMatch(etag)).await?;
        for name in &names {
            tracing::info!(topic = %record.name, subscription = %name, "subscription deleted: its time was over, or it was idle");
            // The note of a subscription that is made anew is written anew.
            let _ = self.ports.state.delete(&layout::subscription_activity(&record.name, name)).await;
        }
        Ok(Swept { topics: 0, subscriptions: names.len() })
    }

    /// Tidies up after a topic that is gone, or not temporary any more. Whoever made it temporary in this moment put its
    /// name there before the record, and it is put there once more.
    async fn forget(&self, topic: &TopicName) -> Result<Swept, SweepError> {
        let state = &self.ports.state;
        let activities = layout::subscription_activities(topic);
        loop {
            let page = state.list(&activities, None, PAGE_MAX).await.map_err(SweepError::Store)?;
            for object in page.objects {
                state.delete(&object.key).await.map_err(SweepError::Store)?;
            }
            if page.next_after.is_none() {
                break;
            }
        }
        state.delete(&layout::topic_activity(topic)).await.map_err(SweepError::Store)?;
        let name = layout::temporary(topic);
        state.delete(&name).await.map_err(SweepError::Store)?;
        let object = state.get(&layout::topic(topic)).await.map_err(SweepError::Store)?;
        let record = object.map(|object| TopicRecord::parse(&object.bytes)).transpose();
        if record.map_err(SweepError::Record)?.is_some_and(|record| record.is_temporary()) {
            let put = state.put(&name, bytes::Bytes::new(), PutCondition::Always).await;
            put.map_err(SweepError::Store)?;
        }
        Ok(Swept::default())
    }
}
