//! monitor's minute: a schedule can start a function once a minute at most, and the queues are
//! looked at more often.

use std::future::Future;
use std::time::Duration;

use lambda_runtime::Error;
use posthaste_aws::lambda::ScheduledFunction;
use posthaste_core::pressure::PressureState;
use posthaste_monitor::{Monitor, MonitorError};
use posthaste_ports::{Clock, DrainSource, Ports, ResourceProbe};
use posthaste_services::timeout_at;
use tokio::sync::Mutex;

/// The time from one start of the function to the next.
pub(crate) const MINUTE: Duration = Duration::from_mins(1);

/// Takes samples.
pub trait PressureSampler: Send + 'static {
    /// Takes one sample, and returns the pressure.
    fn sample(&mut self) -> impl Future<Output = Result<PressureState, MonitorError>> + Send;
}

/// Samples for the length of an invocation: at once, and then at a fixed rate for as long as
/// another sample falls before the deadline and before the next invocation, which begins with one
/// of its own. It ends with the first sample that finds everything calm: an invocation is billed
/// while it sleeps.
///
/// A sample that fails is logged, and the next one is taken; an invocation fails only where none
/// succeeded.
#[derive(Debug)]
pub struct InvocationSampling<M, C> {
    sampler: Mutex<M>,
    pub(crate) interval: Duration,
    clock: C,
}

impl<M: PressureSampler, C: Clock> InvocationSampling<M, C> {
    /// Takes a sample every `interval`.
    pub fn new(sampler: M, interval: Duration, clock: C) -> Self {
        Self {
            sampler: Mutex::new(sampler),
            interval,
            clock,
        }
    }

    async fn sleep_until(&self, time: Duration) {
        self.clock
            .sleep(time.saturating_sub(self.clock.monotonic()))
            .await;
    }
}

impl<M: PressureSampler, C: Clock> ScheduledFunction for InvocationSampling<M, C> {
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        let mut sampler = self.sampler.lock().await;
        let mut next = self.clock.monotonic();
        let end = deadline.min(next + MINUTE);
        let mut outcome = Err(Error::from("no time was left for a sample"));
        while next < end {
            self.sleep_until(next).await;
            let taken = timeout_at(&self.clock, deadline, sampler.sample()).await;
            let taken = taken.map_or_else(
                || Err(Error::from("a sample took until the deadline")),
                |taken| taken.map_err(Error::from),
            );
            if taken.as_ref().is_ok_and(PressureState::is_calm) {
                return Ok(());
            }
            if let Err(error) = &taken {
                tracing::error!(
                    error = &**error as &dyn std::error::Error,
                    "resources not sampled"
                );
            }
            outcome = outcome.or(taken.map(drop));
            // A missed sample is not made up for.
            next = (next + self.interval).max(self.clock.monotonic());
        }
        outcome
    }
}

impl<P: Ports, R: ResourceProbe + 'static, D: DrainSource + 'static> PressureSampler
    for Monitor<P, R, D>
{
    async fn sample(&mut self) -> Result<PressureState, MonitorError> {
        // The SDK's futures lie so deep in one another that the compiler refuses one more layer; a
        // box ends the depth.
        Box::pin(Monitor::poll_once(self)).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex as StdMutex};

    use super::*;
    use posthaste_core::model::Timestamp;
    use posthaste_core::pressure::{PressureSettings, ResourceReadings, evaluate_pressure};
    use posthaste_ports::{ErrorKind, PortError};
    use posthaste_testkit::ManualClock;

    /// Records when it was called, takes `takes`, and returns the entry of `answers` for the number
    /// of the call.
    struct Notes {
        clock: ManualClock,
        takes: Duration,
        answers: fn(usize) -> Answer,
        at: Arc<StdMutex<Vec<u64>>>,
    }

    /// The result of a sample.
    enum Answer {
        Calm,
        Tarpit,
        Failure,
    }

    impl PressureSampler for Notes {
        async fn sample(&mut self) -> Result<PressureState, MonitorError> {
            let count = {
                let mut at = self.at.lock().unwrap();
                at.push(self.clock.monotonic().as_secs());
                at.len()
            };
            if !self.takes.is_zero() {
                self.clock.sleep(self.takes).await;
            }
            let readings = ResourceReadings {
                visible: Some(0),
                ..ResourceReadings::default()
            };
            let before = PressureState::normal(Timestamp::EPOCH);
            let (calm, _) =
                evaluate_pressure(&before, &readings, &PressureSettings::default(), before.at);
            match (self.answers)(count) {
                Answer::Calm => Ok(calm),
                Answer::Tarpit => Ok(PressureState {
                    tarpit_ms: 5_000,
                    ..calm
                }),
                Answer::Failure => {
                    Err(MonitorError::Read(PortError::new("read", ErrorKind::Other)))
                }
            }
        }
    }

    /// Runs one invocation from second 3 on, and returns when it sampled, when it ended, and its
    /// error.
    async fn run(
        interval: u64,
        deadline: u64,
        takes: u64,
        answers: fn(usize) -> Answer,
    ) -> (Vec<u64>, u64, Option<String>) {
        let clock = ManualClock::new(Timestamp::EPOCH);
        clock.advance(Duration::from_secs(3));
        let at = Arc::default();
        let takes = Duration::from_secs(takes);
        let notes = Notes {
            clock: clock.clone(),
            takes,
            answers,
            at: Arc::clone(&at),
        };
        let sampling = InvocationSampling::new(notes, Duration::from_secs(interval), clock.clone());
        let mut running =
            tokio::spawn(async move { sampling.run(Duration::from_secs(deadline)).await });
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
        (
            at,
            clock.monotonic().as_secs(),
            outcome.err().map(|error| error.to_string()),
        )
    }

    const UNDER_PRESSURE: fn(usize) -> Answer = |_| Answer::Tarpit;

    #[tokio::test]
    async fn a_minute_holds_as_many_samples_as_the_deadline_allows() {
        let check = async |interval, deadline, expected: &[u64]| {
            let (at, _, error) = run(interval, deadline, 0, UNDER_PRESSURE).await;
            assert_eq!(
                (at.as_slice(), error),
                (expected, None),
                "every {interval} s until {deadline} s"
            );
        };
        check(10, 58, &[3, 13, 23, 33, 43, 53]).await;
        check(10, 53, &[3, 13, 23, 33, 43]).await;
        check(25, 58, &[3, 28, 53]).await;
        check(60, 58, &[3]).await;
        // A longer timeout does not let two invocations sample side by side.
        check(10, 300, &[3, 13, 23, 33, 43, 53]).await;
        check(7, 300, &[3, 10, 17, 24, 31, 38, 45, 52, 59]).await;
    }

    /// An invocation ends with the first sample that finds everything calm.
    #[tokio::test]
    async fn invocation_ends_with_the_first_calm_sample() {
        let (at, ended, error) = run(10, 58, 0, |_| Answer::Calm).await;
        assert_eq!((at, ended, error), (vec![3], 3, None));
        let calms_down = |count| {
            if count < 3 {
                Answer::Tarpit
            } else {
                Answer::Calm
            }
        };
        let (at, ended, error) = run(10, 58, 0, calms_down).await;
        assert_eq!((at, ended, error), (vec![3, 13, 23], 23, None));
        // A sample that failed says nothing.
        let recovers = |count| {
            if count < 2 {
                Answer::Failure
            } else {
                Answer::Calm
            }
        };
        let (at, _, error) = run(10, 58, 0, recovers).await;
        assert_eq!((at, error), (vec![3, 13], None));
    }

    #[tokio::test]
    async fn the_rate_is_fixed_however_long_a_sample_takes() {
        let (at, _, error) = run(10, 58, 4, UNDER_PRESSURE).await;
        assert_eq!((at, error), (vec![3, 13, 23, 33, 43, 53], None));
    }

    #[tokio::test]
    async fn samples_that_were_missed_are_not_made_up_for() {
        let (at, _, error) = run(10, 58, 25, UNDER_PRESSURE).await;
        assert_eq!((at, error), (vec![3, 28, 53], None));
    }

    #[tokio::test]
    async fn a_sample_that_hangs_is_cut_short_at_the_deadline() {
        let (at, ended, error) = run(10, 58, 1000, UNDER_PRESSURE).await;
        assert_eq!((at, ended), (vec![3], 58));
        assert_eq!(error.as_deref(), Some("a sample took until the deadline"));
    }

    #[tokio::test]
    async fn a_sample_that_fails_does_not_end_the_others() {
        let (at, _, error) = run(10, 58, 0, |count| {
            if count == 4 {
                Answer::Tarpit
            } else {
                Answer::Failure
            }
        })
        .await;
        assert_eq!((at.len(), error), (6, None));
    }

    #[tokio::test]
    async fn an_invocation_without_a_good_sample_fails() {
        let (at, _, error) = run(10, 58, 0, |_| Answer::Failure).await;
        assert_eq!(
            (at.len(), error.as_deref()),
            (6, Some("failed to read the pressure state"))
        );
        let (at, _, error) = run(10, 3, 0, UNDER_PRESSURE).await;
        assert_eq!(
            (at.len(), error.as_deref()),
            (0, Some("no time was left for a sample"))
        );
    }
}
