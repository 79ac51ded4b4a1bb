//! The counts of one process: messages received and settled, and how long they had waited, in all
//! and by subscription; and which subscriptions' deliveries wait for a place of their own.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{Delivery, SubscriptionName, TopicName, group};
use posthaste_core::pressure::{
    DrainCount, DrainLook, Drained, OwnWait, REPORTED_TOPICS_MAX, REPORTED_WAIT_MIN, ReportedTopic,
    SubscriptionDrain,
};
use posthaste_ports::{DrainSource, PortError};

/// Counts what deliver receives and settles. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct DrainMeter(Arc<Mutex<Counts>>);

/// The counts since the last reading.
#[derive(Debug, Default)]
struct Counts {
    all: Counted,
    /// By the topic's name in lower case.
    topics: HashMap<Arc<str>, OfTopic>,
    /// Requests that wait for a place which all subscriptions share.
    waiting_for_shared: usize,
    shared_places_ran_out: bool,
}

/// A reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Taken {
    pub(super) all: Counted,
    pub(super) subscriptions: Vec<SubscriptionDrain>,
    /// The slowest topics, each with its middle subscription by the oldest wait.
    pub(super) topics: Vec<ReportedTopic>,
    pub(super) shared_places_ran_out: bool,
}

/// The counts of all subscriptions since the last reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// The messages that were settled.
    pub(super) messages: u64,
    /// The longest time that a message had been due before it was received.
    pub(super) waited_max: Duration,
    /// The time at which the first message was received, by the clock's `monotonic`.
    pub(super) began_at: Option<Duration>,
}

/// The counts of one topic.
#[derive(Debug, Default)]
struct OfTopic {
    /// The number of subscriptions that it has.
    subscriptions: usize,
    /// By the subscription's name in lower case.
    counted: HashMap<Arc<str>, OfSubscription>,
}

/// The counts of one subscription.
#[derive(Debug)]
struct OfSubscription {
    group: Arc<str>,
    count: DrainCount,
    /// Its deliveries that wait for a place of its own.
    waiting: usize,
    /// Whether there was a time since the last reading in which none did.
    was_free: bool,
    /// Whether one was turned back since, for the subscription's rate, a ramp or a pause, or because
    /// it got no place in time.
    was_turned_back: bool,
}

/// A delivery that waits for a place of its subscription's own, or for one that all share. Dropping
/// it ends the wait.
#[derive(Debug)]
pub struct PlaceWait<'a> {
    meter: &'a DrainMeter,
    /// The subscription; `None` for a shared place.
    of: Option<(&'a TopicName, &'a SubscriptionName)>,
    has_place: bool,
}

impl DrainMeter {
    /// Notes a message that was received at `at`, a time of the clock's `monotonic`, after it had
    /// been due for `waited`: the attempt that follows does not count.
    pub fn received(&self, waited: Duration, at: Duration) {
        self.0.lock().all.receive(waited, at);
    }

    /// Notes messages that were settled.
    pub fn settled(&self, messages: u64) {
        self.0.lock().all.messages += messages;
    }

    /// Notes a delivery that was received, as [`received`](Self::received) does.
    pub fn received_of(&self, delivery: &Delivery, waited: Duration, at: Duration) {
        let mut counts = self.0.lock();
        counts.all.receive(waited, at);
        counts.change(&delivery.topic, &delivery.subscription, |of| {
            of.count.received += 1;
            of.count.waited_max = of.count.waited_max.max(waited);
        });
    }

    /// Notes a delivery that was settled.
    pub fn settled_of(&self, delivery: &Delivery) {
        let mut counts = self.0.lock();
        counts.all.messages += 1;
        counts.change(&delivery.topic, &delivery.subscription, |of| {
            of.count.settled += 1;
        });
    }

    /// Notes a delivery that waits for a place of its subscription's own, until the answer is
    /// dropped.
    pub fn wait_for_own_place<'a>(
        &'a self,
        topic: &'a TopicName,
        subscription: &'a SubscriptionName,
    ) -> PlaceWait<'a> {
        let mut counts = self.0.lock();
        counts.change(topic, subscription, |of| of.waiting += 1);
        drop(counts);
        PlaceWait {
            meter: self,
            of: Some((topic, subscription)),
            has_place: false,
        }
    }

    /// Notes a request that waits for a place which all subscriptions share, until the answer is
    /// dropped.
    pub fn wait_for_shared_place(&self) -> PlaceWait<'_> {
        let mut counts = self.0.lock();
        counts.waiting_for_shared += 1;
        counts.shared_places_ran_out = true;
        PlaceWait {
            meter: self,
            of: None,
            has_place: false,
        }
    }

    /// Notes a delivery that goes back to the queue for its subscription's rate, a ramp or a pause.
    pub fn turned_back(&self, topic: &TopicName, subscription: &SubscriptionName) {
        let mut counts = self.0.lock();
        counts.change(topic, subscription, |of| of.was_turned_back = true);
    }

    /// Notes how many subscriptions a topic has, of which something was received.
    pub fn topic_has(&self, topic: &TopicName, subscriptions: usize) {
        let mut counts = self.0.lock();
        if let Some(of_topic) = counts.topics.get_mut(&*topic.folded_text()) {
            of_topic.subscriptions = subscriptions;
        }
    }

    /// The longest wait noted since the last reading.
    pub(super) fn waited_max(&self) -> Duration {
        self.0.lock().all.waited_max
    }

    /// Reads the counts, and begins again from zero.
    pub(super) fn take(&self) -> Taken {
        let mut counts = self.0.lock();
        let (subscriptions, topics) = counts.take_subscriptions();
        let is_short = counts.waiting_for_shared > 0;
        Taken {
            all: mem::take(&mut counts.all),
            subscriptions,
            topics,
            shared_places_ran_out: mem::replace(&mut counts.shared_places_ran_out, is_short),
        }
    }
}

impl PlaceWait<'_> {
    /// Ends the wait with a place.
    pub fn end(mut self) {
        self.has_place = true;
    }
}

impl Drop for PlaceWait<'_> {
    fn drop(&mut self) {
        let mut counts = self.meter.0.lock();
        let Some((topic, subscription)) = self.of else {
            counts.waiting_for_shared -= 1;
            return;
        };
        counts.change(topic, subscription, |of| {
            of.waiting -= 1;
            of.was_free |= of.waiting == 0;
            of.was_turned_back |= !self.has_place;
        });
    }
}

impl Counted {
    fn receive(&mut self, waited: Duration, at: Duration) {
        self.waited_max = self.waited_max.max(waited);
        self.began_at = Some(self.began_at.map_or(at, |began_at| began_at.min(at)));
    }
}

impl Counts {
    /// Changes the counts of a subscription. Nothing is copied for one that is known.
    fn change(
        &mut self,
        topic: &TopicName,
        subscription: &SubscriptionName,
        change: impl FnOnce(&mut OfSubscription),
    ) {
        let (topic_text, name) = (topic.folded_text(), subscription.folded_text());
        let known = self.topics.get_mut(&*topic_text);
        if let Some(of) = known.and_then(|of_topic| of_topic.counted.get_mut(&*name)) {
            return change(of);
        }
        let mut of = OfSubscription::new(&group(topic, subscription));
        change(&mut of);
        let of_topic = self.topics.entry(Arc::from(&*topic_text)).or_default();
        of_topic.counted.insert(Arc::from(&*name), of);
    }

    /// The drain of each subscription, and the slowest topics. Those of which nothing is under way
    /// are forgotten.
    fn take_subscriptions(&mut self) -> (Vec<SubscriptionDrain>, Vec<ReportedTopic>) {
        let (mut drains, mut topics) = (Vec::new(), Vec::new());
        self.topics.retain(|_, of_topic| {
            let mut of_this = Vec::new();
            of_topic.counted.retain(|_, of| {
                let (drain, is_idle) = of.take();
                of_this.extend((!is_idle).then_some(drain));
                !is_idle
            });
            topics.extend(middle(&mut of_this, of_topic.subscriptions));
            drains.append(&mut of_this);
            !of_topic.counted.is_empty()
        });
        topics.sort_by_key(|topic| Reverse(topic.count.waited_max));
        topics.truncate(REPORTED_TOPICS_MAX);
        (drains, topics)
    }
}

/// The middle subscription of a topic by the oldest wait, of an even number the lower; `None` if
/// its messages hardly wait. Those of which nothing was received have waited for nothing.
fn middle(drains: &mut [SubscriptionDrain], subscriptions: usize) -> Option<ReportedTopic> {
    drains.sort_by_key(|drain| Reverse(drain.count.waited_max));
    let middle = drains.get(subscriptions.max(drains.len()) / 2)?;
    (middle.count.waited_max >= REPORTED_WAIT_MIN).then(|| ReportedTopic {
        group: Arc::clone(&middle.group),
        count: middle.count,
    })
}

impl OfSubscription {
    fn new(group: &str) -> Self {
        Self {
            group: group.into(),
            count: DrainCount::default(),
            waiting: 0,
            was_free: true,
            was_turned_back: false,
        }
    }

    /// The counts since the last reading, and whether there was nothing to count.
    fn take(&mut self) -> (SubscriptionDrain, bool) {
        let count = mem::take(&mut self.count);
        let was_free = mem::replace(&mut self.was_free, self.waiting == 0);
        let was_turned_back = mem::take(&mut self.was_turned_back);
        let own_wait = match self.waiting {
            _ if was_turned_back => OwnWait::Throughout,
            0 => OwnWait::None,
            _ if was_free => OwnWait::Now,
            _ => OwnWait::Throughout,
        };
        let is_idle = count == DrainCount::default() && own_wait == OwnWait::None;
        let drain = SubscriptionDrain {
            group: Arc::clone(&self.group),
            count,
            own_wait,
        };
        (drain, is_idle)
    }
}

/// In one process the meter has all counts, and always answers.
impl DrainSource for DrainMeter {
    async fn drained(&self, _: u64, elapsed: Duration) -> Result<Option<DrainLook>, PortError> {
        let taken = self.take();
        Ok(Some(DrainLook {
            all: Drained {
                messages: taken.all.messages,
                over: elapsed,
                waited_max: taken.all.waited_max,
            },
            subscriptions: taken.subscriptions,
            shared_places_ran_out: taken.shared_places_ran_out,
            reported: None,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> (TopicName, SubscriptionName) {
        (
            TopicName::parse("Orders").unwrap(),
            SubscriptionName::parse("billing").unwrap(),
        )
    }

    /// The wait of each subscription since the last reading.
    fn own_waits(meter: &DrainMeter) -> Vec<(String, OwnWait)> {
        let wait = |of: SubscriptionDrain| (of.group.to_string(), of.own_wait);
        meter.take().subscriptions.into_iter().map(wait).collect()
    }

    #[test]
    fn a_reading_begins_the_count_anew() {
        let meter = DrainMeter::default();
        for (waited_ms, at_ms) in [(5, 20), (3, 10), (4, 30)] {
            meter.clone().received(
                Duration::from_millis(waited_ms),
                Duration::from_millis(at_ms),
            );
            meter.settled(1);
        }
        let [waited_max, began_at] = [5, 10].map(Duration::from_millis);
        assert_eq!(meter.waited_max(), waited_max);
        let counted = Counted {
            messages: 3,
            waited_max,
            began_at: Some(began_at),
        };
        assert_eq!(
            [meter.take().all, meter.take().all],
            [counted, Counted::default()]
        );
    }

    #[test]
    fn deliveries_wait_throughout_if_some_waited_at_all_times() {
        let meter = DrainMeter::default();
        let (topic, name) = names();
        let seen = |wait| vec![("orders.billing".to_owned(), wait)];
        assert_eq!(own_waits(&meter), []);
        let first = meter.wait_for_own_place(&topic, &name);
        assert_eq!(own_waits(&meter), seen(OwnWait::Now));
        let second = meter.wait_for_own_place(&topic, &name);
        first.end();
        assert_eq!(own_waits(&meter), seen(OwnWait::Throughout));
        second.end();
        let third = meter.wait_for_own_place(&topic, &name);
        assert_eq!(own_waits(&meter), seen(OwnWait::Now));
        third.end();
        assert_eq!([own_waits(&meter), own_waits(&meter)], [vec![], vec![]]);
    }

    #[test]
    fn delivery_that_was_turned_back_waited_for_itself() {
        let meter = DrainMeter::default();
        let (topic, name) = names();
        let throughout = vec![("orders.billing".to_owned(), OwnWait::Throughout)];
        meter.turned_back(&topic, &name);
        assert_eq!(own_waits(&meter), throughout);
        drop(meter.wait_for_own_place(&topic, &name));
        assert_eq!(own_waits(&meter), throughout);
        assert_eq!(own_waits(&meter), []);
    }

    #[test]
    fn shared_places_have_run_out_as_long_as_a_request_waits_for_one() {
        let meter = DrainMeter::default();
        let ran_out = |meter: &DrainMeter| meter.take().shared_places_ran_out;
        assert!(!ran_out(&meter));
        let waits = meter.wait_for_shared_place();
        assert_eq!([ran_out(&meter), ran_out(&meter)], [true; 2]);
        waits.end();
        assert_eq!([ran_out(&meter), ran_out(&meter)], [true, false]);
    }

    /// Subscriptions that received messages which had waited for so many seconds, of a topic with
    /// so many.
    fn reported(subscriptions: usize, waited_secs: &[u64]) -> Vec<(String, u64)> {
        let counts: Vec<_> = waited_secs.iter().enumerate().collect();
        let mut drains: Vec<_> = counts
            .into_iter()
            .map(|(index, secs)| SubscriptionDrain {
                group: format!("orders.s{index}").into(),
                count: DrainCount {
                    received: 1,
                    settled: 1,
                    waited_max: Duration::from_secs(*secs),
                },
                own_wait: OwnWait::None,
            })
            .collect();
        let topic = middle(&mut drains, subscriptions).into_iter();
        topic
            .map(|topic| (topic.group.to_string(), topic.count.waited_max.as_secs()))
            .collect()
    }

    #[test]
    fn topic_is_reported_by_its_middle_subscription() {
        let is = |name: &str, secs| vec![(name.to_owned(), secs)];
        assert_eq!(reported(1, &[60]), is("orders.s0", 60));
        assert_eq!(reported(1, &[4]), []);
        assert_eq!(reported(2, &[60]), []);
        assert_eq!(reported(3, &[60, 90]), is("orders.s0", 60));
        assert_eq!(reported(100, &[60, 90]), []);
    }
}
