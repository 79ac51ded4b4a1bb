//! Temporary topics and subscriptions: the marks that lead wake to them, and the notes of their
//! use.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRef;
use bytes::Bytes;
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, Ports};
use posthaste_services::ActivityNotes;
use posthaste_services::activity::ActivityError;

use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;
use crate::topic_records::TopicRecords;
use crate::wake_queue::WakeQueue;

/// The notes of the use of temporary topics and subscriptions.
pub(crate) struct UseNotes<P: Ports> {
    state: SharedPort<P, P::Store>,
    activity: SharedPort<P, ActivityNotes>,
    clock: P::Clock,
    records: TopicRecords<P>,
    wake: WakeQueue<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for UseNotes<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            activity: SharedPort::new(manage, |it| &it.activity),
            clock: manage.clock.clone(),
            records: TopicRecords::from_ref(manage),
            wake: WakeQueue::from_ref(manage),
        }
    }
}

impl<P: Ports> UseNotes<P> {
    /// Marks a topic that is temporary or has temporary subscriptions, and notes the use of the
    /// subscriptions that this write changes or that the user named. It must run before the
    /// record is written. Wake removes a note that nothing needs. Without its note, a
    /// subscription would stay for ever, or be deleted right after it was written.
    pub(crate) async fn note_temporary(
        &self,
        present: Option<&TopicRecord>,
        next: &TopicRecord,
        named: &[&SubscriptionName],
    ) -> Result<(), ApiError> {
        if !next.is_temporary() {
            return Ok(());
        }
        self.wake
            .put_work(&layout::temporary_mark_key(&next.name), Bytes::new())
            .await?;
        for (name, settings) in &next.settings.subscriptions {
            let before = present.and_then(|present| present.settings.subscriptions.get(name));
            if before != Some(settings) || named.iter().any(|named| named.folded() == name.folded())
            {
                self.note_use(&next.name, name, settings).await?;
            }
        }
        Ok(())
    }

    /// Notes that a subscription's dead letters are read. If that fails, they are still shown.
    pub(crate) async fn note_dead_letter_read(&self, topic: &TopicName, name: &SubscriptionName) {
        let Ok(Some(record)) = self.records.load_record(topic).await else {
            return;
        };
        if let Some(idle) = record.settings.auto_delete_on_idle {
            // A failure is logged.
            let _ = self
                .note_activity(topic, &layout::topic_activity_key(topic), idle.0)
                .await;
        }
        let Some((name, settings)) = record.settings.find_subscription(name) else {
            return;
        };
        if self.note_use(topic, name, settings).await.is_err() {
            tracing::warn!(%topic, subscription = %name, "use of a subscription not stored");
        }
    }

    async fn note_use(
        &self,
        topic: &TopicName,
        name: &SubscriptionName,
        settings: &SubscriptionSettings,
    ) -> Result<(), ApiError> {
        let Some(idle) = settings.auto_delete_on_idle else {
            return Ok(());
        };
        self.note_activity(
            topic,
            &layout::subscription_activity_key(topic, name),
            idle.0,
        )
        .await
    }

    async fn note_activity(
        &self,
        topic: &TopicName,
        key: &str,
        idle: Duration,
    ) -> Result<(), ApiError> {
        let noted = self
            .activity
            .note_by_key(&*self.state, key, idle, self.clock.now())
            .await;
        noted.map_err(|error| {
            tracing::warn!(%topic, error = &error as &dyn Error, "activity not stored");
            match error {
                ActivityError::Store(error) => error.into(),
                ActivityError::Note(_) => ApiProblem::new(ProblemKind::Internal).into(),
            }
        })
    }
}
