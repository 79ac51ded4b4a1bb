//! Events per second that were acknowledged in the last seconds. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

/// Longest look back, in seconds.
const SECS_MAX: u64 = 10;

/// Counts events by the second.
#[derive(Debug, Default)]
pub(crate) struct RateMeter {
    began: Option<Duration>,
    seconds: VecDeque<(u64, u64)>,
}

impl RateMeter {
    /// The first request is sent; later ones change nothing.
    pub(crate) fn start(&mut self, now: Duration) {
        self.began.get_or_insert(now);
    }

    /// So many events were acknowledged.
    pub(crate) fn add_events(&mut self, now: Duration, events: u32) {
        let second = now.as_secs();
        match self.seconds.back_mut() {
            Some((last, count)) if *last == second => *count += u64::from(events),
            _ => self.seconds.push_back((second, u64::from(events))),
        }
        while self
            .seconds
            .front()
            .is_some_and(|(first, _)| first + SECS_MAX <= second)
        {
            self.seconds.pop_front();
        }
    }

    /// Events per second, over the last ten seconds or since the beginning.
    pub(crate) fn per_second(&self, now: Duration) -> f64 {
        let recent = self
            .seconds
            .iter()
            .filter(|(second, _)| second + SECS_MAX > now.as_secs());
        let events: u64 = recent.map(|(_, count)| count).sum();
        let since = self
            .began
            .map_or(Duration::ZERO, |began| now.saturating_sub(began));
        let secs = since
            .clamp(Duration::from_secs(1), Duration::from_secs(SECS_MAX))
            .as_secs_f64();
        // Ten seconds of events are far below where a double is not exact.
        u32::try_from(events).map_or(f64::INFINITY, f64::from) / secs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ten_seconds_count() {
        let mut meter = RateMeter::default();
        let check = |meter: &RateMeter, ms: u64, expected: f64| {
            assert!(
                (meter.per_second(Duration::from_millis(ms)) - expected).abs() < 1e-9,
                "{ms}"
            );
        };
        check(&meter, 0, 0.0);
        meter.start(Duration::from_secs(100));
        meter.add_events(Duration::from_millis(100_500), 100);
        check(&meter, 100_500, 100.0);
        meter.add_events(Duration::from_secs(104), 300);
        check(&meter, 104_000, 100.0);
        check(&meter, 109_000, 400.0 / 9.0);
        check(&meter, 110_500, 30.0);
        check(&meter, 200_000, 0.0);
        meter.add_events(Duration::from_secs(200), 50);
        check(&meter, 200_000, 5.0);
    }
}
