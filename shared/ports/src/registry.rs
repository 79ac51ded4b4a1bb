//! The registry: topics read from the object store, compiled once and kept.
//!
//! A topic is revalidated by its version when it is older than `max_age`. A record that cannot be read leaves the
//! last known good one in use; a topic is "not there" only when the store says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use posthaste_core::layout;
use posthaste_core::name::TopicName;
use posthaste_core::record::{RecordError, TopicRecord};
use posthaste_core::topic::Topic;

use crate::{Clock, ETag, Object, ObjectStore, PortError, Revalidated};

/// Most topics kept, present ones and ones known to be absent. Beyond it the cache is emptied and fills anew,
/// which costs one read per topic in use.
const TOPICS_KEPT_MAX: usize = 10_000;

/// Why a topic could not be looked up. It says nothing about whether the topic exists.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The store failed and nothing was known before.
    #[error("failed to read the topic")]
    Store(#[source] PortError),
    /// The record is broken and nothing was known before.
    #[error("failed to understand the topic's record")]
    Record(#[source] RecordError),
}

/// Looks topics up. Clones share one cache.
#[derive(Debug)]
pub struct Registry<S, C> {
    store: S,
    clock: C,
    max_age: Duration,
    known: Arc<Mutex<HashMap<String, Known>>>,
}

#[derive(Debug, Clone)]
struct Known {
    topic: Option<(ETag, Arc<Topic>)>,
    checked_at: Duration,
}

impl<S: Clone, C: Clone> Clone for Registry<S, C> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            clock: self.clock.clone(),
            max_age: self.max_age,
            known: Arc::clone(&self.known),
        }
    }
}

impl<S: ObjectStore, C: Clock> Registry<S, C> {
    /// A registry over the state bucket. `max_age` zero asks the store every time, which is right where asking is
    /// cheap (embedded) and makes every change visible at once.
    pub fn new(store: S, clock: C, max_age: Duration) -> Self {
        Self { store, clock, max_age, known: Arc::default() }
    }

    /// The topic of this name, without regard to case; `None` if there is none.
    pub async fn topic(&self, name: &TopicName) -> Result<Option<Arc<Topic>>, RegistryError> {
        let key = layout::topic(name);
        let known = self.lock().get(&key).cloned();
        let now = self.clock.monotonic();
        match known {
            Some(known) if now.saturating_sub(known.checked_at) < self.max_age => {
                Ok(known.topic.map(|(_, t)| t))
            }
            Some(Known { topic: Some((etag, topic)), .. }) => self.revalidate(key, etag, topic, now).await,
            Some(Known { topic: None, .. }) | None => self.load(key, now).await,
        }
    }

    /// Forgets everything, for trimming under memory pressure. Answers how many topics were forgotten.
    pub fn trim(&self) -> usize {
        let mut known = self.lock();
        let forgotten = known.len();
        *known = HashMap::new();
        forgotten
    }

    async fn revalidate(
        &self,
        key: String,
        etag: ETag,
        topic: Arc<Topic>,
        now: Duration,
    ) -> Result<Option<Arc<Topic>>, RegistryError> {
        let next = match self.store.get_if_changed(&key, &etag).await {
            Ok(Revalidated::Unchanged) => Some((etag, topic)),
            Ok(Revalidated::Missing) => None,
            Ok(Revalidated::Changed(object)) => Some(compile(&object).unwrap_or_else(|error| {
                tracing::error!(%key, error = &error as &dyn std::error::Error, "topic record unusable, keeping the last known good one");
                (etag, topic)
            })),
            Err(error) => {
                tracing::warn!(%key, error = &error as &dyn std::error::Error, "topic not revalidated, keeping the last known good one");
                Some((etag, topic))
            }
        };
        Ok(self.keep(key, next, now))
    }

    async fn load(&self, key: String, now: Duration) -> Result<Option<Arc<Topic>>, RegistryError> {
        let next = match self.store.get(&key).await.map_err(RegistryError::Store)? {
            Some(object) => Some(compile(&object).map_err(RegistryError::Record)?),
            None => None,
        };
        Ok(self.keep(key, next, now))
    }

    fn keep(&self, key: String, next: Option<(ETag, Arc<Topic>)>, now: Duration) -> Option<Arc<Topic>> {
        let topic = next.as_ref().map(|(_, topic)| Arc::clone(topic));
        let mut known = self.lock();
        if next.is_none() && self.max_age.is_zero() {
            known.remove(&key);
            return None;
        }
        if known.len() >= TOPICS_KEPT_MAX && !known.contains_key(&key) {
            // Names that are not there go first: anybody can ask for them.
            known.retain(|_, known| known.topic.is_some());
            if known.len() >= TOPICS_KEPT_MAX {
                known.clear();
            }
        }
        known.insert(key, Known { topic: next, checked_at: now });
        topic
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn compile(object: &Object) -> Result<(ETag, Arc<Topic>), RecordError> {
    let topic = TopicRecord::parse(&object.bytes)?.compile()?;
    Ok((object.etag.clone(), Arc::new(topic)))
}
