//! One run over a file: the next request, the effect of its answer, and the end. Pure: the driver
//! sends, reads, waits and has the clock.
//!
//! No batch is lost. It leaves the run only when it was acknowledged, and the place to go on from
//! is the first event that was not. Events that were taken from a pipe are published before a
//! signal ends the run, because they cannot be read again.

use std::sync::Arc;
use std::time::Duration;

use super::batches::EventBatch;
use super::ending::RunEnding;
use super::events::EventsError;
use super::meter::RateMeter;
use super::outcome::PublishOutcome;
use super::pace::{PublishPace, REQUESTS_AT_ONCE_MAX, SentBatch};
use super::pressure_header::PressureHeader;
use super::report::PublishReport;
use super::step::{RunCounts, RunStep};
use super::unacknowledged::{BatchState, UnacknowledgedBatches};
use crate::client::ClientError;

/// Greatest stretch of a wait, as a share of it, so that producers that were refused together do
/// not come back together. A wait is never shortened, because the server named it.
const STRETCH_MAX: f64 = 0.25;

/// Most batches that are held: those on their way or to be sent again, and one that is read ahead.
/// Each is a request's size at most, but for single events larger than that.
const BATCHES_MAX: usize = REQUESTS_AT_ONCE_MAX as usize + 1;

/// Time after which a run gives up where no request was ever answered: the address or the
/// certificate is wrong, or no server runs there. Long enough for a server that is just starting.
const FIRST_ANSWER_MAX: Duration = Duration::from_secs(30);

/// A run.
#[derive(Debug, Default)]
pub(super) struct PublishRun {
    pace: PublishPace,
    meter: RateMeter,
    give_up_after: Duration,
    is_pipe: bool,
    tasks: UnacknowledgedBatches,
    input: InputState,
    /// The first event that was not read.
    unread: u64,
    /// The error of the source. Events that were read are published before it is reported.
    broken: Option<EventsError>,
    ending: Option<RunEnding>,
    /// Exit code of the signal, while events that were taken from a pipe are still being
    /// published.
    closing: Option<u8>,
    /// True once the run no longer waits for answers.
    is_abandoned: bool,
    counts: RunCounts,
    pressure: Option<PressureHeader>,
    /// The last reason to send something again.
    trouble: Option<ClientError>,
    /// True once any request was answered.
    is_met: bool,
    /// Time of the last acknowledgement, or of the first request.
    progress_at: Duration,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum InputState {
    #[default]
    Idle,
    Asked,
    Over,
}

impl PublishRun {
    /// A run that begins with the event `from`, and gives up after this time without an
    /// acknowledgement.
    pub(super) fn new(pace: PublishPace, from: u64, give_up_after: Duration) -> Self {
        Self {
            pace,
            unread: from,
            give_up_after,
            ..Self::default()
        }
    }

    /// The same for events that cannot be read again.
    pub(super) fn of_pipe(self) -> Self {
        Self {
            is_pipe: true,
            ..self
        }
    }

    /// The next step.
    pub(super) fn next(&mut self, now: Duration) -> RunStep {
        self.end_if_over(now);
        if self.ending.is_some() {
            let is_over = self.is_abandoned || self.in_flight() == 0;
            return if is_over {
                RunStep::Over
            } else {
                RunStep::Wait(None)
            };
        }
        if self.input == InputState::Idle
            && self.tasks.len() < BATCHES_MAX
            && !self.tasks.has_fresh()
        {
            self.input = InputState::Asked;
            return RunStep::Read;
        }
        match self.due_batch(now) {
            Some(first) => self.send_batch(first, now),
            None => RunStep::Wait(self.wake_at()),
        }
    }

    /// Takes the result of a [`RunStep::Read`].
    pub(super) fn take_batch(&mut self, batch: Result<Option<EventBatch>, EventsError>) {
        self.input = InputState::Over;
        match batch {
            Ok(Some(batch)) => {
                self.input = InputState::Idle;
                self.unread = batch.end_index();
                self.tasks.add_batch(batch);
            }
            Ok(None) => {}
            Err(error) => self.broken = Some(error),
        }
    }

    /// Takes the result of a [`RunStep::Send`], by the number of its first event. `chance` is uniform
    /// in 0 to 1.
    pub(super) fn take_outcome(
        &mut self,
        now: Duration,
        first: u64,
        outcome: PublishOutcome,
        chance: f64,
    ) {
        let Some(task) = self.tasks.get_mut(first) else {
            return;
        };
        let BatchState::InFlight { since } = task.state else {
            return;
        };
        let sent = SentBatch {
            at: since,
            events: task.batch.event_count(),
        };
        let stretch = 1.0 + STRETCH_MAX * chance;
        task.state = BatchState::Waiting {
            not_before: Duration::ZERO,
        };
        self.is_met |= outcome.is_response();
        match outcome {
            PublishOutcome::Acknowledged { pressure, report } => {
                self.tasks.remove(first);
                self.note_acknowledged(now, sent, pressure);
                self.add_report(report);
            }
            PublishOutcome::Refused {
                wait,
                pressure,
                error,
            } => {
                let measured = self.meter.per_second(now);
                self.pace
                    .note_pushed_back(sent, now, wait.mul_f64(stretch), measured);
                let is_delay =
                    matches!(&error, ClientError::Refused(refusal) if refusal.is_delay());
                self.counts.delayed += u64::from(is_delay);
                self.counts.refused += u64::from(!is_delay);
                self.pressure = pressure;
                self.trouble = Some(error);
            }
            PublishOutcome::InUse { wait, error } => {
                let not_before = now.saturating_add(wait.mul_f64(stretch));
                task.state = BatchState::Waiting { not_before };
                self.trouble = Some(error);
            }
            PublishOutcome::Unclear { wait, error } => {
                self.pace.note_failed(sent, now, wait, stretch);
                self.trouble = Some(error);
            }
            PublishOutcome::Final(error) => {
                let batch = Arc::clone(&task.batch);
                self.ending
                    .get_or_insert_with(|| RunEnding::for_refusal(&batch, error));
            }
        }
    }

    /// Takes a signal. After the first one the run waits for answers, and publishes the events that
    /// were taken from a pipe, which the driver closes. After the second one it waits for
    /// nothing.
    pub(super) fn take_signal(&mut self, exit_code: u8) {
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
    pub(super) fn waits_for(&self) -> Option<&'static str> {
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
    pub(super) fn counts(&self) -> RunCounts {
        self.counts
    }

    /// Events per second, in the last seconds.
    pub(super) fn per_second(&self, now: Duration) -> f64 {
        self.meter.per_second(now)
    }

    /// The pressure that the server last named, if any.
    pub(super) fn pressure(&self) -> Option<&PressureHeader> {
        self.pressure.as_ref()
    }

    /// The reason why nothing is sent, and until when.
    pub(super) fn idle_reason(&self, now: Duration) -> Option<(&ClientError, Duration)> {
        let is_idle = self.in_flight() == 0 && !self.tasks.is_empty();
        let until = self.wake_at().filter(|until| is_idle && *until > now)?;
        self.trouble
            .as_ref()
            .map(|trouble| (trouble, until.saturating_sub(now)))
    }

    /// Number of requests on their way.
    pub(super) fn in_flight(&self) -> usize {
        self.tasks.in_flight()
    }

    /// The first event that is not known to be published: the place to go on from.
    pub(super) fn resume_at(&self) -> u64 {
        self.tasks.first_event().unwrap_or(self.unread)
    }

    /// Ends the run for a reason of the driver. It waits for no more answers.
    pub(super) fn abandon(&mut self, ending: RunEnding) {
        self.ending.get_or_insert(ending);
        self.is_abandoned = true;
    }

    /// The reason for an end before the end of the file, if there is one.
    pub(super) fn into_ending(self) -> Option<RunEnding> {
        self.ending
            .filter(|ending| !matches!(ending, RunEnding::Done))
    }

    fn note_acknowledged(
        &mut self,
        now: Duration,
        sent: SentBatch,
        pressure: Option<PressureHeader>,
    ) {
        let delay = pressure.as_ref().and_then(PressureHeader::delay);
        self.pace.note_acknowledged(sent, now, delay);
        self.meter.add_events(now, sent.events);
        self.counts.events += u64::from(sent.events);
        self.counts.requests += 1;
        self.counts.delayed += u64::from(delay.is_some_and(|delay| sent.was_held(now, delay)));
        self.progress_at = now;
        self.pressure = pressure;
        self.trouble = None;
    }

    fn add_report(&mut self, report: Option<PublishReport>) {
        let Some(report) = report else { return };
        self.counts
            .report
            .get_or_insert_default()
            .add_counts(report);
    }

    fn end_if_over(&mut self, now: Duration) {
        if self.ending.is_some() {
            return;
        }
        if self.input == InputState::Over && self.tasks.is_empty() {
            let closed = self
                .closing
                .map(|exit_code| RunEnding::Interrupted { exit_code });
            self.ending = self
                .broken
                .take()
                .map(RunEnding::Input)
                .or(closed)
                .or(Some(RunEnding::Done));
        } else if self.gives_up_at().is_some_and(|at| at <= now) {
            let length = self.give_up_wait();
            self.ending = self
                .trouble
                .take()
                .map(|source| RunEnding::GaveUp { length, source });
        }
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

    /// The first batch that may be sent now.
    fn due_batch(&self, now: Duration) -> Option<u64> {
        if !self.has_room() || self.pace.next_at() > now {
            return None;
        }
        self.tasks
            .waiting_batches()
            .find(|(_, not_before)| *not_before <= now)
            .map(|(first, _)| first)
    }

    /// Time of the next step, if nothing happens before.
    fn wake_at(&self) -> Option<Duration> {
        let first = self
            .tasks
            .waiting_batches()
            .map(|(_, not_before)| not_before)
            .min()
            .filter(|_| self.has_room());
        let first = first.map(|not_before| not_before.max(self.pace.next_at()));
        first.into_iter().chain(self.gives_up_at()).min()
    }

    fn send_batch(&mut self, first: u64, now: Duration) -> RunStep {
        self.meter.start(now);
        if self.tasks.is_all_fresh() {
            self.progress_at = now;
        }
        let Some(task) = self.tasks.get_mut(first) else {
            return RunStep::Wait(None);
        };
        self.counts.retried += u64::from(task.attempts > 0);
        task.attempts += 1;
        task.state = BatchState::InFlight { since: now };
        self.pace.note_sent(SentBatch {
            at: now,
            events: task.batch.event_count(),
        });
        RunStep::Send(Arc::clone(&task.batch))
    }
}

#[cfg(test)]
mod tests;
