//! The registry: topics read from the object store, compiled once and kept.
//!
//! A topic is revalidated by its version when it is older than `max_age`. If its record cannot be
//! read, the last good one stays in use. A topic counts as missing only if the store says so.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{TryStreamExt, future};
use parking_lot::Mutex;
use posthaste_core::model::time::log_millis;
use posthaste_core::model::{Timestamp, Topic, TopicName};
use posthaste_core::stored::{TopicRecord, TopicRecordError, layout};

use crate::busy::run_off_worker;
use crate::{SingleFlight, get_newer, list_objects};
use posthaste_ports::{
    Clock, ETag, ErrorKind, EvictableCache, EvictedAmount, ObjectStore, PortError, PutCondition,
    RevalidatedObject, StoredObject,
};

#[cfg(test)]
mod tests;

/// Most topics kept, present ones and missing ones. Beyond it the cache is emptied and fills again,
/// which costs one read per topic in use.
const TOPICS_KEPT_MAX: usize = 10_000;

/// Bytes of a record above which it is compiled off the worker. So many take about a millisecond.
const BUSY_RECORD_BYTES: usize = 32 * 1024;

/// The most that the clocks of two machines may differ. AWS keeps them within a millisecond.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(1);

/// The id of the log event for a topic that has changed and was read again: that of Exchange's
/// "routes reset".
pub const ROUTES_RESET: u32 = 4005;

/// Reasons for which a topic could not be looked up. They say nothing about whether the topic
/// exists.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RegistryError {
    /// The store failed and nothing was known before.
    #[error("failed to read the topic")]
    Store(#[source] Arc<PortError>),
    /// The record is broken and nothing was known before.
    #[error("failed to understand the topic's record")]
    Record(#[source] Arc<TopicRecordError>),
}

/// Looks topics up. Clones share one cache.
#[derive(Debug, Clone)]
pub struct TopicRegistry<S, C> {
    store: S,
    clock: C,
    max_age: Duration,
    known: Arc<Mutex<HashMap<String, CachedTopic>>>,
    flights: SingleFlight<TopicLookup>,
}

#[derive(Debug, Clone)]
struct CachedTopic {
    topic: Option<Arc<GoodRecord>>,
    /// The time of the last request to the store, by the clock's `monotonic`.
    asked_at: Duration,
    /// The time of the store's last response.
    said_at: Timestamp,
    /// Whether the last request to the store failed: then this is the only copy.
    is_only_copy: bool,
}

/// A record that could be read.
#[derive(Debug)]
struct GoodRecord {
    etag: ETag,
    topic: Arc<Topic>,
    record_bytes: usize,
}

impl CachedTopic {
    fn into_topic(self) -> Option<Arc<Topic>> {
        self.topic.map(|good| Arc::clone(&good.topic))
    }

    /// Whether the record can be forgotten: that frees memory, and the store is likely to give it
    /// again. A topic in use would stay in memory, and be read a second time.
    fn is_spare(&self) -> bool {
        !self.is_only_copy
            && self.topic.as_ref().is_none_or(|good| {
                Arc::strong_count(good) == 1 && Arc::strong_count(&good.topic) == 1
            })
    }
}

/// The topic that was asked for, if there is one.
pub type TopicLookup = Result<Option<Arc<Topic>>, RegistryError>;

impl<S: ObjectStore, C: Clock> TopicRegistry<S, C> {
    /// A registry over the state bucket. With a `max_age` of zero it asks the store every time.
    /// That is right where asking is cheap (embedded), and makes every change visible at once.
    pub fn new(store: S, clock: C, max_age: Duration) -> Self {
        Self {
            store,
            clock,
            max_age,
            known: Arc::default(),
            flights: SingleFlight::default(),
        }
    }

    /// The topic of this name, without regard to case; `None` if there is none.
    ///
    /// If many callers ask for the same topic at once, one reads and the others share the result.
    /// With a `max_age` of zero every caller reads, because an earlier read might not see the
    /// latest change.
    pub async fn topic(&self, name: &TopicName) -> TopicLookup {
        let key = layout::topic_record_key(name);
        if self.max_age.is_zero() {
            return self.read_if_old(&key).await;
        }
        match self.fresh_topic(&key) {
            Some(known) => Ok(known.into_topic()),
            None => self.flights.run(&key, || self.read_if_old(&key)).await,
        }
    }

    /// The topic as it was at `moment` or later. For callers that would mistake an old view for a
    /// change: it lacks a subscription that was made a second ago. An `Err` if the store fails,
    /// even if a view is known.
    pub async fn topic_seen_after(&self, name: &TopicName, moment: Timestamp) -> TopicLookup {
        self.known_or_fetched(name, |known| known.said_at > moment + CLOCKS_APART_MAX)
            .await
    }

    /// The topic as the store shows it after `moment`, a time of the clock's `monotonic`. For a
    /// message of another identity than the known one: the clocks of other machines do not help
    /// there. An `Err` as above.
    pub async fn topic_asked_after(&self, name: &TopicName, moment: Duration) -> TopicLookup {
        self.known_or_fetched(name, |known| known.asked_at > moment && !known.is_only_copy)
            .await
    }

    /// The known topic, if it is good enough, or the topic from the store.
    async fn known_or_fetched(
        &self,
        name: &TopicName,
        is_good: impl FnOnce(&CachedTopic) -> bool,
    ) -> TopicLookup {
        let key = layout::topic_record_key(name);
        let known = self.known.lock().get(&key).cloned();
        match known {
            Some(known) if is_good(&known) => Ok(known.into_topic()),
            known => {
                self.fetch_topic(&key, known.and_then(|known| known.topic))
                    .await
            }
        }
    }

    /// The known topic, if it is young enough.
    fn fresh_topic(&self, key: &str) -> Option<CachedTopic> {
        if self.max_age.is_zero() {
            return None;
        }
        let now = self.clock.monotonic();
        self.known
            .lock()
            .get(key)
            .filter(|known| now.saturating_sub(known.asked_at) < self.max_age)
            .cloned()
    }

    /// Asks the store if the known topic is too old. If that fails, the last good record stays in
    /// use.
    async fn read_if_old(&self, key: &str) -> TopicLookup {
        if let Some(known) = self.fresh_topic(key) {
            return Ok(known.into_topic());
        }
        let now = self.clock.monotonic();
        let known = self
            .known
            .lock()
            .get(key)
            .and_then(|known| known.topic.clone());
        match (self.fetch_topic(key, known.clone()).await, known) {
            (Err(error), Some(good)) => {
                tracing::error!(
                    %key, error = &error as &dyn std::error::Error,
                    "keeping the last known good record of the topic"
                );
                if let Some(known) = self.known.lock().get_mut(key) {
                    known.asked_at = now;
                }
                Ok(Some(Arc::clone(&good.topic)))
            }
            (found, _) => found,
        }
    }

    /// Reads the store, and keeps its response. Without one, the known topic is the only copy.
    async fn fetch_topic(&self, key: &str, known: Option<Arc<GoodRecord>>) -> TopicLookup {
        let found = self.fetch_from_store(key, known).await;
        if found.is_err()
            && let Some(known) = self.known.lock().get_mut(key)
        {
            known.is_only_copy = true;
        }
        found
    }

    async fn fetch_from_store(&self, key: &str, known: Option<Arc<GoodRecord>>) -> TopicLookup {
        let asked_at = self.clock.monotonic();
        let said_at = self.clock.now();
        let read = get_newer(&self.store, key, known.as_ref().map(|good| &good.etag)).await;
        let topic = match read.map_err(|error| RegistryError::Store(Arc::new(error)))? {
            RevalidatedObject::Unchanged => known,
            RevalidatedObject::Missing => None,
            RevalidatedObject::Changed(object) => compile_off_the_worker(&object)
                .map_err(|error| RegistryError::Record(Arc::new(error)))?,
        };
        Ok(self.keep_answer(
            key,
            CachedTopic {
                topic,
                asked_at,
                said_at,
                is_only_copy: false,
            },
        ))
    }

    fn keep_answer(&self, key: &str, next: CachedTopic) -> Option<Arc<Topic>> {
        let next_good = next.topic.clone();
        let asked_at = next.asked_at;
        let before = self
            .replace_known(key, next)
            .and_then(|before| before.topic);
        if let Some(before) = before
            && next_good
                .as_ref()
                .is_none_or(|next| next.etag != before.etag)
        {
            let took_ms = log_millis(self.clock.monotonic().saturating_sub(asked_at));
            tracing::info!(
                id = ROUTES_RESET, topic = %before.topic.name, took_ms, "routes reset, the topic has changed"
            );
        }
        next_good.map(|good| Arc::clone(&good.topic))
    }

    /// Keeps the store's response, and returns what was known before.
    fn replace_known(&self, key: &str, next: CachedTopic) -> Option<CachedTopic> {
        let mut known = self.known.lock();
        if next.topic.is_none() && self.max_age.is_zero() {
            return known.remove(key);
        }
        if known.len() >= TOPICS_KEPT_MAX && !known.contains_key(key) {
            // Missing topics go first: any client can ask for them.
            known.retain(|_, known| known.topic.is_some());
            if known.len() >= TOPICS_KEPT_MAX {
                known.clear();
            }
        }
        match known.get_mut(key) {
            Some(known) => Some(std::mem::replace(known, next)),
            None => known.insert(key.to_owned(), next),
        }
    }
}

impl<S: ObjectStore, C: Clock> EvictableCache for TopicRegistry<S, C> {
    /// Forgets topics, except those whose last request to the store failed: of a broken record, the
    /// last good version is only here. If a record breaks later, and is asked for before it is
    /// mended, the topic is unknown: publish responds with 503, and deliver hands its messages
    /// back. The bytes are those of the records and their keys; compiled they take more.
    fn trim(&self) -> EvictedAmount {
        let mut forgotten = HashMap::new();
        {
            let mut known = self.known.lock();
            forgotten.extend(known.extract_if(|_, known| known.is_spare()));
            known.shrink_to_fit();
        }
        let bytes = forgotten
            .iter()
            .map(|(key, known)| key.len() + known.topic.as_ref().map_or(0, |it| it.record_bytes))
            .sum();
        EvictedAmount {
            entries: forgotten.len(),
            bytes,
        }
    }
}

/// `None` for the record of a topic that is being deleted.
fn compile_off_the_worker(
    object: &StoredObject,
) -> Result<Option<Arc<GoodRecord>>, TopicRecordError> {
    if object.bytes.len() < BUSY_RECORD_BYTES {
        return compile_record(object);
    }
    run_off_worker(|| compile_record(object))
}

fn compile_record(object: &StoredObject) -> Result<Option<Arc<GoodRecord>>, TopicRecordError> {
    let record = TopicRecord::parse(&object.bytes)?;
    if record.deleted_at.is_some() {
        return Ok(None);
    }
    let etag = object.etag.clone();
    let topic = Arc::new(record.compile()?);
    Ok(Some(Arc::new(GoodRecord {
        etag,
        topic,
        record_bytes: object.bytes.len(),
    })))
}

/// Deletes the topic of this record, if the record still has this version. Otherwise an `Err` of
/// kind `PreconditionFailed`, and nothing happened.
///
/// A store deletes without a condition, and no change of the record may be lost. So the record is
/// first replaced, under a condition, by one that says that it is deleted. From that moment the
/// topic does not exist. `Ok(false)` if the object could not be removed then.
pub async fn delete_topic<S: ObjectStore>(
    store: &S,
    record: TopicRecord,
    etag: ETag,
    now: Timestamp,
) -> Result<bool, PortError> {
    let key = layout::topic_record_key(&record.name);
    let tombstone = record.into_tombstone(now).render();
    let put = store.put(&key, tombstone.clone(), PutCondition::IfMatch(etag));
    if let Err(error) = put.await {
        // The response to the write was lost, and the store was asked again: the tombstone is
        // there.
        if error.kind != ErrorKind::PreconditionFailed {
            return Err(error);
        }
        let found = store.get(&key).await?;
        if found.is_none_or(|object| object.bytes != tombstone) {
            return Err(error);
        }
    }
    let deleted = store.delete(&key).await;
    if let Err(error) = &deleted {
        tracing::warn!(
            %key, error = error as &dyn std::error::Error, "the record of a deleted topic not removed"
        );
    }
    Ok(deleted.is_ok())
}

/// The folded names of all topics, also of those whose records cannot be read.
pub async fn topic_names<S: ObjectStore>(store: &S) -> Result<BTreeSet<String>, PortError> {
    let names = list_objects(store, layout::TOPICS, None)
        .try_filter_map(|object| future::ok(topic_of_record_key(&object.key)));
    names.try_collect().await
}

fn topic_of_record_key(key: &str) -> Option<String> {
    let name = key.strip_prefix(layout::TOPICS)?.strip_suffix(".json")?;
    Some(name.to_owned())
}
