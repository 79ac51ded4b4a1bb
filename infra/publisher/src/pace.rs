//! The pace of a stream of requests: additive increase, multiplicative decrease (TCP's rule, RFC
//! 5681), of the requests at once and of the events per second. Pure: time and waits are arguments;
//! nothing here sends or sleeps.

use std::time::Duration;

/// Most requests at once. Each holds a connection here and, under the tarpit, one there.
pub(crate) const REQUESTS_AT_ONCE_MAX: u32 = 16;

/// Growth of the pace with each second's worth of acknowledged events, as a share of the pace that
/// was refused.
const GROWTH: f64 = 0.1;

/// Multiple of the refused pace at which the server no longer bounds the pace.
const RELEASE: f64 = 2.0;

/// Rounding of a server's delay, which is in whole seconds: an answer that came less than a second
/// too soon may have been held for the whole delay.
const DELAY_ROUNDING: Duration = Duration::from_secs(1);

/// The first wait after an answer that did not come, when the server did not name one …
const BACKOFF_FIRST: Duration = Duration::from_millis(500);

/// … and the longest.
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// The pace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PublishPace {
    /// The caller's bound, in events per second.
    cap: Option<f64>,
    requests_at_once: u32,
    /// Acknowledgements since the last increase.
    credit: u32,
    limit: Option<RefusalLimit>,
    paused_until: Duration,
    slot_at: Duration,
    backed_off_at: Duration,
    failures: u32,
}

/// A bound by refusals, in events per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct RefusalLimit {
    /// The pace at which the server refused.
    refused: f64,
    /// The pace since then.
    rate: f64,
}

/// A request that was answered, or not in time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredBatch {
    pub(crate) sent_at: Duration,
    pub(crate) answered_at: Duration,
    /// Number of its events.
    pub(crate) events: u32,
}

impl AnsweredBatch {
    /// True if the answer was held for the delay that it names.
    pub(crate) fn was_held(&self, delay: Duration) -> bool {
        self.answered_at.saturating_sub(self.sent_at) + DELAY_ROUNDING > delay
    }
}

impl PublishPace {
    /// One request at once to begin with, and at most `cap` events per second.
    pub fn new(cap: Option<u32>) -> Self {
        Self {
            cap: cap.map(f64::from),
            requests_at_once: 1,
            ..Self::default()
        }
    }

    /// Number of requests that may be on their way, 1 to [`REQUESTS_AT_ONCE_MAX`].
    pub(crate) fn requests_at_once(&self) -> u32 {
        self.requests_at_once
    }

    /// Earliest time of the next request.
    pub(crate) fn next_at(&self) -> Duration {
        self.paused_until.max(self.slot_at)
    }

    /// The pace that is kept, in events per second; `None` where only
    /// [`requests_at_once`](Self::requests_at_once) bounds it.
    pub(crate) fn rate(&self) -> Option<f64> {
        let limit = self.limit.map(|limit| limit.rate);
        limit.into_iter().chain(self.cap).reduce(f64::min)
    }

    /// A request with so many events was sent.
    pub(crate) fn note_sent(&mut self, now: Duration, events: u32) {
        if let Some(rate) = self.rate() {
            let takes = Duration::try_from_secs_f64(f64::from(events) / rate);
            let begins = self.slot_at.max(now);
            self.slot_at = begins.saturating_add(takes.unwrap_or(Duration::MAX));
        }
    }

    /// A request was acknowledged; under the tarpit with the delay that the server names. A delayed
    /// producer keeps to one request at once: more of them would undo the tarpit. An answer
    /// that came sooner than that was let through instead of held (`tarpit: advise`), and the
    /// next one would only be sent away before the delay is over.
    pub(crate) fn note_acknowledged(&mut self, batch: AnsweredBatch, delay: Option<Duration>) {
        self.failures = 0;
        if let Some(delay) = delay {
            if !batch.was_held(delay) {
                self.pause_for(batch.answered_at, delay);
            }
            self.set_requests_at_once(1);
            return;
        }
        self.credit += 1;
        if self.credit >= self.requests_at_once {
            self.set_requests_at_once((self.requests_at_once + 1).min(REQUESTS_AT_ONCE_MAX));
        }
        if let Some(limit) = &mut self.limit {
            limit.rate += limit.refused * GROWTH * f64::from(batch.events) / limit.rate;
        }
        self.limit = self
            .limit
            .filter(|limit| limit.rate < limit.refused * RELEASE);
    }

    /// Back pressure refused a request: nothing is sent for `wait`, and then at half the pace,
    /// which was `measured` events per second. The server's own wait gives the least pace.
    pub(crate) fn note_pushed_back(&mut self, batch: AnsweredBatch, wait: Duration, measured: f64) {
        self.failures = 0;
        self.pause_for(batch.answered_at, wait);
        if !self.is_news(batch) {
            return;
        }
        self.set_requests_at_once((self.requests_at_once / 2).max(1));
        let events = f64::from(batch.events);
        let kept = self.rate().unwrap_or(f64::INFINITY);
        let refused = kept.min(measured.max(events));
        let rate = (refused / 2.0).max(events / wait.as_secs_f64().max(1.0));
        let refused = refused.max(rate);
        self.limit = Some(RefusalLimit { refused, rate });
    }

    /// A request was not answered, or the server is not able to now: one request at once, after a
    /// wait that doubles with every failure unless the server names one. `stretch`, from 1,
    /// makes the wait longer.
    pub(crate) fn note_failed(
        &mut self,
        batch: AnsweredBatch,
        wait: Option<Duration>,
        stretch: f64,
    ) {
        let is_news = self.is_news(batch);
        let backoff = (BACKOFF_FIRST * (1 << self.failures.min(16))).min(BACKOFF_MAX);
        if let Some(wait) = wait.or(is_news.then_some(backoff)) {
            self.pause_for(batch.answered_at, wait.mul_f64(stretch));
        }
        if is_news {
            self.failures += 1;
            self.set_requests_at_once(1);
        }
    }

    fn set_requests_at_once(&mut self, requests_at_once: u32) {
        self.requests_at_once = requests_at_once;
        self.credit = 0;
    }

    fn pause_for(&mut self, now: Duration, wait: Duration) {
        self.paused_until = self.paused_until.max(now.saturating_add(wait));
    }

    /// True if a refusal counts beside the last one: requests that were on their way together are
    /// refused together, and that is one refusal.
    fn is_news(&mut self, batch: AnsweredBatch) -> bool {
        let is_news = batch.sent_at >= self.backed_off_at;
        if is_news {
            self.backed_off_at = batch.answered_at;
        }
        is_news
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event in the life of a pace.
    enum Seen {
        Acknowledged,
        /// With the delay that the server names; the answer took a second.
        Delayed(u64),
        /// With the wait and the measured pace.
        PushedBack(u64, f64),
        Failed,
        FailedFor(u64),
    }
    /// The pace after it: requests at once, rate, and pause in seconds.
    type Kept = (u32, Option<f64>, f64);
    use Seen::{Acknowledged, Delayed, Failed, FailedFor, PushedBack};

    fn secs(secs: f64) -> Duration {
        Duration::from_secs_f64(secs)
    }

    /// A request of 100 events.
    fn answered(sent_secs: f64, answered_secs: f64) -> AnsweredBatch {
        AnsweredBatch {
            sent_at: secs(sent_secs),
            answered_at: secs(answered_secs),
            events: 100,
        }
    }

    fn acknowledge(pace: &mut PublishPace) {
        pace.note_acknowledged(answered(0.0, 1.0), None);
    }

    /// Requests of 100 events, each sent a second before its answer; after each answer: requests at
    /// once, pace rounded, pause in seconds.
    fn check(cap: Option<u32>, trace: &[(Seen, Kept)]) {
        let mut pace = PublishPace::new(cap);
        for (n, (seen, expected)) in trace.iter().enumerate() {
            let now_secs = 1000.0 * (f64::from(u32::try_from(n).unwrap()) + 1.0);
            let batch = answered(now_secs - 1.0, now_secs);
            match *seen {
                Acknowledged => pace.note_acknowledged(batch, None),
                Delayed(delay) => pace.note_acknowledged(batch, Some(Duration::from_secs(delay))),
                PushedBack(wait, measured) => {
                    pace.note_pushed_back(batch, Duration::from_secs(wait), measured);
                }
                Failed => pace.note_failed(batch, None, 1.0),
                FailedFor(wait) => pace.note_failed(batch, Some(Duration::from_secs(wait)), 1.0),
            }
            let paused = pace.paused_until.saturating_sub(secs(now_secs));
            let paused = paused.as_secs_f64();
            let found = (pace.requests_at_once(), pace.rate().map(f64::round), paused);
            assert_eq!(found, *expected, "step {n}");
        }
    }

    #[test]
    fn requests_at_once_grow_by_one_per_round_up_to_the_limit() {
        let mut pace = PublishPace::new(None);
        let mut grown = Vec::new();
        for _ in 0..200 {
            acknowledge(&mut pace);
            grown.push(pace.requests_at_once());
        }
        assert_eq!(&grown[..6], [2, 2, 3, 3, 3, 4]);
        assert_eq!(grown[199], REQUESTS_AT_ONCE_MAX);
        assert_eq!(pace.rate(), None);
    }

    /// Growth ends with no bound at all, once the pace is twice the refused one.
    #[test]
    fn refusal_halves_the_pace_which_then_grows_by_tenths() {
        let trace = [
            (Acknowledged, (2, None, 0.0)),
            (Acknowledged, (2, None, 0.0)),
            (Acknowledged, (3, None, 0.0)),
            (PushedBack(30, 400.0), (1, Some(200.0), 30.0)),
            (Acknowledged, (2, Some(220.0), 0.0)),
            (Acknowledged, (2, Some(238.0), 0.0)),
            (Acknowledged, (3, Some(255.0), 0.0)),
            (PushedBack(30, 400.0), (1, Some(127.0), 30.0)),
            (PushedBack(30, 400.0), (1, Some(64.0), 30.0)),
        ];
        check(None, &trace);
        let mut pace = PublishPace::new(None);
        pace.note_pushed_back(answered(0.0, 1.0), secs(30.0), 400.0);
        let acknowledged = (1..1000).find(|_| {
            acknowledge(&mut pace);
            pace.rate().is_none()
        });
        assert_eq!(acknowledged, Some(75));
    }

    #[test]
    fn the_servers_own_wait_is_the_least_pace() {
        let trace = [
            (PushedBack(15, 10.0), (1, Some(50.0), 15.0)),
            (PushedBack(15, 10.0), (1, Some(25.0), 15.0)),
            (PushedBack(15, 10.0), (1, Some(13.0), 15.0)),
            (PushedBack(15, 10.0), (1, Some(7.0), 15.0)),
            (PushedBack(15, 10.0), (1, Some(7.0), 15.0)),
            (PushedBack(0, 10.0), (1, Some(100.0), 0.0)),
        ];
        check(None, &trace);
    }

    #[test]
    fn a_wanted_pace_is_never_exceeded_and_is_halved_like_any() {
        let trace = [
            (Acknowledged, (2, Some(300.0), 0.0)),
            (PushedBack(2, 290.0), (1, Some(145.0), 2.0)),
            (Acknowledged, (2, Some(165.0), 0.0)),
        ];
        check(Some(300), &trace);
        let mut pace = PublishPace::new(Some(50));
        for now in [0.0, 0.5, 4.0] {
            pace.note_sent(secs(now), 100);
        }
        assert_eq!(pace.next_at(), secs(6.0));
        pace.note_sent(secs(60.0), 100);
        assert_eq!(pace.next_at(), secs(62.0));
    }

    #[test]
    fn whoever_is_held_keeps_to_one_request_at_once() {
        let trace = [
            (Acknowledged, (2, None, 0.0)),
            (Delayed(1), (1, None, 0.0)),
            (Acknowledged, (2, None, 0.0)),
        ];
        check(None, &trace);
    }

    #[test]
    fn an_answer_was_held_if_it_came_within_a_second_of_the_delay() {
        let check = |took_ms, delay_ms, expected| {
            let batch = AnsweredBatch {
                sent_at: secs(7.0),
                answered_at: secs(7.0) + Duration::from_millis(took_ms),
                events: 1,
            };
            let found = batch.was_held(Duration::from_millis(delay_ms));
            assert_eq!(found, expected, "{took_ms} ms for {delay_ms} ms");
        };
        check(200, 1000, true);
        check(10, 2000, false);
        check(1000, 2000, false);
        check(1001, 2000, true);
        check(15_000, 15_000, true);
        check(14_000, 15_000, false);
    }

    /// Acknowledgement that was not held makes the producer wait the named delay itself.
    #[test]
    fn request_let_through_the_tarpit_delays_the_next() {
        let trace = [
            (Acknowledged, (2, None, 0.0)),
            (Delayed(15), (1, None, 15.0)),
            (Delayed(20), (1, None, 20.0)),
            (Acknowledged, (2, None, 0.0)),
        ];
        check(None, &trace);
    }

    /// Wait has a longest value, and begins anew after an acknowledgement.
    #[test]
    fn failures_double_the_wait_until_an_acknowledgement() {
        let mut trace = vec![(Acknowledged, (2, None, 0.0))];
        for wait in [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0] {
            trace.push((Failed, (1, None, wait)));
        }
        trace.push((FailedFor(5), (1, None, 5.0)));
        trace.push((Acknowledged, (2, None, 0.0)));
        trace.push((Failed, (1, None, 0.5)));
        check(None, &trace);
    }

    #[test]
    fn requests_that_are_refused_together_are_one_refusal() {
        let mut pace = PublishPace::new(None);
        (0..200).for_each(|_| acknowledge(&mut pace));
        for n in 0..16 {
            let later_secs = f64::from(n) / 100.0;
            let batch = answered(9.0 + later_secs, 10.0 + later_secs);
            pace.note_pushed_back(batch, secs(30.0), 800.0);
        }
        assert_eq!((pace.requests_at_once(), pace.rate()), (8, Some(400.0)));
        assert_eq!(pace.next_at(), secs(40.15));
    }
}
