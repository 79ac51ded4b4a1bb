//! The driver of a run: tasks that read and send, around a [`PublishRun`] that decides.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_ports::{Clock, Entropy};
use tokio::task::JoinSet;

use crate::batches::{EventBatch, EventBatches, SourceItem};
use crate::ending::RunEnding;
use crate::events::EventsError;
use crate::outcome::PublishOutcome;
use crate::run::{PublishRun, RunStep};

/// The host of a run: it has the signals, and people who look on.
pub trait RunHost<E: Error + 'static> {
    /// The next signal's exit code, after the pipe, if the events come from one, was closed. The
    /// future may be dropped and asked for again.
    fn next_signal(&mut self) -> impl Future<Output = u8>;

    /// Shows the progress if it is time, and returns when it wants to again.
    fn show_progress(&mut self, run: &PublishRun<E>, now: Duration) -> Option<Duration>;

    /// Shows a message beside the progress.
    fn tell(&mut self, text: &str);
}

/// A driver. `publish` sends a request, which may block.
#[derive(Debug)]
pub struct RateDriver<C, N, P> {
    /// The time.
    pub clock: C,
    /// The chance by which waits differ.
    pub entropy: N,
    /// The way to the server.
    pub publish: Arc<P>,
}

/// The end of a task.
enum TaskResult<S, E> {
    Read(EventBatches<S>, Result<Option<EventBatch>, EventsError>),
    Answered(u64, PublishOutcome<E>),
}

impl<C: Clock, N: Entropy, P> RateDriver<C, N, P> {
    /// Runs to the end, and returns the run. What still blocks then is left to the runtime.
    pub async fn drive<E, S>(
        &self,
        mut run: PublishRun<E>,
        batches: EventBatches<S>,
        host: &mut impl RunHost<E>,
    ) -> PublishRun<E>
    where
        E: Error + Send + 'static,
        S: Iterator<Item = Result<SourceItem, EventsError>> + Send + 'static,
        P: Fn(&EventBatch) -> PublishOutcome<E> + Send + Sync + 'static,
    {
        let mut batches = Some(batches);
        let mut tasks = JoinSet::new();
        loop {
            let now = self.clock.monotonic();
            let shown_at = host.show_progress(&run, now);
            let until = match run.next(now) {
                RunStep::Over => return run,
                RunStep::Read => {
                    if let Some(mut batches) = batches.take() {
                        tasks.spawn_blocking(move || {
                            let batch = batches.next_batch();
                            TaskResult::Read(batches, batch)
                        });
                    }
                    continue;
                }
                RunStep::Send(batch) => {
                    let publish = Arc::clone(&self.publish);
                    tasks
                        .spawn_blocking(move || TaskResult::Answered(batch.first, publish(&batch)));
                    continue;
                }
                RunStep::Wait(until) => until.into_iter().chain(shown_at).min(),
            };
            let wait = until.map_or(Duration::MAX, |until| until.saturating_sub(now));
            tokio::select! {
                Some(result) = tasks.join_next() => match result {
                    Ok(TaskResult::Read(rest, batch)) => {
                        batches = Some(rest);
                        run.take_batch(batch);
                    }
                    Ok(TaskResult::Answered(first, outcome)) => {
                        let now = self.clock.monotonic();
                        run.take_outcome(now, first, outcome, self.entropy.fraction());
                    }
                    Err(_) => run.abandon(RunEnding::Panicked),
                },
                exit_code = host.next_signal() => {
                    run.take_signal(exit_code);
                    if let Some(what) = run.waits_for() {
                        host.tell(&format!("{what}; interrupt again to go without that"));
                    }
                }
                () = self.clock.sleep(wait) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;
    use std::io;

    use posthaste_core::model::Timestamp;
    use posthaste_testkit::{ManualClock, SeededEntropy};

    use crate::batches::PackingSettings;
    use crate::events::EventReader;
    use crate::pace::PublishPace;

    /// A host without signals that shows nothing.
    struct SilentHost;

    impl RunHost<io::Error> for SilentHost {
        async fn next_signal(&mut self) -> u8 {
            pending().await
        }

        fn show_progress(&mut self, _: &PublishRun<io::Error>, _: Duration) -> Option<Duration> {
            None
        }

        fn tell(&mut self, _: &str) {}
    }

    fn run(
        publish: impl Fn(&EventBatch) -> PublishOutcome<io::Error> + Send + Sync + 'static,
    ) -> PublishRun<io::Error> {
        let packing = PackingSettings {
            events_max: 2,
            from: 0,
            content_type: None,
        };
        let batches = EventBatches::new(EventReader::new(&b"{}{}{}{}{}"[..]), packing);
        let driver = RateDriver {
            clock: ManualClock::new(Timestamp::EPOCH),
            entropy: SeededEntropy::new(1),
            publish: Arc::new(publish),
        };
        let run = PublishRun::new(PublishPace::new(None), 0, Duration::from_mins(15));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime.block_on(driver.drive(run, batches, &mut SilentHost))
    }

    #[test]
    fn every_batch_of_the_input_is_sent() {
        let run = run(|_| PublishOutcome::Acknowledged {
            pressure: None,
            report: None,
        });
        assert_eq!((run.counts().events, run.counts().requests), (5, 3));
        assert!(run.into_ending().is_none());
    }

    #[test]
    fn panic_of_a_task_ends_the_run() {
        let run = run(|_| panic!("as it should"));
        assert_eq!(run.resume_at(), 0);
        assert!(matches!(run.into_ending(), Some(RunEnding::Panicked)));
    }
}
