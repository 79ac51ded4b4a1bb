//! Topics and subscriptions that go by themselves: what wake must know to find them, and what counts as their use.

use posthaste_core::api::SubscriptionSettings;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_core::stored::topic::TopicRecord;
use posthaste_ports::{Clock, Entropy, PutCondition};
use posthaste_services::activity::ActivityError;

use crate::answer::store_problem;
use crate::edit::spelling;
use crate::{Manage, Store, Webhooks};

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// Notes that a topic is temporary, or has temporary subscriptions, and that those that are about to be changed, or
    /// were named by whoever writes, are in use. Before the record is written: a note too many is tidied up by wake, one too few would keep for ever what
    /// should go, or let go what was just written.
    pub(crate) async fn note_temporary(
        &self,
        present: Option<&TopicRecord>,
        next: &TopicRecord,
        named: &[SubscriptionName],
    ) -> Result<(), Problem> {
        if !next.is_temporary() {
            return Ok(());
        }
        let key = layout::temporary(&next.name);
        let noted = self.state.put(&key, bytes::Bytes::new(), PutCondition::Always).await;
        noted.map_err(|error| store_problem(&error))?;
        for (name, settings) in &next.settings.subscriptions {
            let before = present.and_then(|present| present.settings.subscriptions.get(name));
            if before != Some(settings) || named.contains(name) {
                self.note_use(&next.name, name, settings).await?;
            }
        }
        Ok(())
    }

    /// Notes that somebody looks at a subscription's dead letters. If that cannot be noted, they are shown all the same.
    pub(crate) async fn note_dead_letter_read(&self, topic: &TopicName, name: &SubscriptionName) {
        let Ok(Some((record, _))) = self.load(topic).await else { return };
        let now = self.clock.now();
        if let Some(idle) = record.settings.auto_delete_on_idle {
            let noted = self.activity.note(&self.state, &layout::topic_activity(topic), idle.0, now).await;
            log_failure(topic, noted.err().as_ref());
        }
        let Some(name) = spelling(&record.settings, name) else { return };
        if self.note_use(topic, name, &record.settings.subscriptions[name]).await.is_err() {
            tracing::warn!(%topic, subscription = %name, "the use of a subscription not noted");
        }
    }

    async fn note_use(
        &self,
        topic: &TopicName,
        name: &SubscriptionName,
        settings: &SubscriptionSettings,
    ) -> Result<(), Problem> {
        let Some(idle) = settings.auto_delete_on_idle else { return Ok(()) };
        let key = layout::subscription_activity(topic, name);
        let noted = self.activity.note(&self.state, &key, idle.0, self.clock.now()).await;
        noted.map_err(|error| {
            log_failure(topic, Some(&error));
            match error {
                ActivityError::Store(error) => store_problem(&error),
                ActivityError::Note(_) => Problem::new(ProblemKind::Internal),
            }
        })
    }
}

fn log_failure(topic: &TopicName, error: Option<&ActivityError>) {
    if let Some(error) = error {
        tracing::warn!(%topic, error = error as &dyn std::error::Error, "activity not noted");
    }
}
