//! Subscriptions whose endpoints answered 410: each gets a mark, which wake carries out. Embedded,
//! it is carried out here at once.

use std::sync::Arc;

use posthaste_core::model::Subscription;
use posthaste_core::stored::{GoneMark, layout};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports, PutCondition};
use posthaste_services::catch_panic::catch_panic;
use posthaste_services::{GoneError, WakeSignaller, disable_gone, stop_at};

use crate::current::CurrentSubscriptions;
use crate::invocation::Invocation;
use crate::limits::DisablingMode;
use crate::notify::NoticePorts;

/// Disables subscriptions, or has wake do it.
pub(crate) struct SubscriptionDisabler<P: Ports> {
    pub(crate) ports: Arc<NoticePorts<P>>,
    pub(crate) wake: Arc<WakeSignaller<P::Store, P::Clock>>,
    pub(crate) current: Arc<CurrentSubscriptions<P>>,
}

/// Reasons for which a subscription was not disabled.
#[derive(Debug, thiserror::Error)]
enum DisableError {
    #[error("failed to write the mark")]
    Mark(#[source] PortError),
    #[error("failed to carry the mark out")]
    Gone(#[from] GoneError),
}

impl<P: Ports> SubscriptionDisabler<P> {
    /// Disables the subscription. If that fails or runs out of time before there is a mark, the
    /// next event gets the same answer and tries again.
    pub(crate) async fn disable_subscription(
        &self,
        invocation: &Invocation,
        subscription: &Subscription,
    ) {
        let topic = &subscription.topic;
        let name = &subscription.name;
        let disabled = catch_panic(self.disable(subscription));
        let end = invocation.deadlines.attempts_end();
        match stop_at(&self.ports.clock, end, disabled).await {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => {
                let error = &error as &dyn std::error::Error;
                tracing::error!(%topic, subscription = %name, error, "subscription not disabled");
                self.current.forget_gone(subscription);
            }
            Some(Err(_)) => {
                tracing::error!(%topic, subscription = %name, "disabling a subscription panicked");
                self.current.forget_gone(subscription);
            }
            None => self.current.forget_gone(subscription),
        }
    }

    async fn disable(&self, subscription: &Subscription) -> Result<(), DisableError> {
        let mark = GoneMark::new(subscription, self.ports.clock.now());
        // wake may rest until it is signalled.
        self.wake.signal_if_due().await;
        let key = layout::gone_mark_key(&mark.topic, &mark.subscription);
        let put = self
            .ports
            .state
            .put(&key, mark.render(), PutCondition::Always);
        put.await.map_err(DisableError::Mark)?;
        match self.current.disabling {
            DisablingMode::ByWake => {
                let topic = &mark.topic;
                let subscription = &mark.subscription;
                tracing::info!(%topic, %subscription, "endpoint gone, wake disables its subscription");
            }
            DisablingMode::AtOnce => {
                let notifier = self.ports.notifier();
                Box::pin(disable_gone(&*self.ports.state, &notifier, &mark)).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::{CallFault, FaultPlan, PortOperation};
    use serde_json::json;

    use super::*;
    use crate::testing::{START, TestPorts, World};
    use posthaste_core::attempt::EntryVerdict;
    use posthaste_ports::ErrorKind;

    fn disabler(world: &World, disabling: DisablingMode) -> SubscriptionDisabler<TestPorts> {
        SubscriptionDisabler {
            ports: world.notice_ports(),
            wake: world.wake(),
            current: world.current_where(disabling),
        }
    }

    #[tokio::test]
    async fn subscription_is_disabled_at_once_where_topics_may_be_written() {
        let world = World::new();
        let own = world.subscribe(json!({})).await;
        let disabler = disabler(&world, DisablingMode::AtOnce);
        disabler.current.note_gone(&own);
        let invocation = world.invocation(Vec::new());
        disabler.disable_subscription(&invocation, &own).await;
        assert_eq!(world.memory.keys(layout::DISABLED), [""; 0]);
        let check = disabler.current.check_may_begin(&own).await;
        assert_eq!(check, Err(EntryVerdict::NotStarted));
    }

    #[tokio::test]
    async fn mark_and_signal_are_all_that_is_written_elsewhere() {
        let world = World::new();
        let own = world.subscribe(json!({})).await;
        let disabler = disabler(&world, DisablingMode::ByWake);
        disabler.current.note_gone(&own);
        let invocation = world.invocation(Vec::new());
        disabler.disable_subscription(&invocation, &own).await;
        let calls = world.calls.all();
        let written: Vec<_> = calls.iter().map(|it| (it.operation, &*it.key)).collect();
        let expected = ["signals/wake.json", "disabled/orders.billing"];
        assert_eq!(written, expected.map(|key| (PortOperation::Put, key)));
        let marks = world.memory.objects_under(layout::DISABLED);
        let mark = GoneMark::parse(&marks[0].1).unwrap();
        assert_eq!(mark, GoneMark::new(&own, START));
        // Until its record says it, the worker knows.
        assert!(disabler.current.check_may_begin(&own).await.is_err());
    }

    #[tokio::test]
    async fn mark_that_is_not_written_is_tried_again() {
        let denied = |effect: posthaste_testkit::faulty::PortEffect<'_>| {
            let is_mark = effect.key.starts_with(layout::DISABLED);
            is_mark.then_some(CallFault::Before(ErrorKind::Other))
        };
        let world = World::with(&FaultPlan::by(denied), &FaultPlan::none());
        let own = world.subscribe(json!({})).await;
        let disabler = disabler(&world, DisablingMode::ByWake);
        assert!(disabler.current.note_gone(&own));
        assert!(!disabler.current.note_gone(&own));
        let invocation = world.invocation(Vec::new());
        disabler.disable_subscription(&invocation, &own).await;
        assert!(disabler.current.note_gone(&own));
    }

    #[tokio::test]
    async fn disabling_writes_nothing_after_the_time_of_attempts() {
        let world = World::new();
        let own = world.subscribe(json!({})).await;
        let invocation = world.invocation(Vec::new());
        world.clock.advance(crate::testing::INVOCATION);
        let disabler = disabler(&world, DisablingMode::AtOnce);
        disabler.disable_subscription(&invocation, &own).await;
        assert_eq!(world.calls.all().len(), 0);
    }
}
