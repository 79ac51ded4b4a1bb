//! The adapters and services that wake runs on.

use std::time::Duration;

use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{
    ErrorKind, ListPage, ObjectStore, OutgoingMessage, PortError, Ports, QueueReceiver,
};
use posthaste_services::{
    ActivityNotes, FanOut, LinkHealth, Notifier, PressureReader, SlowGroups, SlowLane,
    TopicRegistry, send_all, send_by_lane, timeout_at,
};

/// The adapters and services of one wake.
pub struct WakePorts<P: Ports> {
    /// The delivery queue.
    pub deliveries: P::Queue,
    /// The slow lane, where there is one.
    pub slow_lane: Option<SlowLane<P::Queue, P::Store, P::Clock>>,
    /// The state bucket.
    pub state: P::Store,
    /// The dead-letter bucket, for replays.
    pub dead_letters: P::DeadLetters,
    /// The delivery log, for replays.
    pub log: DeliveryLog<P::Log>,
    /// The longest time from an attempt until the log has its record.
    pub log_delay: Duration,
    /// Topics and subscriptions.
    pub registry: TopicRegistry<P::Store, P::Clock>,
    /// The pressure, as the monitor wrote it.
    pub pressure: PressureReader<P::Store, P::Clock>,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<P::Store, P::Clock>,
    /// The last use of subscriptions.
    pub activity: ActivityNotes,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
}

/// The notifier on these ports.
type PortsNotifier<'a, P> = Notifier<
    'a,
    <P as Ports>::Queue,
    <P as Ports>::Store,
    <P as Ports>::Clock,
    <P as Ports>::Entropy,
>;

impl<P: Ports> WakePorts<P> {
    pub(crate) fn notifier(&self) -> PortsNotifier<'_, P> {
        let Self {
            deliveries,
            state: payloads,
            registry,
            clock,
            entropy,
            ..
        } = self;
        Notifier {
            registry,
            fan_out: FanOut {
                deliveries,
                slow: None,
                payloads,
                clock,
                entropy,
            },
        }
    }

    /// Sends messages, each by the lane of its subscription.
    pub(crate) async fn send_messages(
        &self,
        messages: Vec<OutgoingMessage>,
    ) -> Vec<Result<(), PortError>> {
        let Some(lane) = &self.slow_lane else {
            return send_all(&self.deliveries, messages).await;
        };
        let groups = messages.iter().filter_map(|message| message.group.clone());
        let slow = Box::pin(lane.slow_among(&self.registry, groups.collect())).await;
        send_by_lane(&self.deliveries, Some((&lane.queue, &slow)), messages).await
    }

    /// The number of deliveries that are due of the subscriptions of these folders, in their order.
    /// If the queue cannot tell, it is what the state says of their topics, and their share of what
    /// is due in the slow lane.
    pub(crate) async fn count_due(&self, folders: &[String]) -> Vec<u64> {
        if let Some(counted) = self.deliveries.due_counts(folders).await.ok().flatten() {
            return counted;
        }
        let Some(state) = self.pressure.state().await else {
            return vec![0; folders.len()];
        };
        let slow_due = state.due_of_slow();
        let slow = match self.slow_lane.as_ref().filter(|_| slow_due > 0) {
            Some(lane) => {
                let groups = folders.iter().cloned().collect();
                Box::pin(lane.slow_among(&self.registry, groups)).await
            }
            None => SlowGroups::new(),
        };
        let due = folders.iter().map(|folder| {
            let of_lane = if slow.contains(folder) { slow_due } else { 0 };
            state.due_of(folder) + of_lane
        });
        due.collect()
    }

    /// A page of the objects under `prefix`, or an error if it has not come by `until`: nothing
    /// could be done with it then.
    pub(crate) async fn list_until(
        &self,
        until: Duration,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<ListPage, PortError> {
        let list = Box::pin(self.state.list(prefix, after, LIST_PAGE_MAX));
        match timeout_at(&self.clock, until, list).await {
            Some(page) => page,
            None => Err(PortError::new(
                "list objects before the run's end",
                ErrorKind::TimedOut,
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use posthaste_core::circuit::DeliveryTarget;
    use posthaste_core::lane::{LaneObservation, SLOW_FOR, SlowTargets};
    use posthaste_core::pressure::{PressureState, SlowLaneState};
    use posthaste_core::stored::{PRESSURE_KEY, layout};
    use posthaste_ports::{Clock, QueueName};
    use posthaste_services::SlowTargetCache;
    use posthaste_testkit::memory::MemoryQueue;
    use posthaste_testkit::{CallFault, FaultPlan, Faulty};
    use serde_json::json;

    use super::*;
    use crate::testing::{Kit, subscription};

    /// A kit with a slow lane whose queue fails by this plan, in which `orders.billing` is slow, and
    /// the queue.
    fn kit(plan: &FaultPlan) -> (Kit, MemoryQueue) {
        let mut kit = Kit::new();
        let other = json!({ "endpoint": { "url": "https://b.example/" } });
        kit.topic(json!({ "subscriptions": {
            "billing": subscription(json!({})), "crm": other,
        } }));
        let target = DeliveryTarget::parse("https://a.example:443 orders.billing").unwrap();
        let late = LaneObservation::Late {
            in_invocation: 2,
            holds_others_up: true,
        };
        let targets = SlowTargets::default().after_observation(late, &target, kit.clock.now());
        kit.store.write(layout::LANES, targets.unwrap().render());
        let slow = kit.queue.sibling_queue(QueueName::SlowDeliveries);
        let store = Faulty::new(kit.store.clone(), "lanes", &FaultPlan::none());
        kit.ports.slow_lane = Some(SlowLane {
            queue: Faulty::new(slow.clone(), "slow", plan),
            lanes: SlowTargetCache::new(Arc::new(store), kit.clock.clone()),
        });
        (kit, slow)
    }

    fn messages() -> Vec<OutgoingMessage> {
        let message = |group: &str| OutgoingMessage {
            body: Bytes::from_static(b"{}"),
            group: Some(group.to_owned()),
            delay: Duration::ZERO,
        };
        ["orders.billing", "orders.crm"].map(message).into()
    }

    #[tokio::test]
    async fn released_deliveries_take_the_lane_of_their_subscription() {
        let (kit, slow) = kit(&FaultPlan::none());
        let sent = kit.ports.send_messages(messages()).await;
        assert!(sent.iter().all(Result::is_ok));
        assert_eq!(
            (kit.queue.take_bodies().len(), slow.take_bodies().len()),
            (1, 1)
        );
        kit.clock.advance(SLOW_FOR);
        kit.ports.send_messages(messages()).await;
        assert_eq!(
            (kit.queue.take_bodies().len(), slow.take_bodies().len()),
            (2, 0)
        );
    }

    #[tokio::test]
    async fn due_count_of_a_slow_subscription_is_its_share_of_the_lane() {
        let (mut kit, _) = kit(&FaultPlan::none());
        let queue = Faulty::new(MemoryQueue::like_sqs(), "deliveries", &FaultPlan::none());
        kit.ports.deliveries = queue;
        let folders = ["orders.billing", "orders.crm"].map(str::to_owned);
        let state = PressureState {
            slow_lane: Some(SlowLaneState {
                targets: 2,
                due: 600,
                delayed: 0,
                in_flight: 0,
                places: 10,
            }),
            ..PressureState::normal(kit.clock.now())
        };
        kit.store.write(PRESSURE_KEY, state.render());
        assert_eq!(kit.ports.count_due(&folders).await, [300, 0]);
        kit.clock.advance(SLOW_FOR);
        assert_eq!(kit.ports.count_due(&folders).await, [0, 0]);
    }

    #[tokio::test]
    async fn message_that_the_slow_queue_does_not_take_has_failed_alone() {
        for fault in [
            CallFault::Before(ErrorKind::Other),
            CallFault::After(ErrorKind::Other),
        ] {
            let (kit, _) = kit(&FaultPlan::nth(0, fault));
            let sent = kit.ports.send_messages(messages()).await;
            let is_sent: Vec<_> = sent.iter().map(Result::is_ok).collect();
            assert_eq!(is_sent, [false, true]);
        }
    }
}
