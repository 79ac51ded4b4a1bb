//! The adapters and services that wake runs on.

use std::time::Duration;

use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{ErrorKind, ListPage, ObjectStore, OutgoingMessage, PortError, Ports};
use posthaste_services::{
    Activity, FanOut, LinkHealth, Notifier, PressureReader, Registry, SlowLane, send_all,
    send_by_lane, timeout_at,
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
    pub registry: Registry<P::Store, P::Clock>,
    /// The pressure, as the monitor wrote it.
    pub pressure: PressureReader<P::Store, P::Clock>,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<P::Store, P::Clock>,
    /// The last use of subscriptions.
    pub activity: Activity,
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
    pub(crate) async fn send(&self, messages: Vec<OutgoingMessage>) -> Vec<Result<(), PortError>> {
        let Some(lane) = &self.slow_lane else {
            return send_all(&self.deliveries, messages).await;
        };
        let groups = messages.iter().filter_map(|message| message.group.clone());
        let slow = Box::pin(lane.among(&self.registry, groups.collect())).await;
        send_by_lane(&self.deliveries, Some((&lane.queue, &slow)), messages).await
    }

    /// A page of the objects under `prefix`, or an error if it has not come by `until`: nothing
    /// could be done with it then.
    pub(crate) async fn list_until(
        &self,
        until: Duration,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<ListPage, PortError> {
        let late = || {
            Err(PortError::new(
                "list objects before the run's end",
                ErrorKind::TimedOut,
            ))
        };
        let list = Box::pin(self.state.list(prefix, after, LIST_PAGE_MAX));
        timeout_at(&self.clock, until, list)
            .await
            .unwrap_or_else(late)
    }
}
