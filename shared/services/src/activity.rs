//! Notes of the last activity of topics and subscriptions that are deleted when they are idle. Each
//! function that acts on one notes it here, and wake reads the notes. Entities without an idle time
//! cost nothing.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::idle::is_worth_noting;
use posthaste_core::model::{
    CreationId, CreationRecord, FormatError, Subscription, Timestamp, Topic,
};
use posthaste_core::stored::{ActivityNote, layout};
use posthaste_ports::{ErrorKind, ObjectStore, PortError};

use crate::update::{ObjectEdit, UpdateError, update_object};

/// Most entities whose last note is remembered. Beyond it all are forgotten, which costs one note
/// each.
const NOTES_KEPT_MAX: usize = 10_000;

/// Reasons for which an entity's activity could not be read or noted.
#[derive(Debug, thiserror::Error)]
pub enum ActivityError {
    /// The store failed.
    #[error("failed to read or write a note of activity")]
    Store(#[from] PortError),
    /// The stored note cannot be read.
    #[error("failed to understand a note of activity")]
    Note(#[from] FormatError),
}

/// The last notes of a process, so that it writes rarely.
#[derive(Debug, Default)]
pub struct ActivityNotes {
    noted: Mutex<HashMap<NotedEntity, Timestamp>>,
}

/// The key of an entity's note, and the creation of the entity: notes of an entity that was
/// deleted, which may be of a time to come, do not count for the next one of its name.
type NotedEntity = (String, Option<CreationId>);

impl ActivityNotes {
    /// Notes an activity of a topic at `at`, which may be in the future. A failure is logged, and
    /// the next activity is noted instead.
    pub async fn note_topic<S: ObjectStore>(&self, store: &S, topic: &Topic, at: Timestamp) {
        if let Some(idle) = topic.auto_delete_on_idle {
            let entity = noted_entity(layout::topic_activity_key(&topic.name), topic.creation);
            self.note_or_log(store, entity, idle, at).await;
        }
    }

    /// Notes an activity of a subscription, in the same way.
    pub async fn note_subscription<S: ObjectStore>(
        &self,
        store: &S,
        subscription: &Subscription,
        at: Timestamp,
    ) {
        if let Some(idle) = subscription.lifetime.idle {
            let key = layout::subscription_activity_key(&subscription.topic, &subscription.name);
            self.note_or_log(
                store,
                noted_entity(key, subscription.created.subscription),
                idle,
                at,
            )
            .await;
        }
    }

    /// Notes an activity of a subscription's topic, in the same way.
    pub async fn note_topic_of<S: ObjectStore>(
        &self,
        store: &S,
        subscription: &Subscription,
        at: Timestamp,
    ) {
        if let Some(idle) = subscription.lifetime.topic_idle {
            let entity = noted_entity(
                layout::topic_activity_key(&subscription.topic),
                subscription.created.topic,
            );
            self.note_or_log(store, entity, idle, at).await;
        }
    }

    async fn note_or_log<S: ObjectStore>(
        &self,
        store: &S,
        entity: NotedEntity,
        idle: Duration,
        at: Timestamp,
    ) {
        let key = entity.0.clone();
        if let Err(error) = self.note_entity(store, entity, idle, at).await {
            tracing::warn!(%key, error = &error as &dyn std::error::Error, "activity not stored");
        }
    }

    /// Notes an activity at `at` of the entity whose note is stored under `key`, unless this
    /// process wrote a note recently. A note never goes back in time. For callers that do not know
    /// which creation of the entity it is.
    pub async fn note_by_key<S: ObjectStore>(
        &self,
        store: &S,
        key: &str,
        idle: Duration,
        at: Timestamp,
    ) -> Result<(), ActivityError> {
        self.note_entity(store, (key.to_owned(), None), idle, at)
            .await
    }

    async fn note_entity<S: ObjectStore>(
        &self,
        store: &S,
        entity: NotedEntity,
        idle: Duration,
        at: Timestamp,
    ) -> Result<(), ActivityError> {
        let before = self.noted.lock().get(&entity).copied();
        if !is_worth_noting(idle, before, at) {
            return Ok(());
        }
        // Remembered first, so that of many at once only one writes.
        self.remember_note(&entity, at);
        let noted = write_if_later(store, &entity.0, at)
            .await
            .inspect_err(|_| {
                self.noted.lock().remove(&entity);
            })?;
        self.remember_note(&entity, noted);
        Ok(())
    }

    fn remember_note(&self, entity: &NotedEntity, at: Timestamp) {
        let mut noted = self.noted.lock();
        if noted.len() >= NOTES_KEPT_MAX && !noted.contains_key(entity) {
            noted.clear();
        }
        noted.insert(entity.clone(), at);
    }
}

fn noted_entity(key: String, creation: Option<CreationRecord>) -> NotedEntity {
    (key, creation.map(|creation| creation.id))
}

/// The time of the last activity of the entity whose note is stored under `key`; `None` if none was
/// noted.
pub async fn last_activity<S: ObjectStore>(
    store: &S,
    key: &str,
) -> Result<Option<Timestamp>, ActivityError> {
    let Some(object) = store.get(key).await? else {
        return Ok(None);
    };
    Ok(Some(ActivityNote::parse(&object.bytes)?.at()))
}

/// Writes a note of `at`, unless there is a later one, and returns the later of the two.
async fn write_if_later<S: ObjectStore>(
    store: &S,
    key: &str,
    at: Timestamp,
) -> Result<Timestamp, ActivityError> {
    let updated = update_object(store, key, |found| {
        let there = found
            .map(|object| ActivityNote::parse(&object.bytes))
            .transpose()?;
        Ok(match there.map(ActivityNote::at) {
            Some(there) if there >= at => ObjectEdit::Keep(there),
            Some(_) | None => ObjectEdit::Write(ActivityNote::new(at).render(), at),
        })
    });
    updated
        .await
        .map(|updated| updated.answer)
        .map_err(|error| match error {
            UpdateError::Edit(error) => ActivityError::Note(error),
            UpdateError::Read(error) | UpdateError::Write(error) => ActivityError::Store(error),
            UpdateError::Contended => ActivityError::Store(PortError::new(
                "write a note before others do",
                ErrorKind::PreconditionFailed,
            )),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use posthaste_ports::PutCondition;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{CallFault, FaultPlan, Faulty, PortOperation, Recorded, RecordedCalls};

    const IDLE: Duration = Duration::from_mins(8);
    const KEY: &str = "activity/orders";

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[tokio::test]
    async fn a_process_notes_once_in_a_quarter_of_the_idle_time() {
        let calls = RecordedCalls::default();
        let activity = ActivityNotes::default();
        let store = Recorded::new(MemoryStore::default(), "state", &calls);
        for secs in [1000, 1001, 1119, 1120, 1121] {
            activity
                .note_by_key(&store, KEY, IDLE, at(secs))
                .await
                .unwrap();
        }
        assert_eq!(calls.count(PortOperation::Put), 2);
        assert_eq!(last_activity(&store, KEY).await.unwrap(), Some(at(1120)));
    }

    #[tokio::test]
    async fn a_note_never_goes_back_in_time() {
        let store = MemoryStore::default();
        // A retry that is scheduled, and then a publish in another process.
        ActivityNotes::default()
            .note_by_key(&store, KEY, IDLE, at(50_000))
            .await
            .unwrap();
        ActivityNotes::default()
            .note_by_key(&store, KEY, IDLE, at(1000))
            .await
            .unwrap();
        assert_eq!(last_activity(&store, KEY).await.unwrap(), Some(at(50_000)));
    }

    #[tokio::test]
    async fn failed_note_is_made_up_by_the_next_activity() {
        let activity = ActivityNotes::default();
        let store = MemoryStore::default();
        let broken = Faulty::new(
            store.clone(),
            "state",
            &FaultPlan::nth(1, CallFault::Before(ErrorKind::Other)),
        );
        activity
            .note_by_key(&broken, KEY, IDLE, at(1000))
            .await
            .unwrap_err();
        activity
            .note_by_key(&broken, KEY, IDLE, at(1001))
            .await
            .unwrap();
        assert_eq!(last_activity(&store, KEY).await.unwrap(), Some(at(1001)));
    }

    #[tokio::test]
    async fn a_note_that_cannot_be_read_is_not_overwritten() {
        let store = MemoryStore::default();
        store
            .put(KEY, Bytes::from("?"), PutCondition::Always)
            .await
            .unwrap();
        let error = ActivityNotes::default()
            .note_by_key(&store, KEY, IDLE, at(1000))
            .await
            .unwrap_err();
        assert!(matches!(error, ActivityError::Note(_)));
        assert!(matches!(
            last_activity(&store, KEY).await,
            Err(ActivityError::Note(_))
        ));
    }
}
