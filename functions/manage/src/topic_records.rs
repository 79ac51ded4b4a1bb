//! Topic records in the state store: read whole, changed by conditional put.

use std::error::Error;

use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::edit::Editor;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::{CREATION_ID_BYTES, CreationId, SubscriptionName, TopicName};
use posthaste_core::stored::{FormatError, RecordError, TopicRecord, layout};
use posthaste_ports::{Clock, ETag, Entropy, ErrorKind, Object, ObjectStore, PortError, Ports};
use posthaste_services::topics::delete_topic;
use posthaste_services::update::UPDATE_TRIES_MAX;
use posthaste_services::{Edit, UpdateError, update_with};

use crate::conditions::{Conditions, subscription_etag};
use crate::error::{ApiError, conflict, record_problem, unknown_subscription, unknown_topic};
use crate::manage::Manage;
use crate::paths::SubscriptionPath;

/// The state of a topic's place in the store.
pub(crate) enum Place {
    /// There is no object.
    Empty,
    /// The topic is being deleted: what is written now would go with the object.
    Leaving,
    /// The topic was deleted, and its object was left behind.
    Abandoned,
    /// The topic, without secrets and subscriptions whose time is over: they are never shown, and the next
    /// write drops them.
    Topic(Box<TopicRecord>, ETag),
}

impl Place {
    /// The topic, if there is one.
    pub(crate) fn topic(self) -> Option<(TopicRecord, ETag)> {
        match self {
            Self::Topic(record, etag) => Some((*record, etag)),
            Self::Empty | Self::Leaving | Self::Abandoned => None,
        }
    }

    /// The topic, if there is one, where another record may take its place.
    fn into_changeable(self) -> Result<Option<TopicRecord>, Problem> {
        match self {
            Self::Empty | Self::Abandoned => Ok(None),
            Self::Leaving => Err(conflict().detail("the topic is being deleted")),
            Self::Topic(record, _) => Ok(Some(*record)),
        }
    }
}

impl<P: Ports> Manage<P> {
    /// The record of a topic that must exist.
    pub(crate) async fn existing(&self, topic: &TopicName) -> Result<TopicRecord, ApiError> {
        let record = self.load(topic).await?.ok_or_else(|| unknown_topic(topic))?;
        Ok(record)
    }

    /// The record of a topic.
    pub(crate) async fn load(&self, topic: &TopicName) -> Result<Option<TopicRecord>, ApiError> {
        Ok(self.place(topic).await?.topic().map(|(record, _)| record))
    }

    /// Changes one subscription if the conditions hold for it: `edit` is run again with the newer one when
    /// another writer was faster. Answers the name as it is stored, and what `edit` gave.
    pub(crate) async fn change_subscription<T>(
        &self,
        path: &SubscriptionPath,
        conditions: &Conditions,
        edit: impl Fn(&SubscriptionName, &mut SubscriptionSettings) -> Result<T, Problem>,
    ) -> Result<(TopicRecord, SubscriptionName, T), ApiError> {
        let unknown = || unknown_subscription(path);
        let edit = |present: Option<TopicRecord>| {
            let mut record = present.ok_or_else(|| unknown_topic(&path.topic))?;
            let (name, settings) = record.settings.subscription(&path.name).ok_or_else(unknown)?;
            conditions.check(Some(&subscription_etag(&record, settings)))?;
            let name = name.clone();
            let settings = record.settings.subscriptions.get_mut(&name).ok_or_else(unknown)?;
            let answer = edit(&name, settings)?;
            Ok((record, (name, answer)))
        };
        let (record, (name, answer)) = self.change(&path.topic, &[], edit).await?;
        Ok((record, name, answer))
    }

    /// Changes the record of a topic: `edit` makes the next one from the present one, and is run again with
    /// the newer one when another writer was faster. Answers what `edit` gave besides the record. The
    /// subscriptions that the user `named` count as used, also where nothing of them changes.
    pub(crate) async fn change<T>(
        &self,
        topic: &TopicName,
        named: &[&SubscriptionName],
        edit: impl Fn(Option<TopicRecord>) -> Result<(TopicRecord, T), Problem>,
    ) -> Result<(TopicRecord, T), ApiError> {
        let key = layout::topic(topic);
        let edit = |found| async {
            let present = self.found(&key, Ok(found))?.into_changeable()?;
            let (record, answer) = edit(present.clone())?;
            let now = self.clock.now();
            let record = record.identified(present.as_ref(), now, || self.creation_id());
            let record = TopicRecord { updated_at: now, ..record };
            self.note_temporary(present.as_ref(), &record, named).await?;
            Ok::<_, ApiError>(Edit::Write(record.render(), (record, answer)))
        };
        match update_with(&self.state, &key, edit).await {
            Ok(updated) => Ok(updated.answer),
            Err(UpdateError::Read(error)) => Err(record_problem(&error).into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a topic if `check` accepts its record, and answers the record; `check` is run again when
    /// another writer was faster. `None` if the record was damaged: it is deleted too, so that the topic can
    /// be written again.
    pub(crate) async fn delete(
        &self,
        topic: &TopicName,
        check: impl Fn(Option<&TopicRecord>) -> Result<(), Problem>,
    ) -> Result<Option<TopicRecord>, ApiError> {
        let key = layout::topic(topic);
        for _ in 0..UPDATE_TRIES_MAX {
            let read = self.state.get(&key).await;
            if let Err(error) = &read
                && error.kind == ErrorKind::Damaged
            {
                check(None)?;
                self.state.delete(&key).await?;
                tracing::warn!(%topic, error = error as &dyn Error, "damaged topic deleted");
                return Ok(None);
            }
            let found = self.found(&key, read)?.topic();
            let (record, etag) = found.ok_or_else(|| unknown_topic(topic))?;
            check(Some(&record))?;
            match delete_topic(&self.state, record.clone(), etag, self.clock.now()).await {
                // Whether the object is gone or only its content: the topic does not exist any more.
                Ok(_) => return Ok(Some(record)),
                Err(error) if error.kind == ErrorKind::PreconditionFailed => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(conflict().into())
    }

    /// An editor for a write at this moment.
    pub(crate) fn editor(&self) -> Editor<'_, impl Fn(&mut [u8])> {
        Editor {
            random: |bytes: &mut [u8]| self.entropy.fill(bytes),
            now: self.clock.now(),
            addresses: &self.address_policy,
            own_publish_urls: &self.own_publish_urls,
        }
    }

    /// Distinguishes a creation from others of the same name.
    fn creation_id(&self) -> CreationId {
        let mut bytes = [0; CREATION_ID_BYTES];
        self.entropy.fill(&mut bytes);
        CreationId::new(bytes)
    }

    async fn place(&self, topic: &TopicName) -> Result<Place, ApiError> {
        let key = layout::topic(topic);
        let read = self.state.get(&key).await;
        self.found(&key, read)
    }

    fn found(&self, key: &str, read: Result<Option<Object>, PortError>) -> Result<Place, ApiError> {
        match read {
            Ok(Some(object)) => Ok(self.read(key, object)?),
            Ok(None) => Ok(Place::Empty),
            Err(error) => Err(record_problem(&error).into()),
        }
    }

    /// The place of a topic with this object. A broken record is the program's problem, never a missing
    /// topic.
    pub(crate) fn read(&self, key: &str, object: Object) -> Result<Place, Problem> {
        let Object { bytes, etag } = object;
        let (record, now) =
            (TopicRecord::parse(&bytes).map_err(|error| broken(key, &error))?, self.clock.now());
        if record.deleted_at.is_some() {
            return Ok(if record.is_abandoned(now) { Place::Abandoned } else { Place::Leaving });
        }
        let mut record = record.without_ended_secrets(now);
        record.take_expired(now);
        Ok(Place::Topic(Box::new(record), etag))
    }
}

fn broken(key: &str, error: &RecordError) -> Problem {
    tracing::error!(%key, error = error as &dyn Error, "a topic record cannot be used");
    let detail = match error {
        RecordError::Format(FormatError::Newer(_)) => {
            "the record was written by a newer version of this program"
        }
        RecordError::Format(FormatError::Malformed(..)) | RecordError::Settings(_) => {
            "the record cannot be read"
        }
    };
    Problem::new(ProblemKind::Internal).detail(detail)
}
