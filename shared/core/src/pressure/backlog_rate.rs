//! The speed at which the backlog of one subscription drains.
//!
//! Requests to a slow endpoint begin together and end together: one poll settles 48 messages, and
//! the next four settle none. A rate that is smoothed over seconds then swings by a factor of two.
//! So it is taken from burst to burst: the messages of the last bursts, over the time from the one
//! before the first of them to the last.

use std::collections::VecDeque;
use std::time::Duration;

use super::DrainCount;
use super::drain::as_f64;
use super::readings::{BACKLOG_WAIT, whole_secs};

/// Most bursts that the rate is taken from. A burst may lie in two polls, so that these are six at
/// least; of an endpoint that answers all the time they are the last 24 seconds.
const BURSTS_MAX: usize = 12;

/// The rate at which the messages of one subscription drain.
#[derive(Debug, Clone, Default)]
pub(super) struct BacklogRate {
    visible: u64,
    /// The longest that a message had been due when one was received last.
    oldest_wait: Duration,
    /// From the first poll at which something waited throughout, until nothing is due.
    backlog: Option<BacklogBursts>,
}

/// A backlog, by the time since it began.
#[derive(Debug, Clone, Default)]
struct BacklogBursts {
    lasted: Duration,
    /// The end of the burst before the first of `bursts`.
    from: Duration,
    /// Polls that settled something: their time, and the number of messages.
    bursts: VecDeque<(Duration, u64)>,
}

impl BacklogRate {
    /// Takes one poll in and answers the drain time in whole seconds: `visible` messages are due,
    /// and `count` were received and settled in the `elapsed` time since the last poll. It is never
    /// less than the oldest wait.
    pub(super) fn add_poll(&mut self, visible: u64, count: DrainCount, elapsed: Duration) -> u64 {
        let before = std::mem::replace(&mut self.visible, visible);
        if count.received > 0 || count.waited_max > self.oldest_wait {
            self.oldest_wait = count.waited_max;
        }
        let waited_throughout =
            count.settled < before || self.oldest_wait >= elapsed.min(BACKLOG_WAIT);
        if visible == 0 {
            self.oldest_wait = Duration::ZERO;
            self.backlog = None;
            return 0;
        }
        if !elapsed.is_zero() && waited_throughout {
            self.backlog.get_or_insert_default();
        }
        let by_rate = self.backlog.as_mut().map_or(0, |backlog| {
            backlog.add_burst(elapsed, count.settled);
            backlog.drain_secs(visible)
        });
        by_rate.max(self.oldest_wait.as_secs())
    }

    /// The messages that were due at the last poll.
    pub(super) fn last_visible(&self) -> u64 {
        self.visible
    }
}

impl BacklogBursts {
    fn add_burst(&mut self, elapsed: Duration, settled: u64) {
        self.lasted = self.lasted.saturating_add(elapsed);
        if settled > 0 && !elapsed.is_zero() {
            self.bursts.push_back((self.lasted, settled));
        }
        if self.bursts.len() > BURSTS_MAX
            && let Some((end, _)) = self.bursts.pop_front()
        {
            self.from = end;
        }
    }

    /// The bursts to measure by, and the time from which they were settled. The first one is left
    /// out where it came sooner than others did: what it settled was under way before.
    fn measured_bursts(&self) -> (Duration, impl Iterator<Item = &(Duration, u64)> + Clone) {
        let times = self.bursts.iter().map(|(at, _)| *at);
        let gaps = times.clone().skip(1).zip(times.clone());
        let longest_gap = gaps.map(|(at, before)| at.saturating_sub(before)).max();
        let first = times.clone().next().unwrap_or_default();
        let is_early = longest_gap.is_some_and(|gap| first.saturating_sub(self.from) < gap);
        let from = if is_early { first } else { self.from };
        (from, self.bursts.iter().skip(usize::from(is_early)))
    }

    /// Seconds until so many messages are settled. As long as none was, as long as that lasts.
    fn drain_secs(&self, visible: u64) -> u64 {
        let Some(&(last, _)) = self.bursts.back() else {
            return self.lasted.as_secs();
        };
        let (from, bursts) = self.measured_bursts();
        let mut longest_gap = Duration::ZERO;
        let mut before = from;
        let mut settled = 0_u64;
        for &(at, count) in bursts {
            longest_gap = longest_gap.max(at.saturating_sub(before));
            settled = settled.saturating_add(count);
            before = at;
        }
        // A silence that is longer than those before it counts.
        let silence = self.lasted.saturating_sub(last).saturating_sub(longest_gap);
        let over = last.saturating_sub(from).saturating_add(silence);
        whole_secs(as_f64(visible) * over.as_secs_f64() / as_f64(settled))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POLL: Duration = Duration::from_secs(2);

    /// Most messages in flight to one slow endpoint.
    const AT_ONCE: u64 = 48;

    /// Messages that are due at first.
    const DUE: u64 = 20_000;

    /// Drain times of polls of an endpoint that settles `at_once` messages after each `answer`
    /// time, the first after `first`, with the true ones.
    fn steady(at_once: u64, answer: Duration, first: Duration, polls: u32) -> Vec<(u64, f64)> {
        let mut rate = BacklogRate::default();
        let mut visible = DUE;
        let mut next = first;
        let mut seen = Vec::new();
        for poll in 1..=polls {
            let now = POLL * poll;
            let mut settled = 0;
            while next <= now {
                settled += at_once;
                next += answer;
            }
            visible -= settled;
            let count = DrainCount {
                received: settled,
                settled,
                waited_max: if settled > 0 { now } else { Duration::ZERO },
            };
            let truth = as_f64(visible) * answer.as_secs_f64() / as_f64(at_once);
            let shown = rate.add_poll(visible, count, POLL);
            seen.push((shown, truth.max(now.as_secs_f64())));
        }
        seen
    }

    /// Whether a drain time is within a quarter of the true one.
    fn is_true(shown: u64, truth: f64) -> bool {
        (as_f64(shown) - truth).abs() <= truth / 4.0
    }

    proptest! {
        /// Answers after three to thirty seconds, of one to 48 requests that begin together.
        #[test]
        fn steady_slow_endpoint_is_shown_as_slow_as_it_is(
            at_once in 1..=AT_ONCE, answer_ms in 3_000..30_000_u64, first_part in 1..=100_u32,
        ) {
            let answer = Duration::from_millis(answer_ms);
            let all = steady(at_once, answer, answer * first_part / 100, 300);
            for (poll, (shown, truth)) in all.into_iter().enumerate().skip(30) {
                prop_assert!(is_true(shown, truth), "poll {poll}: {shown}, not {truth}");
            }
        }
    }

    #[test]
    fn burst_every_ten_seconds_is_no_swing() {
        let shown = steady(AT_ONCE, 5 * POLL, 5 * POLL, 25);
        let shown: Vec<_> = shown.into_iter().map(|(shown, _)| shown).collect();
        // Nothing has waited throughout the first poll, so the first burst seems to come early.
        assert_eq!(shown[..4], [0, 2, 4, 6]);
        assert_eq!(shown[4..9], [3325; 5]);
        assert_eq!(shown[9..14], [4146; 5]);
        assert_eq!(shown[14..19], [4136; 5]);
        assert_eq!(shown[19..24], [4126; 5]);
    }

    fn count(settled: u64) -> DrainCount {
        DrainCount {
            received: settled,
            settled,
            waited_max: Duration::ZERO,
        }
    }

    /// The drain times after a minute at 48 in ten seconds, with these counts from then on.
    fn after_a_minute(then: &[u64]) -> Vec<u64> {
        let mut rate = BacklogRate::default();
        let minute = (1..=30).map(|poll| if poll % 5 == 0 { AT_ONCE } else { 0 });
        let shown = minute
            .chain(then.iter().copied())
            .map(|settled| rate.add_poll(DUE, count(settled), POLL));
        shown.skip(29).collect()
    }

    #[test]
    fn endpoint_that_becomes_quicker_is_shown_within_two_polls() {
        // Ten times as fast: a third of the drain time, and less.
        let shown = after_a_minute(&[96, 96]);
        assert_eq!(shown[0], 4166);
        assert!(shown[2] < shown[0] * 3 / 4, "{shown:?}");
        let shown = after_a_minute(&[960, 960]);
        assert!(shown[2] < shown[0] / 5, "{shown:?}");
    }

    /// An endpoint that stops is shown once it is silent for longer than before.
    #[test]
    fn stopped_endpoint_shows_after_its_longest_silence_so_far() {
        let shown = after_a_minute(&[0; 7]);
        assert_eq!(shown[..6], [4166; 6]);
        assert_eq!(shown[6..], [4333, 4500]);
    }

    #[test]
    fn end_of_the_backlog_is_shown_at_once() {
        let mut rate = BacklogRate::default();
        for _ in 0..10 {
            rate.add_poll(DUE, count(4), POLL);
        }
        assert_eq!(rate.add_poll(0, count(DUE), POLL), 0);
        assert_eq!(rate.add_poll(5, count(3), POLL), 0);
    }

    #[test]
    fn oldest_wait_lasts_while_nothing_is_received() {
        let mut rate = BacklogRate::default();
        let waited = DrainCount {
            waited_max: Duration::from_secs(90),
            ..count(10)
        };
        assert_eq!(rate.add_poll(100, waited, POLL), 90);
        assert_eq!(rate.add_poll(100, count(0), POLL), 90);
        let less = DrainCount {
            waited_max: Duration::from_secs(70),
            ..count(10)
        };
        assert_eq!(rate.add_poll(100, less, POLL), 70);
    }
}
