//! wake: once a minute, sends the parked deliveries whose minute has come, the held ones that may go and what replays ask
//! for, sweeps temporary topics and subscriptions, and tells of links that are down or up again.
//!
//! An object is deleted only when every one of its messages was sent, so a crash or a failed send makes copies and
//! loses nothing. It never runs twice at once (a lease object). Pressure of the queue slows the release and never stops it:
//! [`posthaste_core::release::speed::speed`].

mod account;
mod course;
mod disabled;
mod expire;
mod forced;
mod held;
mod lease;
mod limits;
mod links;
mod list;
mod release;
mod replay;
mod set_back;
mod temporary;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join3};
use posthaste_core::model::name::TopicName;
use posthaste_core::release::speed::{Order, Waiting};
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};
use posthaste_services::activity::Activity;
use posthaste_services::{LinkHealth, PressureReader, Registry};

use course::Course;
use held::Holding;
use limits::{Limits, within};
use temporary::Sweep;

/// Most objects listed at a time.
const PAGE_MAX: usize = 1000;

/// How long a run may go on that is given no deadline; the next one comes a minute after it began.
const RUN_MAX: Duration = Duration::from_secs(55);

/// What wake needs from outside.
#[derive(Debug)]
pub struct WakePorts<Q, S, D, C, E> {
    /// The delivery queue.
    pub deliveries: Q,
    /// The state bucket.
    pub state: S,
    /// The dead-letter bucket, for replays.
    pub dead_letters: D,
    /// Topics and subscriptions, for replays.
    pub registry: Registry<S, C>,
    /// The pressure, as the monitor wrote it.
    pub pressure: PressureReader<S, C>,
    /// Links and subscriptions that are not well.
    pub links: LinkHealth<S, C>,
    /// Time.
    pub clock: C,
    /// Chance.
    pub entropy: E,
}

/// The function.
#[derive(Debug)]
pub struct Wake<Q, S, D, C, E> {
    ports: WakePorts<Q, S, D, C, E>,
    deletes_payloads: bool,
    notices_topic: Option<TopicName>,
    activity: Activity,
    is_stopped: AtomicBool,
}

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WakeReport {
    /// Objects whose deliveries were all sent.
    pub released: usize,
    /// Deliveries that were sent.
    pub sent: usize,
    /// Objects that are tried again in the next run.
    pub left: usize,
    /// Held deliveries that were sent.
    pub held_sent: usize,
    /// Parked deliveries that were sent before their minute, because an operator forced it.
    pub forced_sent: usize,
    /// Objects of held or forced deliveries that are tried again in the next run.
    pub held_left: usize,
    /// Topics deleted because they were idle.
    pub deleted_topics: usize,
    /// Subscriptions deleted because they were idle, or their time was over.
    pub deleted_subscriptions: usize,
    /// Parked objects that a clock wrote that was ahead, and whose minute was moved nearer.
    pub pulled_in: usize,
    /// Whether another run was going on.
    pub was_busy: bool,
    /// Whether pressure slowed the release of what is parked.
    pub was_slowed: bool,
}

/// Why a run ended early. The next one goes on.
#[derive(Debug, thiserror::Error)]
pub enum WakeError {
    /// The lease could not be read or written.
    #[error("failed to take the lease")]
    Lease(#[source] PortError),
    /// The parked objects could not be listed.
    #[error("failed to list what is parked")]
    List(#[source] PortError),
    /// A call of the object store had not come back when the run had to end.
    #[error("failed to end in time")]
    OutOfTime,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Wires the function up.
    pub fn new(ports: WakePorts<Q, S, D, C, E>) -> Self {
        Self {
            ports,
            deletes_payloads: true,
            notices_topic: None,
            activity: Activity::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Releases no held delivery any more: the rest waits for the next process. For a process that is to end.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// The same, for a state bucket whose lifecycle deletes old payloads, notes and idempotency keys.
    #[must_use]
    pub fn leaving_payloads(self) -> Self {
        Self { deletes_payloads: false, ..self }
    }

    /// The same, telling the subscribers of this topic of links that are down or up again, beside those whom topics name.
    #[must_use]
    pub fn telling(self, notices_topic: Option<TopicName>) -> Self {
        Self { notices_topic, ..self }
    }

    /// Runs once, for less than a minute.
    pub async fn run(&self) -> Result<WakeReport, WakeError> {
        self.run_until(self.ports.clock.monotonic() + RUN_MAX).await
    }

    /// Runs once, and ends before `deadline`, a time of [`Clock::monotonic`].
    pub async fn run_until(&self, deadline: Duration) -> Result<WakeReport, WakeError> {
        let (clock, limits) = (&self.ports.clock, Limits::before(deadline));
        let began = clock.now();
        let taken = within(clock, limits.work, self.take_lease()).await.ok_or(WakeError::OutOfTime)?;
        let Some(lease) = taken.map_err(WakeError::Lease)? else {
            return Ok(WakeReport { was_busy: true, ..WakeReport::default() });
        };
        let mut course = Course::new(lease.notes.clone(), began);
        // Before everything else that reads what is parked, so that nobody sends what is just being moved.
        let _ = within(clock, limits.begin, Box::pin(self.pull_in(limits, &mut course))).await;
        let mut holding = Holding::after(course.held_to.take(), course.account.clone());
        holding.has_pulled_in = course.report.pulled_in > 0;
        let mut sweep = Sweep::after(course.swept_to.take(), course.beginning(), course.awake_since);
        let release = Box::pin(self.release_all(limits, &mut course, &mut holding));
        let others = Box::pin(self.work(limits, &mut sweep));
        let telling = join(Box::pin(self.tell_links(limits)), Box::pin(self.tell_disabled(limits)));
        let (ended, (), _) = join3(release, others, telling).await;
        course.note_held(holding);
        course.note_swept(sweep);
        // If this hangs the lease lapses by itself.
        let _ = within(clock, limits.deadline, self.give_back(lease, course.notes())).await;
        course.report.log();
        ended.ok_or(WakeError::OutOfTime)?.map_err(WakeError::List).map(|()| course.report)
    }

    /// Releases what is parked and what is held, side by side or in turn. `None` if what is parked was not released in time.
    async fn release_all(
        &self,
        limits: Limits,
        course: &mut Course,
        holding: &mut Holding,
    ) -> Option<Result<(), PortError>> {
        let clock = &self.ports.clock;
        let speed = self.speed().await;
        let parked = within(clock, limits.work, self.release_due(speed, limits, course));
        let held = self.release_waiting(limits, holding);
        match speed.order(clock.now().minute()) {
            // A backlog that is released in passes takes all the time there is.
            Order::Together => join(parked, held).await.0,
            Order::First(Waiting::Parked) => {
                let ended = parked.await;
                held.await;
                ended
            }
            Order::First(Waiting::Held) => {
                held.await;
                parked.await
            }
        }
    }

    /// All the work of a run but the release.
    async fn work(&self, limits: Limits, sweep: &mut Sweep) {
        let _ = within(&self.ports.clock, limits.work, self.sweep(limits, sweep)).await;
        // Last: what is replayed has waited already, and goes on in the next run.
        self.replay_all(limits).await;
        if self.deletes_payloads {
            self.expire(limits).await;
        }
    }
}

impl WakeReport {
    fn log(&self) {
        let Self { sent, released, left, .. } = *self;
        if sent + released + left > 0 {
            tracing::info!(sent, released, left, "parked deliveries released");
        }
        let Self { held_sent, forced_sent, held_left, .. } = *self;
        if held_sent + forced_sent + held_left > 0 {
            tracing::info!(held_sent, forced_sent, held_left, "held deliveries released");
        }
        if self.pulled_in > 0 {
            tracing::info!(objects = self.pulled_in, "the clock was set back: parked deliveries due earlier");
        }
    }
}
