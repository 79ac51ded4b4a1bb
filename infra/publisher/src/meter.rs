//! Events per second that were acknowledged in the last seconds. Pure: time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

/// Longest look back, in seconds.
const SECS_MAX: u64 = 10;

/// Counts events by the second.
#[derive(Debug, Default)]
pub(crate) struct RateMeter {
    began: Option<Duration>,
    seconds: BTreeMap<u64, u32>,
}

impl RateMeter {
    /// The first request is sent; later ones change nothing.
    pub(crate) fn start(&mut self, now: Duration) {
        self.began.get_or_insert(now);
    }

    /// So many events were acknowledged.
    pub(crate) fn add_events(&mut self, now: Duration, events: u32) {
        *self.seconds.entry(now.as_secs()).or_default() += events;
        self.seconds = self.seconds.split_off(&first_second(now));
    }

    /// Events per second, over the last ten seconds or since the beginning.
    pub(crate) fn per_second(&self, now: Duration) -> f64 {
        let recent = self.seconds.range(first_second(now)..);
        let events: f64 = recent.map(|(_, events)| f64::from(*events)).sum();
        let since = now.saturating_sub(self.began.unwrap_or(now)).as_secs_f64();
        events / since.clamp(1.0, Duration::from_secs(SECS_MAX).as_secs_f64())
    }
}

/// The first second that still counts.
fn first_second(now: Duration) -> u64 {
    (now.as_secs() + 1).saturating_sub(SECS_MAX)
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
