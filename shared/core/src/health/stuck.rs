//! Events that fail again and again. One that fails while others arrive says nothing of the others,
//! however often it is tried: it counts once.

use serde::{Deserialize, Serialize};

use super::ends::{RecentEnds, UNDELIVERED_AGE_MAX, event_digest};
use crate::model::Timestamp;

/// Events that are known one by one. Of more, each try counts: then it is more than an event's
/// fault. They take 90 bytes each in the book.
const STUCK_MAX: usize = 8;

/// An event that failed and has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StuckEvent {
    /// The digest of the event.
    event: String,
    /// The time at which it was accepted.
    accepted_at: Timestamp,
    /// The time of its first failure since tries are counted; `None` if it failed before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed_at: Option<Timestamp>,
    /// Whether another event has arrived since it failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_alone: bool,
}

/// The events that failed and have not ended, as far as there is room for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct StuckEvents(Vec<StuckEvent>);

impl StuckEvents {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of them.
    pub(super) fn count(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    /// Whether this event failed before, and another one has arrived since.
    pub(super) fn fails_alone(&self, key: &str) -> bool {
        if !self.0.iter().any(|stuck| stuck.is_alone) {
            return false;
        }
        let event = event_digest(key);
        self.0.iter().any(|it| it.is_alone && it.event == event)
    }

    /// Notes that an event failed at this time.
    pub(super) fn add_failure(&mut self, key: &str, accepted_at: Timestamp, failed_at: Timestamp) {
        self.add_event(StuckEvent {
            event: event_digest(key),
            accepted_at,
            failed_at: Some(failed_at),
            is_alone: false,
        });
    }

    fn add_event(&mut self, stuck: StuckEvent) {
        let known = self.0.iter_mut().find(|known| known.event == stuck.event);
        if let Some(known) = known {
            known.failed_at = match (known.failed_at, stuck.failed_at) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
            known.is_alone |= stuck.is_alone;
        } else if self.0.len() < STUCK_MAX {
            self.0.push(stuck);
        }
    }

    /// Notes that an event ended.
    pub(super) fn end_event(&mut self, key: &str) {
        if !self.0.is_empty() {
            self.end_all(&[event_digest(key)]);
        }
    }

    /// Notes that the events with these digests ended.
    pub(super) fn end_all(&mut self, events: &[String]) {
        self.0.retain(|stuck| !events.contains(&stuck.event));
    }

    /// Notes that an event arrived at this time which is none of these. What is known of it may
    /// come late: it says nothing of an event that failed only after it.
    pub(super) fn note_arrival(&mut self, at: Timestamp) {
        for stuck in &mut self.0 {
            stuck.is_alone |= stuck.failed_at < Some(at);
        }
    }

    /// Adds those of a later part, which was not stored, but for those that have ended by what was
    /// known before it, or may have: they are known again by their next tries.
    pub(super) fn append_later(&mut self, later: Self, ends: &RecentEnds) {
        for stuck in later.0 {
            let failed_at = stuck.failed_at.unwrap_or(Timestamp::EPOCH);
            if !ends.may_have_event(&stuck.event, failed_at) {
                self.add_event(stuck);
            }
        }
    }

    /// Lets their tries count again until the next arrival, because an incident is over.
    pub(super) fn begin_anew(&mut self) {
        for stuck in &mut self.0 {
            stuck.failed_at = None;
            stuck.is_alone = false;
        }
    }

    /// Forgets what has ended wherever that was noted.
    pub(super) fn forget_outdated(&mut self, now: Timestamp) {
        self.0
            .retain(|stuck| now.since(stuck.accepted_at) < UNDELIVERED_AGE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::health::{SeenTry, SubscriptionTries, TryResult};
    use crate::model::ArrivalSettings;

    const START: Timestamp = Timestamp::from_millis(1_700_000_040_000);
    const MINUTE: Duration = Duration::from_mins(1);
    const FAILED: TryResult = TryResult::Failed {
        outcome: None,
        status: Some(500),
        is_last: false,
    };

    fn seen(key: &str, at: Timestamp, result: TryResult) -> SeenTry<'_> {
        SeenTry {
            key,
            accepted_at: START,
            at,
            is_first: false,
            result,
        }
    }

    /// The tries of a subscription, each in a part of its own, as the book gets them.
    #[derive(Default)]
    struct Known {
        tries: SubscriptionTries,
        now: Duration,
        arrived: u32,
    }

    impl Known {
        fn add(&mut self, part: SubscriptionTries) {
            self.tries.append_later(part);
            self.tries.finish_adding();
            self.tries
                .forget_outdated(START + self.now, &ArrivalSettings::default());
        }

        fn fail(&mut self, keys: &[&str]) {
            for key in keys {
                let mut part = SubscriptionTries::default();
                part.add_try(&seen(key, START + self.now, FAILED));
                self.add(part);
            }
        }

        /// So many other events arrive, all in one part.
        fn arrive(&mut self, count: u32) {
            let mut part = SubscriptionTries::default();
            for _ in 0..count {
                self.arrived += 1;
                let key = format!("other{}", self.arrived);
                part.add_try(&SeenTry {
                    is_first: true,
                    ..seen(&key, START + self.now, TryResult::Arrived)
                });
            }
            self.add(part);
        }

        fn is_failing(&self) -> bool {
            let settings = ArrivalSettings::default();
            self.tries.is_failing(START + self.now, &settings)
        }

        fn is_recovered(&self) -> bool {
            self.tries.is_recovered(&ArrivalSettings::default())
        }
    }

    /// Between two of its tries fewer arrive than would end an incident by themselves.
    #[test]
    fn stuck_event_at_a_low_rate_is_no_outage() {
        let mut known = Known::default();
        known.fail(&["stuck"; 10]);
        assert!(known.is_failing() && !known.is_recovered());
        let mut recovered = Vec::new();
        for _ in 0..5 {
            known.now += 30 * MINUTE;
            known.arrive(2);
            recovered.push(known.is_recovered());
            known.now += MINUTE;
            known.fail(&["stuck"]);
        }
        assert_eq!(recovered, [false, false, false, false, true]);
        known.tries.begin_anew();
        for _ in 0..50 {
            known.now += 5 * MINUTE;
            known.fail(&["stuck", "stuck"]);
            known.arrive(1);
            assert!(!known.is_failing(), "{:?}", known.now);
        }
    }

    #[test]
    fn stuck_event_at_a_high_rate_is_no_outage() {
        let mut known = Known::default();
        known.fail(&["stuck"; 10]);
        for _ in 0..3 {
            known.now += MINUTE;
            known.arrive(1000);
            known.fail(&["stuck"]);
        }
        assert!(known.is_recovered());
        known.tries.begin_anew();
        for _ in 0..100 {
            known.now += MINUTE;
            known.fail(&["stuck"]);
            known.arrive(1000);
            assert!(!known.is_failing(), "{:?}", known.now);
        }
    }

    /// Two of twenty events fail: it takes nine that arrive for each of them.
    #[test]
    fn share_counts_each_stuck_event_once() {
        let mut known = Known::default();
        known.fail(&["a", "b", "a", "b", "a", "b", "a", "b", "a", "b"]);
        for _ in 0..9 {
            assert!(!known.is_recovered());
            known.now += 10 * MINUTE;
            known.arrive(2);
            known.fail(&["a", "b"]);
        }
        assert!(known.is_recovered());
    }

    /// The endpoint takes every third request of many events that wait.
    #[test]
    fn many_events_that_fail_again_are_an_outage() {
        let keys: Vec<_> = (0..40).map(|n| format!("waiting{n}")).collect();
        let mut known = Known::default();
        for round in keys.chunks(2).cycle().take(60) {
            known.now += MINUTE;
            known.fail(&[&round[0], &round[1]]);
            known.arrive(1);
            assert!(!known.is_recovered(), "{:?}", known.now);
        }
        assert!(known.is_failing());
    }

    /// Nothing else is known of its endpoint.
    #[test]
    fn only_event_that_fails_again_and_again_is_an_outage() {
        let mut known = Known::default();
        known.fail(&["only"; 9]);
        assert!(!known.is_failing());
        known.fail(&["only"]);
        assert!(known.is_failing());
    }

    /// More events ended than are known one by one: the stuck one may be among them.
    #[test]
    fn stuck_event_is_forgotten_where_too_many_ended() {
        let mut known = Known::default();
        known.fail(&["stuck"; 10]);
        let mut part = SubscriptionTries::default();
        for n in 0..1000 {
            let key = if n == 900 {
                "stuck"
            } else {
                &format!("other{n}")
            };
            part.add_try(&seen(key, START, TryResult::Arrived));
        }
        known.add(part);
        assert_eq!(known.tries.oldest_undelivered(), None);
        known.fail(&["stuck"]);
        assert_eq!(known.tries.in_row(), 1);
    }

    /// The endpoint is down, and the record of an arrival before that comes in another batch.
    #[test]
    fn late_record_of_an_arrival_is_no_excuse_for_later_failures() {
        for arrived in [1, 40] {
            let mut known = Known {
                now: MINUTE,
                ..Known::default()
            };
            known.fail(&["down"]);
            known.now = Duration::ZERO;
            known.arrive(arrived);
            known.now = MINUTE;
            known.fail(&["down"; 10]);
            assert!(known.is_failing(), "{arrived}");
        }
    }

    /// So many events ended that only the time of some of them is known.
    #[test]
    fn late_sum_adds_no_stuck_event_that_may_have_ended() {
        for (minute, in_row) in [(0, 1), (1, 0)] {
            let mut known = Known::default();
            let mut ended = SubscriptionTries::default();
            for n in 0..1000 {
                ended.add_try(&seen(&format!("ended{n}"), START, TryResult::Arrived));
            }
            known.add(ended);
            let mut sum = SubscriptionTries::default();
            let at = START + minute * MINUTE;
            sum.add_try(&seen("ended0", at, FAILED));
            for n in 0..40 {
                sum.add_try(&SeenTry {
                    is_first: true,
                    ..seen(&format!("other{n}"), at + MINUTE, TryResult::Arrived)
                });
            }
            known.add(sum);
            known.now = 5 * MINUTE;
            known.fail(&["ended0"]);
            assert_eq!(known.tries.in_row(), in_row, "{minute}");
        }
    }

    /// The endpoint goes down again before another event arrives.
    #[test]
    fn relapse_with_only_stuck_events_is_failing() {
        let mut known = Known::default();
        known.fail(&["stuck"; 10]);
        for _ in 0..3 {
            known.now += MINUTE;
            known.arrive(1000);
            known.fail(&["stuck"]);
        }
        assert!(known.is_recovered());
        known.tries.begin_anew();
        known.now += MINUTE;
        known.fail(&["stuck"; 9]);
        assert!(!known.is_failing());
        known.fail(&["stuck"]);
        assert!(known.is_failing());
    }

    #[test]
    fn stuck_event_that_ended_is_forgotten() {
        let mut stuck = StuckEvents::default();
        for key in ["a", "b", "a"] {
            stuck.add_failure(key, START, START);
        }
        assert_eq!(stuck.count(), 2);
        stuck.end_event("a");
        assert_eq!(stuck.count(), 1);
        stuck.forget_outdated(START + UNDELIVERED_AGE_MAX);
        assert!(stuck.is_empty());
    }
}
