//! Topic records in the state store: read whole, changed by conditional put.

use std::error::Error;
use std::time::Duration;

use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::identity::{CREATION_ID_BYTES, CreationId};
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::stored::format::FormatError;
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::{RecordError, TopicRecord};
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, Object, PortError, PutCondition};
use posthaste_services::topics::delete_topic;

use crate::answer::store_problem;
use crate::{Manage, Store, Webhooks};

/// How often a change is tried anew when somebody else wrote in between. Each failed try means that another write
/// to the same topic succeeded, so this many in a row need that many writers.
pub(crate) const CHANGE_TRIES_MAX: usize = 16;

/// When to try again after so many writers were faster.
pub(crate) const CONFLICT_RETRY_AFTER: Duration = Duration::from_secs(1);

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// The record of a topic, and the version under which it is stored. Signing secrets whose overlap has ended are
    /// not in it: nobody is shown them, and the next write drops them.
    pub(crate) async fn load(&self, topic: &TopicName) -> Result<Option<(TopicRecord, ETag)>, Problem> {
        let key = layout::topic(topic);
        let object = self.state.get(&key).await.map_err(|error| record_problem(&error))?;
        Ok(object.map(|object| self.read(&key, object)).transpose()?.flatten())
    }

    /// A record as it is at this moment: without the subscriptions whose time is over, and none if its topic is being
    /// deleted.
    pub(crate) fn read(&self, key: &str, object: Object) -> Result<Option<(TopicRecord, ETag)>, Problem> {
        let (record, etag) = parse(key, object)?;
        let mut record = record.without_ended_secrets(self.clock.now());
        record.take_expired(self.clock.now());
        Ok(record.deleted_at.is_none().then_some((record, etag)))
    }

    /// The record of a topic that must be there.
    pub(crate) async fn existing(&self, topic: &TopicName) -> Result<TopicRecord, Problem> {
        let (record, _) = self.load(topic).await?.ok_or_else(|| unknown_topic(topic))?;
        Ok(record)
    }

    /// Changes the record of a topic: `edit` makes the next one from the present one, and is asked again with the
    /// newer one when somebody else wrote in between. Answers what `edit` gave besides the record.
    pub(crate) async fn change<T>(
        &self,
        topic: &TopicName,
        edit: impl Fn(Option<TopicRecord>) -> Result<(TopicRecord, T), Problem>,
    ) -> Result<(TopicRecord, T), Problem> {
        self.change_naming(topic, |_| Vec::new(), edit).await
    }

    /// The same, where the user wrote the subscriptions that `named` names: that is a use of them, also if it changes
    /// nothing.
    pub(crate) async fn change_naming<T>(
        &self,
        topic: &TopicName,
        named: impl Fn(&T) -> Vec<SubscriptionName>,
        edit: impl Fn(Option<TopicRecord>) -> Result<(TopicRecord, T), Problem>,
    ) -> Result<(TopicRecord, T), Problem> {
        let key = layout::topic(topic);
        for _ in 0..CHANGE_TRIES_MAX {
            let (present, condition) = self.place(topic).await?;
            let (record, answer) = edit(present.clone())?;
            let now = self.clock.now();
            let record = record.identified(present.as_ref(), now, || self.creation_id());
            let record = TopicRecord { updated_at: now, ..record };
            self.note_temporary(present.as_ref(), &record, &named(&answer)).await?;
            match self.state.put(&key, record.render(), condition).await {
                Ok(_) => return Ok((record, answer)),
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(store_problem(&error)),
            }
        }
        Err(conflict())
    }

    /// What tells a creation from others under its name.
    fn creation_id(&self) -> CreationId {
        let mut bytes = [0; CREATION_ID_BYTES];
        self.entropy.fill(&mut bytes);
        CreationId::new(bytes)
    }

    /// What is in a topic's place, and under which condition something else may be written there.
    async fn place(&self, topic: &TopicName) -> Result<(Option<TopicRecord>, PutCondition), Problem> {
        let key = layout::topic(topic);
        let object = self.state.get(&key).await.map_err(|error| record_problem(&error))?;
        let Some(object) = object else { return Ok((None, PutCondition::IfAbsent)) };
        let (record, etag) = parse(&key, object)?;
        let now = self.clock.now();
        let mut record = record.without_ended_secrets(now);
        if record.deleted_at.is_some() && !record.is_abandoned(now) {
            // What was written now would go with the object.
            return Err(conflict().detail("the topic is being deleted"));
        }
        record.take_expired(now);
        Ok((record.deleted_at.is_none().then_some(record), PutCondition::IfMatch(etag)))
    }

    /// Deletes a topic if `check` lets its record pass, and answers it; it is asked again when somebody else wrote in
    /// between. `None` if the record was damaged: it is deleted too, so that the topic can be written again.
    pub(crate) async fn delete(
        &self,
        topic: &TopicName,
        check: impl Fn(Option<&TopicRecord>) -> Result<(), Problem>,
    ) -> Result<Option<TopicRecord>, Problem> {
        let key = layout::topic(topic);
        for _ in 0..CHANGE_TRIES_MAX {
            let object = match self.state.get(&key).await {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    check(None)?;
                    self.state.delete(&key).await.map_err(|error| store_problem(&error))?;
                    tracing::warn!(%topic, error = &error as &dyn Error, "damaged topic deleted");
                    return Ok(None);
                }
                read => read.map_err(|error| store_problem(&error))?,
            };
            let found = object.map(|object| self.read(&key, object)).transpose()?.flatten();
            let (record, etag) = found.ok_or_else(|| unknown_topic(topic))?;
            check(Some(&record))?;
            match delete_topic(&self.state, record.clone(), etag, self.clock.now()).await {
                // Whether the object is gone or only what was in it: there is no such topic any more.
                Ok(_) => return Ok(Some(record)),
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(store_problem(&error)),
            }
        }
        Err(conflict())
    }
}

/// The problem of a record that the store does not give. One that is damaged can be deleted.
fn record_problem(error: &PortError) -> Problem {
    let problem = store_problem(error);
    let detail = problem.detail.clone().filter(|_| error.kind == ErrorKind::Damaged);
    match detail {
        Some(detail) => problem.detail(format!(
            "{detail}, or delete the topic and write it again, which makes new keys and secrets"
        )),
        None => problem,
    }
}

fn conflict() -> Problem {
    Problem::new(ProblemKind::Conflict).retry_after(CONFLICT_RETRY_AFTER)
}

/// The problem of a topic that is not there.
pub(crate) fn unknown_topic(topic: &TopicName) -> Problem {
    Problem::new(ProblemKind::UnknownTopic).detail(format!("there is no topic {topic}"))
}

/// Reads a record. A broken one is the program's problem, never "no such topic".
fn parse(key: &str, object: Object) -> Result<(TopicRecord, ETag), Problem> {
    let Object { bytes, etag } = object;
    match TopicRecord::parse(&bytes) {
        Ok(record) => Ok((record, etag)),
        Err(error) => {
            tracing::error!(%key, error = &error as &dyn Error, "a topic record cannot be used");
            let detail = match error {
                RecordError::Format(FormatError::Newer(_)) => {
                    "the record was written by a newer version of this program"
                }
                RecordError::Format(FormatError::Malformed(..)) | RecordError::Settings(_) => {
                    "the record cannot be read"
                }
            };
            Err(Problem::new(ProblemKind::Internal).detail(detail))
        }
    }
}
