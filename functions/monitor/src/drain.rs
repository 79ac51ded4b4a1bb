//! The rate at which the delivery queue drains: for the installation, and for each topic.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{
    DrainLook, DrainRate, DrainSplit, DueOfGroup, SlowSubscription, SlowTopic, SubscriptionDrains,
    TopicDrain,
};
use posthaste_ports::{
    Clock, DrainSource, LookTime, ObjectStore, PortError, QueueCounts, QueueReceiver,
};
use posthaste_services::TopicRegistry;

/// The drain as this monitor has seen it so far.
#[derive(Debug, Default)]
pub(crate) struct DrainWatch {
    installation: DrainRate,
    subscriptions: SubscriptionDrains,
    measured_at: Option<Duration>,
}

/// The drain at one poll.
#[derive(Debug)]
pub(crate) struct DrainReading {
    /// The messages that are due, and count for the installation; `None` if that cannot be known
    /// now.
    pub(crate) visible: Option<u64>,
    /// Seconds until these would be delivered; `None` if that cannot be known now.
    pub(crate) drain_secs: Option<u64>,
    /// The subscriptions that need time for what is due; `None` if that cannot be known now.
    pub(crate) slow: Option<Vec<SlowSubscription>>,
}

impl DrainWatch {
    /// Looks at the queue and at what deliver reports. Where the profile leaves no subscription
    /// out, everything counts for the installation.
    pub(crate) async fn measure_drain(
        &mut self,
        queue: &impl QueueReceiver,
        source: &impl DrainSource,
        clock: &impl Clock,
        counts: QueueCounts,
        leaves_out: bool,
    ) -> DrainReading {
        let now = clock.monotonic();
        let elapsed = self
            .measured_at
            .replace(now)
            .map_or(Duration::ZERO, |then| now.saturating_sub(then));
        let time = LookTime { now, elapsed };
        let look = match source.measure_drain(counts.visible, time).await {
            Ok(Some(look)) => look,
            Ok(None) => {
                self.installation = DrainRate::default();
                self.subscriptions = SubscriptionDrains::default();
                return DrainReading::without_report(counts);
            }
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "drain rate not read"
                );
                return DrainReading::unknown(counts, leaves_out);
            }
        };
        let groups = if leaves_out && look.reported.is_none() {
            match due_by_group(queue, counts).await {
                Ok(groups) => groups,
                Err(error) => {
                    tracing::warn!(
                        queue = "deliveries",
                        error = &error as &dyn std::error::Error,
                        "queue not counted"
                    );
                    return DrainReading::unknown(counts, leaves_out);
                }
            }
        } else {
            None
        };
        self.drain_reading(counts, groups, &look, leaves_out)
    }

    fn drain_reading(
        &mut self,
        counts: QueueCounts,
        groups: Option<Vec<DueOfGroup>>,
        look: &DrainLook,
        leaves_out: bool,
    ) -> DrainReading {
        let reported = look.reported.as_ref().filter(|_| leaves_out);
        let (split, over) = match (groups, reported) {
            (Some(groups), _) => {
                let split = self.subscriptions.add_look(counts.visible, groups, look);
                (split, look.all.over)
            }
            (None, Some(reported)) => {
                let split = self
                    .subscriptions
                    .update_reported(counts.visible, reported, look);
                (split, reported.shared.over)
            }
            (None, None) => (
                DrainSplit::of_whole_queue(counts.visible, look),
                look.all.over,
            ),
        };
        if let Some(before) = split.visible_before {
            self.installation.correct_visible(before);
        }
        let drain_secs =
            self.installation
                .add_poll(split.visible, split.settled, split.waited_max, over);
        DrainReading {
            visible: Some(split.visible),
            drain_secs: Some(drain_secs),
            slow: Some(split.slow),
        }
    }
}

impl DrainReading {
    /// The drain without a report of deliver. Then its messages hardly wait, so there is no
    /// backlog, of no subscription either. This holds only while deliver receives: how long
    /// messages wait otherwise is unknown.
    fn without_report(counts: QueueCounts) -> Self {
        let is_without_backlog = counts.visible == 0 || counts.in_flight > 0;
        Self {
            visible: Some(counts.visible),
            drain_secs: is_without_backlog.then_some(0),
            slow: is_without_backlog.then(Vec::new),
        }
    }

    /// The drain where it could not be read. Whose messages are due is not known either, so that
    /// their number says nothing where some of them are left out.
    fn unknown(counts: QueueCounts, leaves_out: bool) -> Self {
        Self {
            visible: (!leaves_out).then_some(counts.visible),
            drain_secs: None,
            slow: None,
        }
    }
}

/// The due messages by group. `None` if the queue cannot tell: then everything counts.
async fn due_by_group(
    queue: &impl QueueReceiver,
    counts: QueueCounts,
) -> Result<Option<Vec<DueOfGroup>>, PortError> {
    if counts.visible == 0 {
        return Ok(Some(Vec::new()));
    }
    queue.due_by_group().await
}

/// The drain times of the topics of slow subscriptions. Topics are looked up only where one of
/// their subscriptions needs `secs_min` or more. One that cannot be read is passed over.
pub(crate) async fn topic_drains<S: ObjectStore, C: Clock>(
    registry: &TopicRegistry<S, C>,
    slow: Vec<SlowSubscription>,
    secs_min: u64,
    bytes_max: Option<u64>,
    now: Timestamp,
) -> Vec<TopicDrain> {
    let mut drains = Vec::new();
    for slow in SlowTopic::group_by_topic(slow) {
        if slow.slowest_secs() < secs_min {
            break;
        }
        if let Some(middle) = slow.reported_middle() {
            drains.push(middle);
        } else if let Ok(Some(topic)) = registry.topic(&slow.topic).await {
            let taking = topic.taking_deliveries(now).map(|it| it.name.clone());
            let taking: Vec<_> = taking.collect();
            drains.extend(slow.topic_drain(&topic.name, &taking, bytes_max));
        }
    }
    drains
}
