#![doc = include_str!("../README.md")]

mod batches;
mod cancellations;
mod jobs;
mod objects;
mod ports;
mod report;
mod run;
#[cfg(test)]
mod testing;
mod waits;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join3, join4};
use posthaste_core::model::{Timestamp, TopicName};
use posthaste_core::release::ParkedWalk;
use posthaste_core::release::outage::awake_since;
use posthaste_core::release::rest;
use posthaste_core::stored::{SetBackScan, WAKE_LEASE, WAKE_SIGNAL, WakeCheckpoint, WakeSignal};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};
use posthaste_services::{FoundLease, LeaseObject, LeftWork, timeout_at};

use cancellations::CancellationCache;
use jobs::clean_up::{
    DeadLetterWalk, ResolvedWalk, clean_up, clean_up_dead_letters, clean_up_resolved, next_minute,
};
use jobs::disabled_notices::send_disabled_notices;
use jobs::gone::disable_gone_subscriptions;
use jobs::health_notices::check_health;
use jobs::link_notices::check_links;
use jobs::recovery::{MarkWalk, check_marks};
use jobs::release::release_parked_and_held;
use jobs::replays::{ReplayWalk, replay_all};
use jobs::set_back::SetBack;
use jobs::temporary::{TemporaryRun, TemporarySweep};
pub use posthaste_delivery_log::DeliveryLog;

pub use ports::WakePorts;
pub use report::{WakeError, WakeReport};
use run::WakeRun;

/// Longest time of a run without a deadline of its own; the next one comes a minute after it began.
const RUN_MAX: Duration = Duration::from_secs(55);

/// The lease that keeps two runs apart.
const LEASE: LeaseObject = LeaseObject {
    key: WAKE_LEASE,
    length: Duration::from_secs(90),
};

/// Settings of the function.
#[derive(Debug, Clone, Default)]
pub struct WakeSettings {
    /// The topic whose subscribers are notified of links that are down or up again, beside those
    /// that topics name.
    pub notices_topic: Option<TopicName>,
    /// The time for which dead letters are kept; `None`: forever. On AWS the bucket's lifecycle
    /// decides.
    pub dead_letter_retention: Option<Duration>,
}

/// The function.
pub struct Wake<P: Ports> {
    ports: WakePorts<P>,
    deletes_payloads: bool,
    settings: WakeSettings,
    is_stopped: AtomicBool,
    dead_letter_walk: DeadLetterWalk,
    resolved_walk: ResolvedWalk,
    mark_walk: MarkWalk,
    replay_walk: ReplayWalk,
}

impl<P: Ports> Wake<P> {
    /// Wires the function up.
    pub fn new(ports: WakePorts<P>) -> Self {
        let settings = WakeSettings::default();
        Self {
            ports,
            deletes_payloads: true,
            settings,
            is_stopped: AtomicBool::new(false),
            dead_letter_walk: DeadLetterWalk::default(),
            resolved_walk: ResolvedWalk::default(),
            mark_walk: MarkWalk::default(),
            replay_walk: ReplayWalk::default(),
        }
    }

    /// Stops the release of held deliveries, for a process that is about to end. The rest waits for
    /// the next process.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// The same, for a state bucket whose lifecycle deletes old payloads, notes and idempotency
    /// keys.
    #[must_use]
    pub fn leaving_payloads(self) -> Self {
        Self {
            deletes_payloads: false,
            ..self
        }
    }

    /// The same, with these settings.
    #[must_use]
    pub fn with_settings(self, settings: WakeSettings) -> Self {
        Self { settings, ..self }
    }

    /// Runs once, for less than a minute.
    pub async fn run(&self) -> Result<WakeReport, WakeError> {
        self.run_over(LeftWork::Old).await
    }

    /// The same over work that was left in this sense. With [`LeftWork::From`] no other process
    /// runs wake on these stores: a lease that somebody has was left, too.
    pub async fn run_over(&self, left: LeftWork) -> Result<WakeReport, WakeError> {
        let deadline = self.ports.clock.monotonic() + RUN_MAX;
        self.run_within(deadline, left).await
    }

    /// Runs once, and ends before `deadline`, a time of [`Clock::monotonic`].
    pub async fn run_until(&self, deadline: Duration) -> Result<WakeReport, WakeError> {
        self.run_within(deadline, LeftWork::Old).await
    }

    async fn run_within(
        &self,
        deadline: Duration,
        left: LeftWork,
    ) -> Result<WakeReport, WakeError> {
        let WakePorts {
            state,
            clock,
            entropy,
            ..
        } = &self.ports;
        let found_work = AtomicBool::new(false);
        let cancellations = CancellationCache::default();
        let ports = &self.ports;
        let is_stopped = &self.is_stopped;
        let run = WakeRun::with_deadline(deadline, ports, is_stopped, &found_work, &cancellations)
            .with_left_work(left);
        let began = clock.now();
        let found = run.in_time(LEASE.find::<WakeCheckpoint>(state)).await;
        let mut found = found
            .ok_or(WakeError::OutOfTime)?
            .map_err(WakeError::Lease)?;
        if matches!(left, LeftWork::From(_)) {
            found = found.with_dead_holder();
        }
        // Tries that failed are known here before anybody else knows of them.
        let has_news = self.ports.links.arrivals().has_news();
        if !has_news
            && run
                .in_time(may_rest(state, &found, began))
                .await
                .unwrap_or_default()
        {
            return Ok(WakeReport {
                rested: true,
                ..WakeReport::default()
            });
        }
        let taken = run.in_time(found.take(state, clock, entropy)).await;
        let Some(lease) = taken
            .ok_or(WakeError::OutOfTime)?
            .map_err(WakeError::Lease)?
        else {
            return Ok(WakeReport {
                was_busy: true,
                ..WakeReport::default()
            });
        };
        let (checkpoint, report, ended) = self.run_jobs(run, &lease.checkpoint, began).await;
        // If this hangs the lease lapses by itself.
        let _ = timeout_at(
            clock,
            deadline,
            Box::pin(lease.give_back(state, checkpoint)),
        )
        .await;
        report.log();
        ended
            .ok_or(WakeError::OutOfTime)?
            .map_err(WakeError::List)
            .map(|()| report)
    }

    /// Runs all jobs from this checkpoint; answers the next one.
    async fn run_jobs(
        &self,
        run: WakeRun<'_, P>,
        last: &WakeCheckpoint,
        began: Timestamp,
    ) -> (WakeCheckpoint, WakeReport, Option<Result<(), PortError>>) {
        let set_back = Box::pin(SetBack::run(run, SetBackScan::resume(last, began))).await;
        let mut report = WakeReport {
            pulled_in: set_back.moved,
            ..WakeReport::default()
        };
        let awake_since = awake_since(rest::well_until(last), last.awake_since, began);
        let walk = ParkedWalk::resume(last, began);
        let temporary = TemporarySweep::new(run, walk.begins_after(), awake_since);
        let release = Box::pin(release_parked_and_held(run, last, walk, &mut report));
        let others = Box::pin(self.run_others(run, &temporary, last));
        let link_notices = Box::pin(check_links(run, self.settings.notices_topic.as_ref()));
        let notices_topic = self.settings.notices_topic.as_ref();
        let notices = join4(
            link_notices,
            Box::pin(check_health(run, notices_topic)),
            Box::pin(send_disabled_notices(run)),
            Box::pin(disable_gone_subscriptions(run)),
        );
        let ((next, ended), TemporaryRun { swept_to, swept }, _) =
            join3(release, others, notices).await;
        report.deleted_topics = swept.topics;
        report.deleted_subscriptions = swept.subscriptions;
        let is_idle = run.was_idle() && matches!(ended, Some(Ok(())));
        let next_due = [
            report.next_due,
            self.deletes_payloads
                .then(|| next_minute(began, self.settings.dead_letter_retention.is_some())),
        ];
        let next_due = next_due.into_iter().flatten().min();
        let rest_until = is_idle.then(|| rest::rest_until(began, next_due));
        let look = set_back.scan;
        let began_at = Some(began);
        let checkpoint = WakeCheckpoint {
            look,
            awake_since,
            began_at,
            swept_to,
            rest_until,
            ..next
        };
        (checkpoint, report, ended)
    }

    /// Runs the jobs that go one after the other.
    async fn run_others(
        &self,
        run: WakeRun<'_, P>,
        temporary: &TemporarySweep<'_, P>,
        last: &WakeCheckpoint,
    ) -> TemporaryRun {
        let swept = temporary.run(last.swept_to.clone()).await;
        let notices_topic = self.settings.notices_topic.as_ref();
        let permits = check_marks(run, &self.mark_walk, notices_topic).await;
        // Last: replayed events have waited already, and go on in the next run.
        replay_all(run, &self.replay_walk, &permits).await;
        if self.deletes_payloads {
            clean_up(run).await;
            if let Some(kept) = self.settings.dead_letter_retention {
                clean_up_dead_letters(run, &self.dead_letter_walk, kept).await;
            }
        }
        clean_up_resolved(run, &self.resolved_walk).await;
        swept
    }
}

/// Tells whether there can be no work. A signal that cannot be read may announce some.
async fn may_rest(
    state: &impl ObjectStore,
    found: &FoundLease<WakeCheckpoint>,
    now: Timestamp,
) -> bool {
    let last = &found.checkpoint;
    if !rest::may_rest(last, now) {
        return false;
    }
    match state.get(WAKE_SIGNAL).await {
        Ok(None) => true,
        Ok(Some(object)) => WakeSignal::parse(&object.bytes)
            .is_ok_and(|signal| rest::is_covered(last, signal.until)),
        Err(_) => false,
    }
}
