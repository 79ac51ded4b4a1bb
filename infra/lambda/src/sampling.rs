//! monitor's minute: a schedule can start a function once a minute at most, and the queues are looked at more
//! often.

use std::future::Future;
use std::time::Duration;

use lambda_runtime::Error;
use posthaste_aws::lambda::Scheduled;
use posthaste_monitor::{Monitor, MonitorError};
use posthaste_ports::{Clock, DrainSource, Ports, Probe};
use posthaste_services::timeout_at;
use tokio::sync::Mutex;

/// The time from one start of the function to the next.
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

/// Takes samples.
pub trait Sampler: Send + 'static {
    /// Takes one sample.
    fn sample(&mut self) -> impl Future<Output = Result<(), MonitorError>> + Send;
}

/// Samples for the length of an invocation: at once, and then at a fixed rate for as long as another sample
/// falls before the deadline and before the next invocation, which begins with one of its own.
///
/// A sample that fails is logged, and the next one goes on; an invocation fails only where none succeeded.
#[derive(Debug)]
pub struct Sampling<M, C> {
    sampler: Mutex<M>,
    pub(crate) interval: Duration,
    clock: C,
}

impl<M: Sampler, C: Clock> Sampling<M, C> {
    /// Takes a sample every `interval`.
    pub fn new(sampler: M, interval: Duration, clock: C) -> Self {
        Self { sampler: Mutex::new(sampler), interval, clock }
    }

    async fn sleep_until(&self, time: Duration) {
        self.clock.sleep(time.saturating_sub(self.clock.monotonic())).await;
    }
}

impl<M: Sampler, C: Clock> Scheduled for Sampling<M, C> {
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        let mut sampler = self.sampler.lock().await;
        let mut next = self.clock.monotonic();
        let end = deadline.min(next + MINUTE);
        let mut outcome = Err(Error::from("no time was left for a sample"));
        while next < end {
            self.sleep_until(next).await;
            let late = || Err(Error::from("a sample took until the deadline"));
            let taken = timeout_at(&self.clock, deadline, sampler.sample()).await;
            let taken = taken.map_or_else(late, |taken| taken.map_err(Error::from));
            if let Err(error) = &taken {
                tracing::error!(error = &**error as &dyn std::error::Error, "resources not sampled");
            }
            outcome = outcome.or(taken);
            // A missed sample is not made up for.
            next = (next + self.interval).max(self.clock.monotonic());
        }
        outcome
    }
}

impl<P: Ports, R: Probe + 'static, D: DrainSource + 'static> Sampler for Monitor<P, R, D> {
    async fn sample(&mut self) -> Result<(), MonitorError> {
        // The SDK's futures lie so deep in one another that the compiler refuses one more layer; a box ends
        // the depth.
        Box::pin(Monitor::sample(self)).await.map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex as StdMutex};

    use super::*;
    use posthaste_core::model::Timestamp;
    use posthaste_ports::{ErrorKind, PortError};
    use posthaste_testkit::ManualClock;

    /// Records when it was called, takes `takes`, and then fails if `fails` says so.
    struct Notes {
        clock: ManualClock,
        takes: Duration,
        fails: fn(usize) -> bool,
        at: Arc<StdMutex<Vec<u64>>>,
    }

    impl Sampler for Notes {
        async fn sample(&mut self) -> Result<(), MonitorError> {
            let count = {
                let mut at = self.at.lock().unwrap();
                at.push(self.clock.monotonic().as_secs());
                at.len()
            };
            if !self.takes.is_zero() {
                self.clock.sleep(self.takes).await;
            }
            let error = || MonitorError::Read(PortError::new("read", ErrorKind::Other));
            if (self.fails)(count) { Err(error()) } else { Ok(()) }
        }
    }

    /// Runs one invocation from second 3 on, and answers when it sampled, when it ended, and its error.
    async fn run(
        interval: u64,
        deadline: u64,
        takes: u64,
        fails: fn(usize) -> bool,
    ) -> (Vec<u64>, u64, Option<String>) {
        let clock = ManualClock::new(Timestamp::EPOCH);
        clock.advance(Duration::from_secs(3));
        let at = Arc::default();
        let takes = Duration::from_secs(takes);
        let notes = Notes { clock: clock.clone(), takes, fails, at: Arc::clone(&at) };
        let sampling = Sampling::new(notes, Duration::from_secs(interval), clock.clone());
        let mut running = tokio::spawn(async move { sampling.run(Duration::from_secs(deadline)).await });
        let outcome = loop {
            tokio::select! {
                biased;
                outcome = &mut running => break outcome.unwrap(),
                () = tokio::task::yield_now() => {
                    if clock.sleepers() > 0 {
                        clock.advance_to_next();
                    }
                }
            }
        };
        let at = at.lock().unwrap().clone();
        (at, clock.monotonic().as_secs(), outcome.err().map(|error| error.to_string()))
    }

    const NEVER: fn(usize) -> bool = |_| false;

    #[tokio::test]
    async fn a_minute_holds_as_many_samples_as_the_deadline_allows() {
        let check = async |interval, deadline, expected: &[u64]| {
            let (at, _, error) = run(interval, deadline, 0, NEVER).await;
            assert_eq!((at.as_slice(), error), (expected, None), "every {interval} s until {deadline} s");
        };
        check(10, 58, &[3, 13, 23, 33, 43, 53]).await;
        check(10, 53, &[3, 13, 23, 33, 43]).await;
        check(25, 58, &[3, 28, 53]).await;
        check(60, 58, &[3]).await;
        // A longer timeout does not let two invocations sample side by side.
        check(10, 300, &[3, 13, 23, 33, 43, 53]).await;
        check(7, 300, &[3, 10, 17, 24, 31, 38, 45, 52, 59]).await;
    }

    #[tokio::test]
    async fn the_rate_is_fixed_however_long_a_sample_takes() {
        let (at, _, error) = run(10, 58, 4, NEVER).await;
        assert_eq!((at, error), (vec![3, 13, 23, 33, 43, 53], None));
    }

    #[tokio::test]
    async fn samples_that_were_missed_are_not_made_up_for() {
        let (at, _, error) = run(10, 58, 25, NEVER).await;
        assert_eq!((at, error), (vec![3, 28, 53], None));
    }

    #[tokio::test]
    async fn a_sample_that_hangs_is_cut_short_at_the_deadline() {
        let (at, ended, error) = run(10, 58, 1000, NEVER).await;
        assert_eq!((at, ended), (vec![3], 58));
        assert_eq!(error.as_deref(), Some("a sample took until the deadline"));
    }

    #[tokio::test]
    async fn a_sample_that_fails_does_not_end_the_others() {
        let (at, _, error) = run(10, 58, 0, |count| count != 4).await;
        assert_eq!((at.len(), error), (6, None));
    }

    #[tokio::test]
    async fn an_invocation_without_a_good_sample_fails() {
        let (at, _, error) = run(10, 58, 0, |_| true).await;
        assert_eq!((at.len(), error.as_deref()), (6, Some("failed to read the pressure state")));
        let (at, _, error) = run(10, 3, 0, NEVER).await;
        assert_eq!((at.len(), error.as_deref()), (0, Some("no time was left for a sample")));
    }
}
