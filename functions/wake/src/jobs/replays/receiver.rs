//! The subscription that a replay's events are sent to. It is looked up when the replay's turn
//! comes, and again before each of its sends: meanwhile the replay may have been cancelled, and the
//! subscription paused, deleted, or changed.

use std::sync::Arc;

use posthaste_core::model::{
    Subscription, SubscriptionCreation, SubscriptionName, SubscriptionStatus, Topic, TopicName,
};
use posthaste_core::stored::ReplayRecord;
use posthaste_ports::{Clock, Ports};

use super::records::{ReplayError, ReplayJob};
use crate::jobs::standing::takes_requests;
use crate::ports::WakePorts;

/// The subscription that the events are sent to, and its topic.
pub(in crate::jobs) struct ReplayReceiver {
    pub(in crate::jobs) topic: Arc<Topic>,
    pub(in crate::jobs) subscription: Arc<Subscription>,
}

impl ReplayReceiver {
    /// The subscription that asked for a replay, and its topic. A damaged record of the topic does
    /// not say that they are gone.
    pub(super) async fn find_for_replay<P: Ports>(
        ports: &WakePorts<P>,
        record: &ReplayRecord,
    ) -> Result<Option<Self>, ReplayError> {
        Self::find_by(ports, &record.topic, &record.subscription, |created| {
            record.is_for(created)
        })
        .await
    }

    /// The subscription of a topic, if `is_own` takes its creation. The topic is read again before
    /// there is none.
    pub(in crate::jobs) async fn find_by<P: Ports>(
        ports: &WakePorts<P>,
        name: &TopicName,
        subscription: &SubscriptionName,
        is_own: impl Fn(&SubscriptionCreation) -> bool,
    ) -> Result<Option<Self>, ReplayError> {
        let WakePorts {
            registry, clock, ..
        } = ports;
        let asked_after = clock.monotonic();
        let known = registry.topic(name).await.map_err(ReplayError::Registry)?;
        if let Some(known) = Self::from_topic(known, subscription, &is_own) {
            return Ok(Some(known));
        }
        let found = registry.topic_asked_after(name, asked_after).await;
        let found = found.map_err(ReplayError::Registry)?;
        Ok(Self::from_topic(found, subscription, &is_own))
    }

    fn from_topic(
        topic: Option<Arc<Topic>>,
        subscription: &SubscriptionName,
        is_own: &impl Fn(&SubscriptionCreation) -> bool,
    ) -> Option<Self> {
        let topic = topic?;
        let subscription = topic.find_subscription(subscription)?.clone();
        is_own(&subscription.created).then_some(Self {
            topic,
            subscription,
        })
    }

    /// Whether events may be sent to it.
    pub(in crate::jobs) fn is_active(&self) -> bool {
        self.subscription.status == SubscriptionStatus::Active
    }

    /// Looks again before events are sent. Answers whether they may be: if not, the next run says
    /// what becomes of the replay.
    pub(super) async fn refresh_and_check<P: Ports>(
        &mut self,
        ports: &WakePorts<P>,
        job: &mut ReplayJob,
    ) -> Result<bool, ReplayError> {
        if !job.is_current(ports).await? {
            return Ok(false);
        }
        let Some(found) = Self::find_for_replay(ports, &job.record).await? else {
            return Ok(false);
        };
        *self = found;
        if !self.is_active() {
            return Ok(false);
        }
        if job.record.recovery.is_none() {
            return Ok(true);
        }
        Ok(self.subscription.recovery.enabled && takes_requests(ports, &self.subscription).await)
    }
}
