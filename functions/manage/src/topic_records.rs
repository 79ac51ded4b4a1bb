//! Topic records in the state store, as they are read.

use std::error::Error;
use std::sync::Arc;

use axum::extract::FromRef;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{FormatError, TopicName};
use posthaste_core::stored::{TopicRecord, TopicRecordError, layout};
use posthaste_ports::{Clock, ETag, ObjectStore, Ports, StoredObject};

use crate::answer::{ApiError, record_problem, unknown_topic};
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The state of a topic's place in the store.
pub(crate) enum StoredTopic {
    /// No topic: there is no object, or one that was left behind when the topic was deleted.
    Empty,
    /// The topic is being deleted. A record that is written now would be deleted with it.
    Leaving,
    /// The topic. Secrets and subscriptions that have expired are left out: they are never shown,
    /// and the next write drops them.
    Topic(Box<TopicRecord>, ETag),
}

impl StoredTopic {
    /// The topic, if there is one.
    pub(crate) fn into_record(self) -> Option<(TopicRecord, ETag)> {
        match self {
            Self::Topic(record, etag) => Some((*record, etag)),
            Self::Empty | Self::Leaving => None,
        }
    }
}

/// The records of topics.
pub(crate) struct TopicRecords<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for TopicRecords<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
        }
    }
}

impl<P: Ports> TopicRecords<P> {
    /// The record of a topic that must exist.
    pub(crate) async fn existing_record(&self, topic: &TopicName) -> Result<TopicRecord, ApiError> {
        Ok(self
            .load_record(topic)
            .await?
            .ok_or_else(|| unknown_topic(topic))?)
    }

    /// The record of a topic.
    pub(crate) async fn load_record(
        &self,
        topic: &TopicName,
    ) -> Result<Option<TopicRecord>, ApiError> {
        let key = layout::topic_record_key(topic);
        let object = self
            .state
            .get(&key)
            .await
            .map_err(|error| record_problem(&error))?;
        Ok(self
            .stored_topic(&key, object)?
            .into_record()
            .map(|(record, _)| record))
    }

    /// The place of a topic with this object. A broken record is a failure of the program: it does
    /// not mean that the topic does not exist.
    pub(crate) fn stored_topic(
        &self,
        key: &str,
        object: Option<StoredObject>,
    ) -> Result<StoredTopic, ApiProblem> {
        let Some(StoredObject { bytes, etag }) = object else {
            return Ok(StoredTopic::Empty);
        };
        let record =
            TopicRecord::parse(&bytes).map_err(|error| broken_record_problem(key, &error))?;
        let now = self.clock.now();
        if record.deleted_at.is_some() {
            return Ok(if record.is_abandoned(now) {
                StoredTopic::Empty
            } else {
                StoredTopic::Leaving
            });
        }
        let mut record = record.without_ended_secrets(now);
        record.take_expired(now);
        Ok(StoredTopic::Topic(Box::new(record), etag))
    }
}

fn broken_record_problem(key: &str, error: &TopicRecordError) -> ApiProblem {
    tracing::error!(%key, error = error as &dyn Error, "a topic record cannot be used");
    let is_newer = matches!(error, TopicRecordError::Format(FormatError::Newer(_)));
    ApiProblem::new(ProblemKind::Internal).detail(if is_newer {
        "the record was written by a newer version of this program"
    } else {
        "the record cannot be read"
    })
}
