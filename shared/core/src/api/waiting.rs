//! The events that wait for a subscription, and the end of its last attempt, as operators see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IsoTimestamp;
use crate::model::{CarriedEvents, Timestamp};

/// The events that wait for a subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WaitingView {
    /// The number of events that wait.
    #[schema(example = 12)]
    pub count: u64,
    /// Whether there may be more, because not all were counted. On AWS, where the records of the
    /// delivery log are counted, it is left out only while the delivery queue is empty, the log is on
    /// for the topic, and nothing is known to be uncounted since everything was last at rest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The events of these in the queue, those that are being sent among them. On AWS those that were
    /// tried or handed back before, as the delivery log says; left out where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 7)]
    pub queued: Option<u64>,
    /// The events of those in the queue that are due, and that nothing works on. Left out on AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 2)]
    pub due: Option<u64>,
    /// The events of those in the queue whose time is still to come. Left out on AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 4)]
    pub delayed: Option<u64>,
    /// The events of those in the queue that are under way: being sent, or waiting for a place on
    /// their link. Left out on AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 1)]
    pub under_way: Option<u64>,
    /// The events of these whose next attempt is more than 15 minutes ahead, or was.
    #[schema(example = 1)]
    pub parked: u64,
    /// The events of these that wait until the endpoint recovers, or an operator resumes the
    /// subscription.
    #[schema(example = 4)]
    pub held: u64,
    /// The time at which the oldest of them was accepted, to the second. On AWS it is that of the
    /// parked and held ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_accepted_at: Option<IsoTimestamp>,
    /// The time up to which the records of the delivery log are counted. Only on AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted_until: Option<IsoTimestamp>,
    /// The earliest time of the next attempt: that of a retry, or of the next probe where requests to
    /// the endpoint pause. Left out where nothing waits for a time, and while the subscription is not
    /// active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<IsoTimestamp>,
}

/// The end of a subscription's last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LastOutcomeView {
    /// The time of its end.
    pub at: IsoTimestamp,
    /// `Delivered`, the name of the failure, or the reason for which the event was given up.
    #[schema(example = "Busy")]
    pub outcome: String,
    /// The status of the answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 503)]
    pub status: Option<u16>,
}

/// A count of the events that wait, for a subscription or for several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WaitingCount {
    /// Events in the queue that are due and not being worked on.
    pub due: u64,
    /// Events in the queue that are not due yet.
    pub delayed: u64,
    /// Events in the queue that are being worked on.
    pub under_way: u64,
    /// Events in the queue, as records say, where it cannot be asked. `None` where they do not say
    /// it.
    pub recorded: Option<u64>,
    /// The time up to which records are counted.
    pub recorded_until: Option<Timestamp>,
    /// Events in parked objects.
    pub parked: u64,
    /// Those of them that were published for later, where objects are listed: they were never tried,
    /// so that no record counts them.
    pub scheduled: u64,
    /// Events in held objects.
    pub held: u64,
    /// The acceptance of the oldest of them, as far as it is known.
    pub oldest: Option<Timestamp>,
    /// The earliest time at which one that waits for its time is due.
    pub next_due: Option<Timestamp>,
    /// Whether there may be more than were counted.
    pub is_partial: bool,
    /// Whether the queue could not be asked, as SQS cannot.
    pub is_without_queue: bool,
}

impl WaitingCount {
    /// The sum of all places.
    pub fn total(&self) -> u64 {
        [self.queued(), self.parked, self.held]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The events in the queue.
    pub fn queued(&self) -> u64 {
        let recorded = self.recorded.unwrap_or_default();
        [self.due, self.delayed, self.under_way, recorded]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// The events in objects that records count as well.
    pub fn recorded_in_objects(&self) -> u64 {
        self.parked
            .saturating_add(self.held)
            .saturating_sub(self.scheduled)
    }

    /// Takes over what records say of all places together. Objects were counted just now, and
    /// records some minutes ago.
    pub fn set_recorded(&mut self, waiting: u64, until: Option<Timestamp>) {
        self.recorded = Some(waiting.saturating_sub(self.recorded_in_objects()));
        self.recorded_until = until;
    }

    /// The count without what records say, where they do not say all.
    pub fn forget_recorded(&mut self) {
        if self.is_without_queue {
            self.recorded = None;
            self.recorded_until = None;
            self.is_partial = true;
        }
    }

    /// Adds a parked object that is due then. An object whose key does not say what it carries has
    /// one event or more.
    pub fn add_parked(&mut self, carried: Option<CarriedEvents>, due: Option<Timestamp>) {
        self.parked = self.parked.saturating_add(self.count_object(carried));
        self.next_due = earliest_known(self.next_due, due);
    }

    /// Adds a parked object with events that were published for later.
    pub fn add_scheduled(&mut self, carried: Option<CarriedEvents>, due: Option<Timestamp>) {
        self.add_parked(carried, due);
        let events = carried.map_or(1, |it| u64::from(it.events));
        self.scheduled = self.scheduled.saturating_add(events);
    }

    /// Adds a held object.
    pub fn add_held(&mut self, carried: Option<CarriedEvents>) {
        self.held = self.held.saturating_add(self.count_object(carried));
    }

    /// Adds the count of others.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.due, other.due),
            (&mut self.delayed, other.delayed),
            (&mut self.under_way, other.under_way),
            (&mut self.parked, other.parked),
            (&mut self.scheduled, other.scheduled),
            (&mut self.held, other.held),
        ] {
            *sum = sum.saturating_add(more);
        }
        if let Some(more) = other.recorded {
            self.recorded = Some(self.recorded.unwrap_or_default().saturating_add(more));
        }
        self.recorded_until = earliest_known(self.recorded_until, other.recorded_until);
        self.oldest = earliest_known(self.oldest, other.oldest);
        self.next_due = earliest_known(self.next_due, other.next_due);
        self.is_partial |= other.is_partial;
        self.is_without_queue |= other.is_without_queue;
    }

    /// A number that the queue tells; `None` where there is no queue.
    fn queue_number(&self, events: u64) -> Option<u64> {
        (!self.is_without_queue).then_some(events)
    }

    /// The count as operators see it, with the time of the next attempt.
    pub fn waiting_view(&self, next_attempt_at: Option<Timestamp>) -> WaitingView {
        let is_unrecorded = self.is_without_queue && self.recorded.is_none();
        WaitingView {
            count: self.total(),
            at_least: self.is_partial || is_unrecorded,
            queued: self.queue_number(self.queued()).or(self.recorded),
            due: self.queue_number(self.due),
            delayed: self.queue_number(self.delayed),
            under_way: self.queue_number(self.under_way),
            parked: self.parked,
            held: self.held,
            oldest_accepted_at: self.oldest.map(IsoTimestamp),
            counted_until: self.recorded_until.map(IsoTimestamp),
            next_attempt_at: next_attempt_at.map(IsoTimestamp),
        }
    }

    /// The events of an object, whose age is noted.
    fn count_object(&mut self, carried: Option<CarriedEvents>) -> u64 {
        let Some(carried) = carried else {
            self.is_partial = true;
            return 1;
        };
        self.oldest = earliest_known(self.oldest, carried.oldest_accepted_at());
        u64::from(carried.events)
    }
}

/// The earlier of two times, as far as they are known.
fn earliest_known(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    #[test]
    fn events_are_added_up_over_all_places() {
        let mut count = WaitingCount {
            due: 1,
            delayed: 20,
            under_way: 300,
            oldest: Some(at(9)),
            next_due: Some(at(50)),
            ..WaitingCount::default()
        };
        count.add_parked(Some(CarriedEvents::new(4000, at(8))), Some(at(60)));
        count.add_held(Some(CarriedEvents::new(50_000, at(10))));
        let expected = WaitingView {
            count: 54_321,
            at_least: false,
            queued: Some(321),
            due: Some(1),
            delayed: Some(20),
            under_way: Some(300),
            parked: 4000,
            held: 50_000,
            oldest_accepted_at: Some(IsoTimestamp(at(8))),
            counted_until: None,
            next_attempt_at: Some(IsoTimestamp(at(70))),
        };
        assert_eq!(count.waiting_view(Some(at(70))), expected);
        assert_eq!(count.next_due, Some(at(50)));
        let mut sum = count;
        sum.add(&count);
        assert_eq!((sum.total(), sum.oldest), (108_642, Some(at(8))));
    }

    #[test]
    fn records_say_what_is_in_a_queue_that_cannot_be_asked() {
        let mut count = WaitingCount {
            is_without_queue: true,
            ..WaitingCount::default()
        };
        count.add_parked(Some(CarriedEvents::new(4, at(8))), None);
        count.add_held(Some(CarriedEvents::new(5, at(9))));
        count.set_recorded(12, Some(at(20)));
        let view = count.waiting_view(None);
        assert_eq!(
            (view.count, view.queued, view.at_least),
            (12, Some(3), false)
        );
        assert_eq!(view.counted_until, Some(IsoTimestamp(at(20))));
        assert_eq!((view.due, view.delayed, view.under_way), (None, None, None));
        // Records are older than the list of objects.
        let mut late = count;
        late.set_recorded(2, Some(at(20)));
        assert_eq!(late.waiting_view(None).count, 9);
        let mut sum = count;
        sum.add(&late);
        assert_eq!((sum.total(), sum.recorded), (21, Some(3)));
        sum.forget_recorded();
        let view = sum.waiting_view(None);
        assert_eq!((view.count, view.queued, view.at_least), (18, None, true));
    }

    /// Events that were published for later are in no record.
    #[test]
    fn scheduled_events_are_not_counted_as_recorded() {
        let mut count = WaitingCount {
            is_without_queue: true,
            ..WaitingCount::default()
        };
        count.add_parked(Some(CarriedEvents::new(4, at(8))), None);
        count.add_scheduled(Some(CarriedEvents::without_age(50)), Some(at(60)));
        assert_eq!(count.recorded_in_objects(), 4);
        let mut sum = count;
        count.set_recorded(12, Some(at(20)));
        let view = count.waiting_view(None);
        assert_eq!((view.count, view.queued, view.parked), (62, Some(8), 54));
        sum.add(&count);
        assert_eq!(sum.recorded_in_objects(), 8);
    }

    #[test]
    fn a_count_is_a_lower_bound_where_something_is_not_known() {
        let mut count = WaitingCount::default();
        let all = count.waiting_view(None);
        assert_eq!((all.count, all.at_least, all.queued), (0, false, Some(0)));
        count.add_held(None);
        count.add_parked(None, Some(at(7)));
        let view = count.waiting_view(None);
        assert_eq!((view.count, view.at_least), (2, true));
        assert_eq!((view.parked, view.held), (1, 1));
        assert_eq!(view.oldest_accepted_at, None);
    }

    #[test]
    fn without_the_queue_its_figures_are_left_out() {
        let count = WaitingCount {
            held: 3,
            is_without_queue: true,
            ..WaitingCount::default()
        };
        let view = count.waiting_view(None);
        assert_eq!((view.count, view.at_least), (3, true));
        assert_eq!(
            [view.queued, view.due, view.delayed, view.under_way],
            [None; 4]
        );
        let mut sum = WaitingCount::default();
        sum.add(&count);
        assert!(sum.is_without_queue);
    }
}
