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
use crate::outcome::{PublishOutcome, PublishReport, RetryReason};
use crate::pace::{AnsweredBatch, PublishPace, REQUESTS_AT_ONCE_MAX};
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
    is_pipe: bool,
    /// Batches that wait for their first request or for another one, by the number of their first
    /// event.
    waiting: BTreeMap<u64, BatchTask>,
    /// Batches whose request is on its way.
    in_flight: BTreeMap<u64, BatchTask>,
    input: InputState,
    /// The first event that was not read.
    unread: u64,
    ending: Option<RunEnding<E>>,
    /// The fault of the source: the ending once everything before it is published.
    broken: Option<EventsError>,
    /// The exit code of the signal that closed the pipe: the ending once everything that was taken
    /// is published, if the source was not broken.
    closing: Option<u8>,
    /// True once the run no longer waits for answers.
    is_abandoned: bool,
    counts: RunCounts,
    pressure: Option<PressureHeader>,
    /// The last reason to send something again.
    trouble: Option<E>,
    /// Longest time without an acknowledgement, now and once any request was answered.
    patience: Duration,
    give_up_after: Duration,
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
#[derive(Debug, Default)]
struct BatchTask {
    batch: Arc<EventBatch>,
    attempts: u32,
    /// Time of the last request.
    sent_at: Duration,
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
            is_pipe: false,
            waiting: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            input: InputState::Idle,
            unread: from,
            ending: None,
            broken: None,
            closing: None,
            is_abandoned: false,
            counts: RunCounts::default(),
            pressure: None,
            trouble: None,
            patience: give_up_after.min(FIRST_ANSWER_MAX),
            give_up_after,
            progress_at: Duration::ZERO,
        }
    }

    /// The same for events that cannot be read again, if this is true.
    pub fn of_pipe(self, is_pipe: bool) -> Self {
        Self { is_pipe, ..self }
    }

    /// The next step.
    pub fn next(&mut self, now: Duration) -> RunStep {
        let is_done = self.is_done();
        if self.ending.is_none() {
            self.ending = if is_done {
                self.take_last_ending()
            } else {
                self.give_up(now)
            };
        }
        if is_done || self.ending.is_some() {
            return if self.is_abandoned || self.in_flight.is_empty() {
                RunStep::Over
            } else {
                RunStep::Wait(None)
            };
        }
        if self.input == InputState::Idle
            && self.waiting.len() + self.in_flight.len() < BATCHES_MAX
            && self.waiting.values().all(|task| task.attempts > 0)
        {
            self.input = InputState::Asked;
            return RunStep::Read;
        }
        let sent = self.send_batch(now).map(RunStep::Send);
        sent.unwrap_or_else(|| RunStep::Wait(self.wake_at(now)))
    }

    /// Takes the result of a [`RunStep::Read`].
    pub fn take_batch(&mut self, batch: Result<Option<EventBatch>, EventsError>) {
        self.input = InputState::Over;
        match batch {
            Ok(Some(batch)) => {
                self.input = InputState::Idle;
                self.unread = batch.end_index();
                let task = BatchTask {
                    batch: Arc::new(batch),
                    ..BatchTask::default()
                };
                self.waiting.insert(task.batch.first, task);
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
        let Some(mut task) = self.in_flight.remove(&first) else {
            return;
        };
        let batch = AnsweredBatch {
            sent_at: task.sent_at,
            answered_at: now,
            events: task.batch.event_count(),
        };
        let stretch = 1.0 + STRETCH_MAX * chance;
        match outcome {
            PublishOutcome::Acknowledged { pressure, report } => {
                self.patience = self.give_up_after;
                return self.note_acknowledged(batch, pressure, report);
            }
            PublishOutcome::Again { reason, error } => {
                task.not_before = self.note_retry(batch, reason, stretch);
                self.trouble = Some(error);
            }
            PublishOutcome::Final { index, error } => {
                let ending = RunEnding::for_refusal(&task.batch, index, error);
                self.ending.get_or_insert(ending);
            }
        }
        self.waiting.insert(first, task);
    }

    /// Takes a signal. After the first one the run waits for answers, and publishes the events that
    /// were taken from a pipe, which is closed. After the second one it waits for nothing.
    pub fn take_signal(&mut self, exit_code: u8) {
        let interrupted = RunEnding::Interrupted { exit_code };
        if self.ending.is_some() || self.closing.is_some() {
            self.abandon(interrupted);
        } else if self.is_pipe {
            self.closing = Some(exit_code);
        } else {
            self.ending = Some(interrupted);
        }
    }

    /// The work that the run still waits for after a signal, if there is any.
    pub fn waits_for(&self) -> Option<&'static str> {
        if self.is_abandoned {
            None
        } else if self.closing.is_some() && self.ending.is_none() && !self.is_done() {
            Some("publishing what was taken from the pipe")
        } else {
            (!self.in_flight.is_empty()).then_some("waiting for the answers to what was sent")
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
        let trouble = self
            .trouble
            .as_ref()
            .filter(|_| self.in_flight.is_empty())?;
        let until = self.wake_at(now).filter(|until| *until > now)?;
        Some((trouble, until.saturating_sub(now)))
    }

    /// The first event that is not known to be published: the place to go on from.
    pub fn resume_at(&self) -> u64 {
        let firsts = self.waiting.keys().chain(self.in_flight.keys());
        firsts.min().copied().unwrap_or(self.unread)
    }

    /// Ends the run at once. It waits for no more answers.
    pub fn abandon(&mut self, ending: RunEnding<E>) {
        self.ending.get_or_insert(ending);
        self.is_abandoned = true;
    }

    /// The reason for an end before the end of the file, if there is one.
    pub fn into_ending(self) -> Option<RunEnding<E>> {
        self.ending
    }

    fn is_done(&self) -> bool {
        self.input == InputState::Over && self.waiting.is_empty() && self.in_flight.is_empty()
    }

    /// The reason why there was no more to read, if it is not the end of the source.
    fn take_last_ending(&mut self) -> Option<RunEnding<E>> {
        if let Some(error) = self.broken.take() {
            return Some(RunEnding::Input(error));
        }
        let exit_code = self.closing?;
        Some(RunEnding::Interrupted { exit_code })
    }

    fn note_acknowledged(
        &mut self,
        batch: AnsweredBatch,
        pressure: Option<PressureHeader>,
        report: Option<PublishReport>,
    ) {
        let delay = pressure.as_ref().and_then(PressureHeader::delay);
        self.pace.note_acknowledged(batch, delay);
        self.meter.add_events(batch.answered_at, batch.events);
        self.counts.events += u64::from(batch.events);
        self.counts.requests += 1;
        self.counts.delayed += u64::from(delay.is_some_and(|delay| batch.was_held(delay)));
        if let Some(report) = report {
            let reports = self.counts.report.get_or_insert_default();
            reports.add_counts(report);
        }
        self.progress_at = batch.answered_at;
        self.pressure = pressure;
        self.trouble = None;
    }

    /// Takes a batch that has to be sent again, and returns the earliest time for it.
    fn note_retry(&mut self, batch: AnsweredBatch, reason: RetryReason, stretch: f64) -> Duration {
        if !matches!(reason, RetryReason::Unanswered) {
            self.patience = self.give_up_after;
        }
        match reason {
            RetryReason::Refused {
                wait,
                pressure,
                is_delay,
            } => {
                let measured = self.meter.per_second(batch.answered_at);
                let wait = wait.mul_f64(stretch);
                self.pace.note_pushed_back(batch, wait, measured);
                self.counts.delayed += u64::from(is_delay);
                self.counts.refused += u64::from(!is_delay);
                self.pressure = pressure;
            }
            RetryReason::InUse(wait) => {
                return batch.answered_at.saturating_add(wait.mul_f64(stretch));
            }
            RetryReason::Unclear(wait) => self.pace.note_failed(batch, wait, stretch),
            RetryReason::Unanswered => self.pace.note_failed(batch, None, stretch),
        }
        Duration::ZERO
    }

    fn give_up(&mut self, now: Duration) -> Option<RunEnding<E>> {
        self.gives_up_at().filter(|at| *at <= now)?;
        let length = self.patience;
        let source = self.trouble.take()?;
        Some(RunEnding::GaveUp { length, source })
    }

    /// Time to give up, if every request waits to be sent again. An answer that is still to come
    /// may be a good one.
    fn gives_up_at(&self) -> Option<Duration> {
        let is_stuck = self.in_flight.is_empty() && !self.waiting.is_empty();
        let is_stuck = is_stuck && self.trouble.is_some();
        is_stuck.then(|| self.progress_at.saturating_add(self.patience))
    }

    /// The first batch that may be sent soonest, by the number of its first event, and the time.
    fn next_due(&self, now: Duration) -> Option<(Duration, u64)> {
        if self.in_flight.len() >= self.pace.requests_at_once() as usize {
            return None;
        }
        let earliest = now.max(self.pace.next_at());
        let waiting = self.waiting.iter();
        waiting
            .map(|(first, task)| (task.not_before.max(earliest), *first))
            .min()
    }

    /// Time of the next step, if nothing happens before.
    fn wake_at(&self, now: Duration) -> Option<Duration> {
        let due = self.next_due(now).map(|(at, _)| at);
        due.into_iter().chain(self.gives_up_at()).min()
    }

    /// Begins to send the first batch that may be sent now.
    fn send_batch(&mut self, now: Duration) -> Option<Arc<EventBatch>> {
        let (_, first) = self.next_due(now).filter(|(at, _)| *at <= now)?;
        if self.in_flight.is_empty() && self.waiting.values().all(|task| task.attempts == 0) {
            self.progress_at = now;
        }
        let mut task = self.waiting.remove(&first)?;
        self.meter.start(now);
        self.counts.retried += u64::from(task.attempts > 0);
        task.attempts += 1;
        task.sent_at = now;
        let batch = Arc::clone(&task.batch);
        self.pace.note_sent(now, batch.event_count());
        self.in_flight.insert(first, task);
        Some(batch)
    }
}

#[cfg(test)]
mod tests;
