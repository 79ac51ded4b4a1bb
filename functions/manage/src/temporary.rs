//! Temporary topics and subscriptions: the marks that lead wake to them, and the notes of their
//! use.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::{TopicRecord, layout};
use posthaste_ports::{Clock, Ports};
use posthaste_services::activity::ActivityError;

use crate::answer::ApiError;
use crate::manage::Manage;

impl<P: Ports> Manage<P> {
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
        self.put_work(&layout::temporary_mark_key(&next.name), Bytes::new())
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
        let Ok(Some(record)) = self.load_record(topic).await else {
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
            .note_by_key(&self.state, key, idle, self.clock.now())
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
