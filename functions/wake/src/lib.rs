#![doc = include_str!("../README.md")]

mod batches;
mod budget;
mod jobs;
mod lease;
mod listing;
mod objects;
mod ports;
mod report;
#[cfg(test)]
mod testing;
mod waits;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::{join, join3};
use posthaste_core::model::{Timestamp, TopicName};
use posthaste_core::release::ParkedWalk;
use posthaste_core::release::outage::awake_since;
use posthaste_core::stored::{Checkpoint, SetBackScan};
use posthaste_ports::{Clock, PortError, Ports};
use posthaste_services::{Activity, timeout_at};

use budget::Budget;
use jobs::clean_up::CleanUp;
use jobs::disabled_notices::DisabledNotices;
use jobs::link_notices::LinkNotices;
use jobs::release::Release;
use jobs::replays::Replays;
use jobs::set_back::SetBack;
use jobs::temporary::{Temporary, TemporaryRun};
use lease::Lease;
pub use ports::WakePorts;
pub use report::{WakeError, WakeReport};

/// How long a run may go on that is given no deadline; the next one comes a minute after it began.
const RUN_MAX: Duration = Duration::from_secs(55);

/// The function.
pub struct Wake<P: Ports> {
    ports: WakePorts<P>,
    deletes_payloads: bool,
    notices_topic: Option<TopicName>,
    activity: Activity,
    is_stopped: AtomicBool,
}

impl<P: Ports> Wake<P> {
    /// Wires the function up.
    pub fn new(ports: WakePorts<P>) -> Self {
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

    /// The same, for a state bucket whose lifecycle deletes old payloads, notes and idempotency keys.
    #[must_use]
    pub fn leaving_payloads(self) -> Self {
        Self { deletes_payloads: false, ..self }
    }

    /// The same, notifying the subscribers of this topic of links that are down or up again, beside those
    /// whom topics name.
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
        let WakePorts { state, clock, entropy, .. } = &self.ports;
        let budget = Budget::until(deadline, &self.is_stopped);
        let began = clock.now();
        let taken = timeout_at(clock, budget.work, Box::pin(Lease::take(state, clock, entropy))).await;
        let Some(lease) = taken.ok_or(WakeError::OutOfTime)?.map_err(WakeError::Lease)? else {
            return Ok(WakeReport { was_busy: true, ..WakeReport::default() });
        };
        let (checkpoint, report, ended) = self.run_jobs(&lease.checkpoint, began, budget).await;
        // If this hangs the lease lapses by itself.
        let _ = timeout_at(clock, budget.deadline, Box::pin(lease.give_back(state, checkpoint))).await;
        report.log();
        ended.ok_or(WakeError::OutOfTime)?.map_err(WakeError::List).map(|()| report)
    }

    /// Runs all jobs from this checkpoint; answers the next one.
    async fn run_jobs(
        &self,
        last: &Checkpoint,
        began: Timestamp,
        budget: Budget<'_>,
    ) -> (Checkpoint, WakeReport, Option<Result<(), PortError>>) {
        let scan = SetBackScan::resume(last, began);
        let set_back = Box::pin(SetBack::new(&self.ports).run(scan, budget)).await;
        let mut report = WakeReport { pulled_in: set_back.moved, ..WakeReport::default() };
        let awake_since = awake_since(last.began_at, last.awake_since, began);
        let walk = ParkedWalk::resume(last, began);
        let temporary = Temporary::new(&self.ports, walk.begins_after(), awake_since);
        let release = Release { ports: &self.ports, activity: &self.activity };
        let release = Box::pin(release.run(last, walk, budget, &mut report));
        let others = Box::pin(self.run_others(&temporary, last, budget));
        let link_notices = LinkNotices::new(&self.ports, self.notices_topic.as_ref());
        let disabled_notices = DisabledNotices::new(&self.ports);
        let notices = join(Box::pin(link_notices.run(budget)), Box::pin(disabled_notices.run(budget)));
        let ((next, ended), swept, _) = join3(release, others, notices).await;
        report.deleted_topics = swept.swept.topics;
        report.deleted_subscriptions = swept.swept.subscriptions;
        let look = set_back.scan;
        let checkpoint =
            Checkpoint { look, awake_since, began_at: Some(began), swept_to: swept.swept_to, ..next };
        (checkpoint, report, ended)
    }

    /// Runs the jobs that go one after the other.
    async fn run_others(
        &self,
        temporary: &Temporary<'_, P>,
        last: &Checkpoint,
        budget: Budget<'_>,
    ) -> TemporaryRun {
        let swept = temporary.run(last.swept_to.clone(), budget).await;
        // Last: what is replayed has waited already, and goes on in the next run.
        Replays::new(&self.ports).run(budget).await;
        if self.deletes_payloads {
            CleanUp::new(&self.ports).run(budget).await;
        }
        swept
    }
}
