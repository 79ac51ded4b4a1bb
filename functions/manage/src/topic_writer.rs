//! Writes of topic records: each changes one by conditional put, so that concurrent writers lose
//! nothing. Work beside a record is written down before it, and its entry in the audit trail too.

use std::error::Error;
use std::sync::Arc;

use axum::extract::FromRef;
use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::api::problem::ApiProblem;
use posthaste_core::api::{AuditEntry, AuditOutcome, SubscriptionSettings};
use posthaste_core::model::{
    CREATION_ID_BYTES, CreationId, SubscriptionName, Timestamp, TopicName,
};
use posthaste_core::stored::{TopicRecord, layout, record_changes};
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectStore, Ports, StoredObject};
use posthaste_services::audit::{begin_change, end_change, note_expired};
use posthaste_services::topics::delete_topic;
use posthaste_services::update::UPDATE_TRIES_MAX;
use posthaste_services::{ObjectEdit, UpdateError, update_object_with};

use crate::answer::{ApiError, conflict_problem, record_problem, unknown_topic};
use crate::audit::AuditTrail;
use crate::begun_marks::BegunMarks;
use crate::conditions::{WriteConditions, subscription_etag};
use crate::extract::SubscriptionPath;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::temporary::UseNotes;
use crate::topic_records::{StoredTopic, TopicRecords};
use crate::wake_queue::WakeQueue;

/// The note of a change that another writer made before this one could be.
const OVERTAKEN: &str = "another change made the same before it";

/// A change of a topic's record.
struct TopicChange<'a, T> {
    key: &'a str,
    entry: AuditEntry,
    /// The subscriptions that the user named.
    named: &'a [&'a SubscriptionName],
    trail: Mutex<ChangeTrail<T>>,
}

/// A change of a record in the audit trail, over all its tries.
struct ChangeTrail<T> {
    /// The entry, once a try has written it.
    begun: Option<AuditEntry>,
    /// Whether the last try found nothing to be changed any more.
    is_overtaken: bool,
    /// The record that the last try wrote, and its answer. Whether it was written is not known
    /// where the edit runs again.
    written: Option<(TopicRecord, T)>,
}

impl<T> Default for ChangeTrail<T> {
    fn default() -> Self {
        Self {
            begun: None,
            is_overtaken: false,
            written: None,
        }
    }
}

impl<T: Clone> ChangeTrail<T> {
    /// Notes a try that is about to be written: its entry, `None` if it changes nothing, and what
    /// it answers.
    fn note_try(&mut self, entry: Option<AuditEntry>, answer: &(TopicRecord, T)) {
        self.is_overtaken = entry.is_none();
        self.written = entry.is_some().then(|| answer.clone());
        self.begun = entry.or_else(|| self.begun.take());
    }
}

/// Whether the change of this entry is one of the last changes of the record in this object.
fn has_change(found: Option<&StoredObject>, entry: &AuditEntry) -> bool {
    let record = found.and_then(|object| TopicRecord::parse(&object.bytes).ok());
    record.is_some_and(|record| record.has_change(&entry.id))
}

/// The entry of a change from `present` to `next`; `None` if it changes nothing. Values that are
/// not shown, such as the query of a URL, differ without a member that says so.
fn entry_of(
    entry: &AuditEntry,
    present: Option<&TopicRecord>,
    next: &TopicRecord,
    now: Timestamp,
) -> Option<AuditEntry> {
    let changes = record_changes(present, Some(next), now);
    let is_same = present.is_some_and(|present| next.has_settings_of(present));
    let is_hidden = changes.is_empty() && entry.is_own();
    (!is_same && !is_hidden).then(|| entry.clone().with_changes(changes))
}

/// The writer of topic records.
pub(crate) struct TopicWriter<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
    records: TopicRecords<P>,
    audit: AuditTrail<P>,
    begun: BegunMarks<P>,
    uses: UseNotes<P>,
    wake: WakeQueue<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for TopicWriter<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
            records: TopicRecords::from_ref(manage),
            audit: AuditTrail::from_ref(manage),
            begun: BegunMarks::from_ref(manage),
            uses: UseNotes::from_ref(manage),
            wake: WakeQueue::from_ref(manage),
        }
    }
}

impl<P: Ports> TopicWriter<P> {
    /// Changes one subscription if the conditions hold for it, as [`Self::change_record`] does. Answers
    /// the name as it is stored, and the result of `edit`.
    pub(crate) async fn change_subscription<T: Clone>(
        &self,
        entry: AuditEntry,
        path: &SubscriptionPath,
        conditions: &WriteConditions,
        edit: impl Fn(&SubscriptionName, &mut SubscriptionSettings) -> Result<T, ApiProblem>,
    ) -> Result<(TopicRecord, SubscriptionName, T), ApiError> {
        let entry = entry.of_subscription(&path.topic, &path.name);
        let (record, (name, answer)) = self
            .change_existing(entry, &path.topic, &[], |record| {
                let (name, settings) = path.find_in(record)?;
                conditions.check(Some(&subscription_etag(record, settings)))?;
                let name = name.clone();
                let settings = record
                    .settings
                    .subscriptions
                    .get_mut(&name)
                    .ok_or_else(|| path.unknown_problem())?;
                let answer = edit(&name, settings)?;
                Ok((name, answer))
            })
            .await?;
        Ok((record, name, answer))
    }

    /// Changes the record of a topic that must exist, as [`Self::change_record`] does. Answers the record
    /// and the result of `edit`.
    pub(crate) async fn change_existing<T: Clone>(
        &self,
        entry: AuditEntry,
        topic: &TopicName,
        named: &[&SubscriptionName],
        edit: impl Fn(&mut TopicRecord) -> Result<T, ApiProblem>,
    ) -> Result<(TopicRecord, T), ApiError> {
        self.change_record(entry, topic, named, |present| {
            let mut record = present.ok_or_else(|| unknown_topic(topic))?;
            let answer = edit(&mut record)?;
            Ok((record, answer))
        })
        .await
    }

    /// Changes the record of a topic: `edit` makes the next record from the present one. It runs
    /// again with the newer one if another writer was faster. Answers the record and the other
    /// result of `edit`. The subscriptions that the user `named` count as used, even if nothing
    /// about them changes. The audit trail gets `entry` with what differs, before the record is
    /// written and once it is, if something differs; of what posthaste does by itself only if that
    /// can be seen.
    pub(crate) async fn change_record<T: Clone>(
        &self,
        entry: AuditEntry,
        topic: &TopicName,
        named: &[&SubscriptionName],
        edit: impl Fn(Option<TopicRecord>) -> Result<(TopicRecord, T), ApiProblem>,
    ) -> Result<(TopicRecord, T), ApiError> {
        let key = layout::topic_record_key(topic);
        let change = TopicChange {
            key: &key,
            entry: entry.of_topic(topic),
            named,
            trail: Mutex::new(ChangeTrail::default()),
        };
        let updated = update_object_with(&*self.state, &key, |found| {
            self.try_change(&change, found, &edit)
        })
        .await;
        let changed = match updated {
            Ok(updated) => Ok(updated.answer),
            Err(UpdateError::Read(error)) => Err(record_problem(&error).into()),
            Err(error) => Err(error.into()),
        };
        self.end_trail(change.trail.into_inner(), changed.as_ref().map(drop))
            .await;
        changed
    }

    /// Makes the next record of a change from the object that was found, and writes down what
    /// stands beside the record.
    async fn try_change<T: Clone>(
        &self,
        change: &TopicChange<'_, T>,
        found: Option<StoredObject>,
        edit: &impl Fn(Option<TopicRecord>) -> Result<(TopicRecord, T), ApiProblem>,
    ) -> Result<ObjectEdit<(TopicRecord, T)>, ApiError> {
        // The answer to the write was lost, and the store was asked again: it is made.
        let written = change.trail.lock().written.take();
        if let Some(answer) = written
            && has_change(found.as_ref(), &change.entry)
        {
            return Ok(ObjectEdit::Keep(answer));
        }
        self.note_expired(found.as_ref()).await?;
        let present = match self.records.stored_topic(change.key, found)? {
            StoredTopic::Leaving => {
                return Err(conflict_problem()
                    .detail("the topic is being deleted")
                    .into());
            }
            place => place.into_record().map(|(record, _)| record),
        };
        let (record, answer) = edit(present.clone())?;
        let now = self.clock.now();
        let record = record.with_identities(present.as_ref(), now, || self.creation_id());
        let record = TopicRecord {
            updated_at: now,
            ..record
        };
        self.uses
            .note_temporary(present.as_ref(), &record, change.named)
            .await?;
        let begun = entry_of(&change.entry, present.as_ref(), &record, now);
        let record = match &begun {
            Some(begun) => {
                begin_change(&*self.state, begun).await?;
                record.changed_by(&begun.id)
            }
            None => record,
        };
        let bytes = record.render();
        let answer = (record, answer);
        change.trail.lock().note_try(begun, &answer);
        self.begun.note_begun(present.as_ref(), &answer.0).await?;
        Ok(ObjectEdit::Write(bytes, answer))
    }

    /// Writes down how a change of a record ended, if it was begun.
    async fn end_trail<T>(&self, trail: ChangeTrail<T>, changed: Result<(), &ApiError>) {
        let Some(entry) = trail.begun else {
            return;
        };
        if trail.is_overtaken && changed.is_ok() {
            let entry = entry.with_detail(OVERTAKEN);
            end_change(&*self.state, entry, AuditOutcome::Refused).await;
        } else {
            self.audit.end_audited(entry, changed).await;
        }
    }

    /// Writes down what the next write of a record drops because its time is over.
    async fn note_expired(&self, found: Option<&StoredObject>) -> Result<(), ApiError> {
        let record = found.and_then(|object| TopicRecord::parse(&object.bytes).ok());
        if let Some(record) = record.filter(|record| record.deleted_at.is_none()) {
            note_expired(&*self.state, &record, self.clock.now()).await?;
        }
        Ok(())
    }

    /// Deletes a topic if `check` accepts its record, and answers the record. `check` runs again if
    /// another writer was faster. `None` if the record was damaged: it is deleted too, so that
    /// the topic can be written again.
    pub(crate) async fn delete_record(
        &self,
        entry: AuditEntry,
        topic: &TopicName,
        check: impl Fn(Option<&TopicRecord>) -> Result<(), ApiProblem>,
    ) -> Result<Option<TopicRecord>, ApiError> {
        let mut begun = None;
        let entry = entry.of_topic(topic);
        let deleted = self.delete_noting(entry, &mut begun, topic, check).await;
        if let Some(entry) = begun {
            self.audit
                .end_audited(entry, deleted.as_ref().map(drop))
                .await;
        }
        deleted
    }

    /// Deletes a topic as [`Self::delete_record`] does, and leaves the entry that was begun in `begun`.
    async fn delete_noting(
        &self,
        entry: AuditEntry,
        begun: &mut Option<AuditEntry>,
        topic: &TopicName,
        check: impl Fn(Option<&TopicRecord>) -> Result<(), ApiProblem>,
    ) -> Result<Option<TopicRecord>, ApiError> {
        let key = layout::topic_record_key(topic);
        for _ in 0..UPDATE_TRIES_MAX {
            let object = match self.state.get(&key).await {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    check(None)?;
                    let entry = entry.with_detail("its record was damaged");
                    begin_change(&*self.state, begun.insert(entry)).await?;
                    self.state.delete(&key).await?;
                    tracing::warn!(%topic, error = &error as &dyn Error, "damaged topic deleted");
                    return Ok(None);
                }
                read => read.map_err(|error| record_problem(&error))?,
            };
            let found = self.records.stored_topic(&key, object)?.into_record();
            let (record, etag) = found.ok_or_else(|| unknown_topic(topic))?;
            check(Some(&record))?;
            let changes = record_changes(Some(&record), None, self.clock.now());
            let entry = entry.clone().with_changes(changes);
            begin_change(&*self.state, begun.insert(entry)).await?;
            // wake looks at the topic, and removes what is left of it if this process dies.
            self.wake
                .put_work(&layout::temporary_mark_key(&record.name), Bytes::new())
                .await?;
            match delete_topic(&*self.state, record.clone(), etag, self.clock.now()).await {
                // The topic does not exist any more, even if its object was left behind.
                Ok(_) => return Ok(Some(record)),
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(conflict_problem().into())
    }

    /// A new id, which tells a creation from others of the same name.
    fn creation_id(&self) -> CreationId {
        let mut bytes = [0; CREATION_ID_BYTES];
        self.entropy.fill(&mut bytes);
        CreationId::new(bytes)
    }
}
