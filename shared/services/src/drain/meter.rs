//! The counts of one process: messages received and settled, and how long they had waited, in all
//! and by subscription; and which subscriptions' deliveries wait for a place of their own.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::{Delivery, SubscriptionName, TopicName, message_group_id};
use posthaste_core::pressure::{
    DrainCount, DrainLook, DrainedMessages, OwnWait, REPORTED_TOPICS_MAX, REPORTED_WAIT_MIN,
    ReportedTopic, SubscriptionDrain,
};
use posthaste_ports::{DrainSource, LookTime, PortError};

/// The time after its reception in which a delivery comes to wait for its place: it is looked up
/// and planned. This time does not count as one in which no delivery waited.
const UNTIL_IT_WAITS: Duration = Duration::from_millis(500);

/// Counts what deliver receives and settles. Clones share the counts.
#[derive(Debug, Clone, Default)]
pub struct DrainMeter(Arc<Mutex<MeterCounts>>);

/// The counts since the last reading.
#[derive(Debug, Default)]
struct MeterCounts {
    all: MessageTotals,
    /// By the topic's name in lower case.
    topics: HashMap<Arc<str>, TopicCounts>,
    /// Requests that wait for a place which all subscriptions share.
    waiting_for_shared: usize,
    shared_places_ran_out: bool,
}

/// A reading.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MeterReading {
    pub(super) all: MessageTotals,
    pub(super) subscriptions: Vec<SubscriptionDrain>,
    /// The slowest topics, each with its middle subscription by the oldest wait.
    pub(super) topics: Vec<ReportedTopic>,
    pub(super) shared_places_ran_out: bool,
}

/// The counts of all subscriptions since the last reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct MessageTotals {
    /// The messages that were settled.
    pub(super) messages: u64,
    /// The longest time that a message had been due before it was received.
    pub(super) waited_max: Duration,
    /// The time at which the first message was received, by the clock's `monotonic`.
    pub(super) began_at: Option<Duration>,
}

/// The counts of one topic.
#[derive(Debug, Default)]
struct TopicCounts {
    /// The number of subscriptions that take deliveries; `None` if that was not noted since the
    /// last reading.
    subscriptions: Option<usize>,
    /// By the subscription's name in lower case.
    counted: HashMap<Arc<str>, SubscriptionCounts>,
}

/// The counts of one subscription.
#[derive(Debug)]
struct SubscriptionCounts {
    group: Arc<str>,
    count: DrainCount,
    /// Deliveries that wait here for a place of their subscription's own.
    waiting: usize,
    /// The time, by the clock's `monotonic`, until which a delivery that was turned back waits in
    /// the queue.
    waits_until: Duration,
    /// The time until which a delivery that was received may come to wait.
    comes_until: Duration,
    /// Whether a delivery got no place in time, and has waited in the queue since.
    has_returned: bool,
    /// Whether there was a time since the last reading in which no delivery waited.
    was_free: bool,
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
    pub fn note_received(&self, waited: Duration, at: Duration) {
        self.0.lock().all.count_received(waited, at);
    }

    /// Notes messages that were settled.
    pub fn note_settled(&self, messages: u64) {
        self.0.lock().all.messages += messages;
    }

    /// Notes a delivery that was received, as [`note_received`](Self::note_received) does.
    pub fn note_delivery_received(&self, delivery: &Delivery, waited: Duration, at: Duration) {
        let mut counts = self.0.lock();
        counts.all.count_received(waited, at);
        counts.change_subscription(&delivery.topic, &delivery.subscription, |of| {
            of.count_received(waited, at);
        });
    }

    /// Notes a delivery that was settled.
    pub fn note_delivery_settled(&self, delivery: &Delivery) {
        let mut counts = self.0.lock();
        counts.all.messages += 1;
        counts.change_subscription(&delivery.topic, &delivery.subscription, |of| {
            of.count.settled += 1;
        });
    }

    /// Notes a delivery that waits for a place of its subscription's own from `now`, a time of the
    /// clock's `monotonic`, until the returned value is dropped.
    pub fn wait_for_own_place<'a>(
        &'a self,
        topic: &'a TopicName,
        subscription: &'a SubscriptionName,
        now: Duration,
    ) -> PlaceWait<'a> {
        let mut counts = self.0.lock();
        counts.change_subscription(topic, subscription, |of| {
            of.note_gap(now);
            of.waiting += 1;
        });
        drop(counts);
        PlaceWait {
            meter: self,
            of: Some((topic, subscription)),
            has_place: false,
        }
    }

    /// Notes a request that waits for a place which all subscriptions share, because all of them
    /// are taken, until the returned value is dropped.
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

    /// Notes a delivery that goes back to the queue at `now`, a time of the clock's `monotonic`,
    /// for its subscription's rate, a ramp or a pause. It waits there for so long.
    pub fn note_turned_back(
        &self,
        topic: &TopicName,
        subscription: &SubscriptionName,
        now: Duration,
        wait: Duration,
    ) {
        let mut counts = self.0.lock();
        counts.change_subscription(topic, subscription, |of| {
            of.note_gap(now);
            of.waits_until = of.waits_until.max(now.saturating_add(wait));
        });
    }

    /// Notes how many subscriptions of a topic take deliveries, of which something was received. It
    /// is counted once for each reading.
    pub fn note_subscriptions(&self, topic: &TopicName, subscriptions: impl FnOnce() -> usize) {
        let mut counts = self.0.lock();
        if let Some(of_topic) = counts.topics.get_mut(&*topic.folded_text()) {
            of_topic.subscriptions.get_or_insert_with(subscriptions);
        }
    }

    /// The longest wait noted since the last reading.
    pub(super) fn waited_max(&self) -> Duration {
        self.0.lock().all.waited_max
    }

    /// Reads the counts at `now`, a time of the clock's `monotonic`, and begins again from zero.
    pub(super) fn take_reading(&self, now: Duration) -> MeterReading {
        let mut counts = self.0.lock();
        let (subscriptions, topics) = counts.take_subscriptions(now);
        let is_short = counts.waiting_for_shared > 0;
        MeterReading {
            all: mem::take(&mut counts.all),
            subscriptions,
            topics,
            shared_places_ran_out: mem::replace(&mut counts.shared_places_ran_out, is_short),
        }
    }
}

impl PlaceWait<'_> {
    /// Ends the wait with a place.
    pub fn end_with_place(mut self) {
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
        counts.change_subscription(topic, subscription, |of| {
            of.waiting -= 1;
            of.has_returned |= !self.has_place;
        });
    }
}

impl MessageTotals {
    fn count_received(&mut self, waited: Duration, at: Duration) {
        self.waited_max = self.waited_max.max(waited);
        self.began_at = Some(self.began_at.map_or(at, |began_at| began_at.min(at)));
    }
}

impl MeterCounts {
    /// Changes the counts of a subscription. Nothing is copied for one that is known.
    fn change_subscription(
        &mut self,
        topic: &TopicName,
        subscription: &SubscriptionName,
        change: impl FnOnce(&mut SubscriptionCounts),
    ) {
        let topic_text = topic.folded_text();
        let name = subscription.folded_text();
        let known = self.topics.get_mut(&*topic_text);
        if let Some(of) = known.and_then(|of_topic| of_topic.counted.get_mut(&*name)) {
            return change(of);
        }
        let mut of = SubscriptionCounts::new(&message_group_id(topic, subscription));
        change(&mut of);
        let of_topic = self.topics.entry(Arc::from(&*topic_text)).or_default();
        of_topic.counted.insert(Arc::from(&*name), of);
    }

    /// The drain of each subscription, and the slowest topics. Those of which nothing is under way
    /// are forgotten.
    fn take_subscriptions(
        &mut self,
        now: Duration,
    ) -> (Vec<SubscriptionDrain>, Vec<ReportedTopic>) {
        let mut drains = Vec::new();
        let mut topics = Vec::new();
        self.topics.retain(|_, of_topic| {
            let mut of_this = Vec::new();
            of_topic.counted.retain(|_, of| {
                let (drain, is_idle) = of.take_counts(now);
                of_this.extend((!is_idle).then_some(drain));
                !is_idle
            });
            let subscriptions = of_topic.subscriptions.take();
            topics.extend(middle_subscription(
                &mut of_this,
                subscriptions.unwrap_or_default(),
            ));
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
fn middle_subscription(
    drains: &mut [SubscriptionDrain],
    subscriptions: usize,
) -> Option<ReportedTopic> {
    drains.sort_by_key(|drain| Reverse(drain.count.waited_max));
    let middle = drains.get(subscriptions.max(drains.len()) / 2)?;
    (middle.count.waited_max >= REPORTED_WAIT_MIN).then(|| ReportedTopic {
        group: Arc::clone(&middle.group),
        count: middle.count,
    })
}

impl SubscriptionCounts {
    fn new(group: &str) -> Self {
        Self {
            group: group.into(),
            count: DrainCount::default(),
            waiting: 0,
            waits_until: Duration::ZERO,
            comes_until: Duration::ZERO,
            has_returned: false,
            was_free: true,
        }
    }

    /// Whether a delivery waits for a place of its own, here or in the queue.
    fn is_waiting(&self, now: Duration) -> bool {
        self.waiting > 0 || self.has_returned || now < self.waits_until
    }

    /// Notes that a delivery begins to wait now: if none waited, there was a time in which none
    /// did.
    fn note_gap(&mut self, now: Duration) {
        self.was_free |= !self.is_waiting(now) && now >= self.comes_until;
    }

    /// Counts a delivery that was received. Before the first one since the last reading there was
    /// nothing that could wait.
    fn count_received(&mut self, waited: Duration, at: Duration) {
        let is_first = self.count.received == 0;
        self.count.received += 1;
        self.count.waited_max = self.count.waited_max.max(waited);
        if is_first && !self.is_waiting(at) {
            self.was_free = false;
            self.comes_until = at + UNTIL_IT_WAITS;
        }
        if mem::take(&mut self.has_returned) {
            self.comes_until = at + UNTIL_IT_WAITS;
        }
    }

    /// The counts since the last reading, and whether there was nothing to count.
    fn take_counts(&mut self, now: Duration) -> (SubscriptionDrain, bool) {
        let count = mem::take(&mut self.count);
        let waits = self.is_waiting(now);
        let own_wait = match mem::replace(&mut self.was_free, !waits) {
            _ if !waits => OwnWait::None,
            true => OwnWait::Now,
            false => OwnWait::Throughout,
        };
        // A delivery that waits in the queue is received soon, or its subscription takes nothing
        // any more.
        if mem::take(&mut self.has_returned) {
            self.comes_until = now + UNTIL_IT_WAITS;
        }
        let is_idle = count == DrainCount::default() && own_wait == OwnWait::None;
        let drain = SubscriptionDrain {
            group: Arc::clone(&self.group),
            count,
            own_wait,
        };
        (drain, is_idle)
    }
}

/// In one process the meter has all counts, and always returns them.
impl DrainSource for DrainMeter {
    async fn measure_drain(&self, _: u64, time: LookTime) -> Result<Option<DrainLook>, PortError> {
        let taken = self.take_reading(time.now);
        Ok(Some(DrainLook {
            all: DrainedMessages {
                messages: taken.all.messages,
                over: time.elapsed,
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
    use bytes::Bytes;
    use posthaste_core::model::{EventPayload, Timestamp};

    use super::*;

    fn delivery() -> Delivery {
        let payload = EventPayload::Inline(Bytes::from_static(b"{}"));
        posthaste_testkit::records::delivery(names(), "e", [payload], Timestamp::EPOCH)
    }

    fn names() -> (TopicName, SubscriptionName) {
        (
            TopicName::parse("Orders").unwrap(),
            SubscriptionName::parse("billing").unwrap(),
        )
    }

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// The wait of each subscription since the last reading, at this time in milliseconds.
    fn own_waits(meter: &DrainMeter, now_ms: u64) -> Vec<(String, OwnWait)> {
        let wait = |of: SubscriptionDrain| (of.group.to_string(), of.own_wait);
        let taken = meter.take_reading(ms(now_ms));
        taken.subscriptions.into_iter().map(wait).collect()
    }

    fn seen(wait: OwnWait) -> Vec<(String, OwnWait)> {
        vec![("orders.billing".to_owned(), wait)]
    }

    #[test]
    fn a_reading_begins_the_count_anew() {
        let meter = DrainMeter::default();
        for (waited_ms, at_ms) in [(5, 20), (3, 10), (4, 30)] {
            meter.clone().note_received(
                Duration::from_millis(waited_ms),
                Duration::from_millis(at_ms),
            );
            meter.note_settled(1);
        }
        let [waited_max, began_at] = [5, 10].map(Duration::from_millis);
        assert_eq!(meter.waited_max(), waited_max);
        let counted = MessageTotals {
            messages: 3,
            waited_max,
            began_at: Some(began_at),
        };
        assert_eq!(
            [
                meter.take_reading(ms(40)).all,
                meter.take_reading(ms(50)).all
            ],
            [counted, MessageTotals::default()]
        );
    }

    #[test]
    fn deliveries_wait_throughout_if_some_waited_at_all_times() {
        let meter = DrainMeter::default();
        let (topic, name) = names();
        assert_eq!(own_waits(&meter, 0), []);
        let first = meter.wait_for_own_place(&topic, &name, ms(1000));
        assert_eq!(own_waits(&meter, 2000), seen(OwnWait::Now));
        let second = meter.wait_for_own_place(&topic, &name, ms(3000));
        first.end_with_place();
        assert_eq!(own_waits(&meter, 4000), seen(OwnWait::Throughout));
        second.end_with_place();
        let third = meter.wait_for_own_place(&topic, &name, ms(5000));
        assert_eq!(own_waits(&meter, 6000), seen(OwnWait::Now));
        third.end_with_place();
        assert_eq!(own_waits(&meter, 8000), []);
    }

    #[test]
    fn delivery_that_was_turned_back_waits_until_its_time() {
        let meter = DrainMeter::default();
        let (topic, name) = names();
        meter.note_turned_back(&topic, &name, ms(1000), ms(500));
        assert_eq!(own_waits(&meter, 2000), []);
        meter.note_turned_back(&topic, &name, ms(3000), ms(5000));
        assert_eq!(own_waits(&meter, 4000), seen(OwnWait::Now));
        assert_eq!(own_waits(&meter, 6000), seen(OwnWait::Throughout));
        // Another one is turned back before its time has come, and the next one after it.
        meter.note_turned_back(&topic, &name, ms(7000), ms(4000));
        assert_eq!(own_waits(&meter, 10_000), seen(OwnWait::Throughout));
        meter.note_turned_back(&topic, &name, ms(11_500), ms(4000));
        assert_eq!(own_waits(&meter, 12_000), seen(OwnWait::Now));
    }

    #[test]
    fn delivery_that_got_no_place_waits_on_in_the_queue() {
        let meter = DrainMeter::default();
        let (topic, name) = names();
        let first = meter.wait_for_own_place(&topic, &name, ms(0));
        assert_eq!(own_waits(&meter, 2000), seen(OwnWait::Now));
        drop(first);
        assert_eq!(own_waits(&meter, 4000), seen(OwnWait::Throughout));
        let again = meter.wait_for_own_place(&topic, &name, ms(4100));
        assert_eq!(own_waits(&meter, 6000), seen(OwnWait::Throughout));
        drop(again);
        meter.note_delivery_received(&delivery(), ms(90_000), ms(6100));
        assert_eq!(own_waits(&meter, 8000), seen(OwnWait::None));
        assert_eq!(own_waits(&meter, 10_000), []);
    }

    /// On AWS a reading is of one invocation: before it there was nothing that could wait.
    #[test]
    fn wait_throughout_begins_with_the_first_delivery() {
        let check = |waits_ms: u64, expected| {
            let meter = DrainMeter::default();
            let (topic, name) = names();
            own_waits(&meter, 0);
            meter.note_delivery_received(&delivery(), ms(90_000), ms(60_000));
            meter.note_turned_back(&topic, &name, ms(60_000 + waits_ms), ms(30_000));
            assert_eq!(own_waits(&meter, 70_000), seen(expected), "{waits_ms}");
        };
        check(0, OwnWait::Throughout);
        check(499, OwnWait::Throughout);
        check(500, OwnWait::Now);
    }

    #[test]
    fn subscriptions_of_a_topic_are_counted_once_for_each_reading() {
        let meter = DrainMeter::default();
        let (topic, _) = names();
        let mut counted = 0;
        let mut has = |subscriptions| {
            meter.note_delivery_received(&delivery(), ms(60_000), ms(0));
            meter.note_subscriptions(&topic, || {
                counted += 1;
                subscriptions
            });
        };
        has(2);
        has(2);
        assert_eq!(meter.take_reading(ms(0)).topics, []);
        has(1);
        assert_eq!(meter.take_reading(ms(0)).topics.len(), 1);
        assert_eq!(counted, 2);
    }

    #[test]
    fn shared_places_have_run_out_while_a_request_waits() {
        let meter = DrainMeter::default();
        let ran_out = |meter: &DrainMeter| meter.take_reading(ms(0)).shared_places_ran_out;
        assert!(!ran_out(&meter));
        let waits = meter.wait_for_shared_place();
        assert_eq!([ran_out(&meter), ran_out(&meter)], [true; 2]);
        waits.end_with_place();
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
        let topic = middle_subscription(&mut drains, subscriptions).into_iter();
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
