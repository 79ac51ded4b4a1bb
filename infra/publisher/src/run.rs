//! One run over a file: the next request, the effect of its answer, and the end. Pure: the driver
//! sends, reads, waits and has the clock.
//!
//! No batch is lost. It leaves the run only when it was acknowledged, and the place to go on from
//! is the first event that was not. Events that were taken from a pipe are published before a
//! signal ends the run, because they cannot be read again.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use crate::batches::EventBatch;
use crate::ending::RunEnding;
use crate::events::EventsError;
use crate::meter::RateMeter;
use crate::outcome::{PublishOutcome, PublishReport};
use crate::pace::{PublishPace, REQUESTS_AT_ONCE_MAX, SentBatch};
use crate::pressure_header::PressureHeader;

/// Greatest stretch of a wait, as a share of it, so that producers that were refused together do
/// not come back together. A wait is never shortened, because the server named it.
const STRETCH_MAX: f64 = 0.25;

/// Most batches that are held: those on their way or to be sent again, and one that is read ahead.
/// Each is a request's size at most, but for single events larger than that.
const BATCHES_MAX: usize = REQUESTS_AT_ONCE_MAX as usize + 1;

/// Time after which a run gives up where no request was ever answered: the address or the
/// certificate is wrong, or no server runs there. Long enough for a server that is just starting.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(30);

/// The next step of the driver.
#[derive(Debug, PartialEq, Eq)]
pub enum RunStep {
    /// Send this batch, and say how it was answered.
    Send(Arc<EventBatch>),
    /// Read a batch, and say what came.
    Read,
    /// Wait for an answer, a batch or a signal, and at most until this time.
    Wait(Option<Duration>),
    /// The run is over.
    Over,
}

/// Counts of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RunCounts {
    /// Events that were acknowledged.
    pub events: u64,
    /// Requests that were acknowledged.
    pub requests: u64,
    /// Answers that the tarpit delayed: acknowledgements that were held back, and requests that
    /// were asked to come again after the delay. The server's `PublishDelayedCount` counts the
    /// same.
    pub delayed: u64,
    /// Answers that refused a request for back pressure.
    pub refused: u64,
    /// Requests that were sent again.
    pub retried: u64,
    /// Counts of the server's answers, if they have any.
    pub report: Option<PublishReport>,
}

/// A run; `E` is the error of a request.
#[derive(Debug)]
pub struct PublishRun<E: Error + 'static> {
    pace: PublishPace,
    meter: RateMeter,
    give_up_after: Duration,
    is_pipe: bool,
    /// Batches that are not acknowledged yet, by the number of their first event.
    tasks: BTreeMap<u64, BatchTask>,
    input: InputState,
    /// The first event that was not read.
    unread: u64,
    /// The error of the source. Events that were read are published before it is reported.
    broken: Option<EventsError>,
    ending: Option<RunEnding<E>>,
    /// Exit code of the signal, while events that were taken from a pipe are still being
    /// published.
    closing: Option<u8>,
    /// True once the run no longer waits for answers.
    is_abandoned: bool,
    counts: RunCounts,
    pressure: Option<PressureHeader>,
    /// The last reason to send something again.
    trouble: Option<E>,
    /// True once any request was answered.
    is_met: bool,
    /// Time of the last acknowledgement, or of the first request.
    progress_at: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InputState {
    Idle,
    Asked,
    Over,
}

/// A batch that is not acknowledged yet.
#[derive(Debug)]
struct BatchTask {
    batch: Arc<EventBatch>,
    attempts: u32,
    /// Time of sending, while its request is on its way.
    sent_at: Option<Duration>,
    /// Earliest time of the next request.
    not_before: Duration,
}

impl<E: Error + 'static> PublishRun<E> {
    /// A run that begins with the event `from`, and gives up after this time without an
    /// acknowledgement.
    pub fn new(pace: PublishPace, from: u64, give_up_after: Duration) -> Self {
        Self {
            pace,
            meter: RateMeter::default(),
            give_up_after,
            is_pipe: false,
            tasks: BTreeMap::new(),
            input: InputState::Idle,
            unread: from,
            broken: None,
            ending: None,
            closing: None,
            is_abandoned: false,
            counts: RunCounts::default(),
            pressure: None,
            trouble: None,
            is_met: false,
            progress_at: Duration::ZERO,
        }
    }

    /// The same for events that cannot be read again, if this is true.
    pub fn of_pipe(self, is_pipe: bool) -> Self {
        Self { is_pipe, ..self }
    }

    /// The next step.
    pub fn next(&mut self, now: Duration) -> RunStep {
        let is_done = self.input == InputState::Over && self.tasks.is_empty();
        if self.ending.is_none() {
            self.ending = if is_done {
                let broken = self.broken.take().map(RunEnding::Input);
                broken.or(self
                    .closing
                    .map(|exit_code| RunEnding::Interrupted { exit_code }))
            } else {
                self.give_up(now)
            };
        }
        if is_done || self.ending.is_some() {
            let is_awaited = !self.is_abandoned && self.in_flight() > 0;
            return if is_awaited {
                RunStep::Wait(None)
            } else {
                RunStep::Over
            };
        }
        if self.input == InputState::Idle
            && self.tasks.len() < BATCHES_MAX
            && self.tasks.values().all(|task| task.attempts > 0)
        {
            self.input = InputState::Asked;
            return RunStep::Read;
        }
        self.send_batch(now)
            .unwrap_or_else(|| RunStep::Wait(self.wake_at()))
    }

    /// Takes the result of a [`RunStep::Read`].
    pub fn take_batch(&mut self, batch: Result<Option<EventBatch>, EventsError>) {
        self.input = InputState::Over;
        match batch {
            Ok(Some(batch)) => {
                self.input = InputState::Idle;
                self.unread = batch.end_index();
                let first = batch.first;
                let task = BatchTask {
                    batch: Arc::new(batch),
                    attempts: 0,
                    sent_at: None,
                    not_before: Duration::ZERO,
                };
                self.tasks.insert(first, task);
            }
            Ok(None) => {}
            Err(error) => self.broken = Some(error),
        }
    }

    /// Takes the result of a [`RunStep::Send`], by the number of its first event. `chance` is uniform
    /// in 0 to 1.
    pub fn take_outcome(
        &mut self,
        now: Duration,
        first: u64,
        outcome: PublishOutcome<E>,
        chance: f64,
    ) {
        let Some(task) = self.tasks.get_mut(&first) else {
            return;
        };
        let Some(at) = task.sent_at.take() else {
            return;
        };
        let events = task.batch.event_count();
        let sent = SentBatch { at, events };
        let stretch = 1.0 + STRETCH_MAX * chance;
        self.is_met |= !matches!(
            outcome,
            PublishOutcome::Unclear {
                is_response: false,
                ..
            }
        );
        match outcome {
            PublishOutcome::Acknowledged { pressure, report } => {
                self.tasks.remove(&first);
                self.note_acknowledged(now, sent, pressure, report);
            }
            PublishOutcome::Refused {
                wait,
                pressure,
                is_delay,
                error,
            } => {
                let measured = self.meter.per_second(now);
                self.pace
                    .note_pushed_back(sent, now, wait.mul_f64(stretch), measured);
                self.counts.delayed += u64::from(is_delay);
                self.counts.refused += u64::from(!is_delay);
                self.pressure = pressure;
                self.trouble = Some(error);
            }
            PublishOutcome::InUse { wait, error } => {
                task.not_before = now.saturating_add(wait.mul_f64(stretch));
                self.trouble = Some(error);
            }
            PublishOutcome::Unclear { wait, error, .. } => {
                self.pace.note_failed(sent, now, wait, stretch);
                self.trouble = Some(error);
            }
            PublishOutcome::Final { index, error } => {
                let batch = Arc::clone(&task.batch);
                self.ending
                    .get_or_insert_with(|| RunEnding::for_refusal(&batch, index, error));
            }
        }
    }

    /// Takes a signal. After the first one the run waits for answers, and publishes the events that
    /// were taken from a pipe, which the driver closes. After the second one it waits for
    /// nothing.
    pub fn take_signal(&mut self, exit_code: u8) {
        let is_first = self.ending.is_none() && self.closing.is_none();
        if is_first && self.is_pipe {
            self.closing = Some(exit_code);
            return;
        }
        self.is_abandoned = !is_first;
        self.ending
            .get_or_insert(RunEnding::Interrupted { exit_code });
    }

    /// The work that the run still waits for after a signal, if there is any.
    pub fn waits_for(&self) -> Option<&'static str> {
        let is_open = self.input != InputState::Over || !self.tasks.is_empty();
        if self.is_abandoned {
            None
        } else if self.closing.is_some() && self.ending.is_none() && is_open {
            Some("publishing what was taken from the pipe")
        } else {
            (self.in_flight() > 0).then_some("waiting for the answers to what was sent")
        }
    }

    /// Counts of the run.
    pub fn counts(&self) -> RunCounts {
        self.counts
    }

    /// Events per second, in the last seconds.
    pub fn per_second(&self, now: Duration) -> f64 {
        self.meter.per_second(now)
    }

    /// The pressure that the server last named, if any.
    pub fn pressure(&self) -> Option<&PressureHeader> {
        self.pressure.as_ref()
    }

    /// The reason why nothing is sent, and for how long.
    pub fn idle_reason(&self, now: Duration) -> Option<(&E, Duration)> {
        let is_idle = self.in_flight() == 0 && !self.tasks.is_empty();
        let until = self.wake_at().filter(|until| is_idle && *until > now)?;
        Some((self.trouble.as_ref()?, until.saturating_sub(now)))
    }

    /// The first event that is not known to be published: the place to go on from.
    pub fn resume_at(&self) -> u64 {
        self.tasks.keys().next().copied().unwrap_or(self.unread)
    }

    /// Ends the run for a reason of the driver. It waits for no more answers.
    pub fn abandon(&mut self, ending: RunEnding<E>) {
        self.ending.get_or_insert(ending);
        self.is_abandoned = true;
    }

    /// The reason for an end before the end of the file, if there is one.
    pub fn into_ending(self) -> Option<RunEnding<E>> {
        self.ending
    }

    /// Number of requests on their way.
    fn in_flight(&self) -> usize {
        self.tasks.len() - self.waiting_tasks().count()
    }

    fn waiting_tasks(&self) -> impl Iterator<Item = &BatchTask> {
        self.tasks.values().filter(|task| task.sent_at.is_none())
    }

    fn note_acknowledged(
        &mut self,
        now: Duration,
        sent: SentBatch,
        pressure: Option<PressureHeader>,
        report: Option<PublishReport>,
    ) {
        let delay = pressure.as_ref().and_then(PressureHeader::delay);
        self.pace.note_acknowledged(sent, now, delay);
        self.meter.add_events(now, sent.events);
        self.counts.events += u64::from(sent.events);
        self.counts.requests += 1;
        self.counts.delayed += u64::from(delay.is_some_and(|delay| sent.was_held(now, delay)));
        if let Some(report) = report {
            let reports = self.counts.report.get_or_insert_default();
            reports.add_counts(report);
        }
        self.progress_at = now;
        self.pressure = pressure;
        self.trouble = None;
    }

    fn give_up(&mut self, now: Duration) -> Option<RunEnding<E>> {
        self.gives_up_at().filter(|at| *at <= now)?;
        let length = self.give_up_wait();
        let source = self.trouble.take()?;
        Some(RunEnding::GaveUp { length, source })
    }

    /// Time to give up, if every request waits to be sent again. An answer that is still to come
    /// may be a good one.
    fn gives_up_at(&self) -> Option<Duration> {
        let is_stuck = self.trouble.is_some() && self.in_flight() == 0 && !self.tasks.is_empty();
        is_stuck.then(|| self.progress_at.saturating_add(self.give_up_wait()))
    }

    fn give_up_wait(&self) -> Duration {
        if self.is_met {
            self.give_up_after
        } else {
            self.give_up_after.min(FIRST_ANSWER_MAX)
        }
    }

    fn has_room(&self) -> bool {
        self.in_flight() < self.pace.requests_at_once() as usize
    }

    /// Time of the next step, if nothing happens before.
    fn wake_at(&self) -> Option<Duration> {
        let waiting = self.waiting_tasks().filter(|_| self.has_room());
        let first = waiting.map(|task| task.not_before).min();
        let first = first.map(|not_before| not_before.max(self.pace.next_at()));
        first.into_iter().chain(self.gives_up_at()).min()
    }

    /// Sends the first batch that may be sent now.
    fn send_batch(&mut self, now: Duration) -> Option<RunStep> {
        if !self.has_room() || self.pace.next_at() > now {
            return None;
        }
        let due = self.waiting_tasks().find(|task| task.not_before <= now);
        let first = due?.batch.first;
        self.meter.start(now);
        if self.tasks.values().all(|task| task.attempts == 0) {
            self.progress_at = now;
        }
        let task = self.tasks.get_mut(&first)?;
        self.counts.retried += u64::from(task.attempts > 0);
        task.attempts += 1;
        task.sent_at = Some(now);
        self.pace.note_sent(SentBatch {
            at: now,
            events: task.batch.event_count(),
        });
        Some(RunStep::Send(Arc::clone(&task.batch)))
    }
}

#[cfg(test)]
mod tests;
