//! Held deliveries: a run looks at every folder once, and goes on with those that may send: in turn some
//! deliveries of each, a pass, then a pause, so that a backlog neither fills the queue nor keeps one
//! subscription's from another's. Of the room in a pass half is for what an operator has forced. The next run
//! finds what this one leaves.

mod folders;
mod passes;
mod permissions;
mod run;
mod turns;

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::release::folder::rotate;
use posthaste_core::release::speed::speed;
use posthaste_core::release::{Amount, OF_ONE_MAX, RunAccount, Speed};
use posthaste_ports::{Clock, Ports};
use posthaste_services::{PressureReader, timeout_at};

use crate::batches::Batches;
use crate::budget::Budget;
use crate::jobs::forced::Forced;
use crate::ports::WakePorts;
use crate::waits::WaitNotes;
use folders::Folders;
use passes::Passes;
use permissions::Permissions;
use run::HeldRun;
use turns::Turns;

/// The time between two passes, in which deliver takes what the last one sent.
const PASS_PAUSE: Duration = Duration::from_secs(1);

/// Forced deliveries get one in so many of those that a pass has room for, rounded up.
const FORCED_PART: usize = 2;

/// Releases held deliveries, and forced ones beside them.
pub(crate) struct Held<'a, P: Ports> {
    folders: Folders<'a, P>,
    passes: Passes<'a, P>,
    forced: Forced<'a, P>,
    account: &'a Mutex<RunAccount>,
    pressure: &'a PressureReader<P::Store, P::Clock>,
    clock: &'a P::Clock,
}

impl<'a, P: Ports> Held<'a, P> {
    pub(crate) fn new(
        ports: &'a WakePorts<P>,
        batches: &'a Batches<'a, P>,
        waits: &'a WaitNotes<'a, P>,
        account: &'a Mutex<RunAccount>,
    ) -> Self {
        let WakePorts { state: store, registry, links, pressure, clock, entropy, .. } = ports;
        let turns = Turns { batches, folders: Folders { store, clock }, clock, entropy };
        let passes = Passes { permissions: Permissions { registry, links, waits }, turns, clock };
        let forced = Forced::new(ports, batches);
        Self { folders: Folders { store, clock }, passes, forced, account, pressure, clock }
    }

    /// Releases what is held, in folders after this key, and what is forced, as far as a run may go.
    /// `has_moved` tells that parked deliveries were moved to an earlier minute, which a walk may have left
    /// behind.
    pub(crate) async fn run(
        &self,
        held_to: Option<String>,
        has_moved: bool,
        budget: Budget<'a>,
    ) -> HeldRun<'a> {
        let mut run = HeldRun::new(held_to, self.account, budget);
        if timeout_at(self.clock, budget.work, Box::pin(self.release(has_moved, &mut run))).await.is_none() {
            tracing::error!("held deliveries not released to the end in time, the next run goes on");
        }
        run
    }

    async fn release(&self, has_moved: bool, run: &mut HeldRun<'_>) {
        run.forced = self.forced.begin(has_moved).await;
        run.folders = self.folders.find(&mut run.held_to, run.budget).await.unwrap_or_else(|error| {
            let error = &error as &dyn Error;
            tracing::error!(error, "held deliveries not listed, the next run goes on");
            VecDeque::new()
        });
        self.release_in_passes(run).await;
        self.forced.end(std::mem::take(&mut run.forced)).await;
    }

    /// Releases in passes, while there is time and room, and the queue takes it. Under pressure what has
    /// expired goes first, and no pass follows once the run's part was sent.
    async fn release_in_passes(&self, run: &mut HeldRun<'_>) {
        let (mut has_begun, mut has_slowed) = (false, false);
        while run.has_more() {
            if !run.budget.may_begin(self.clock) {
                return;
            }
            let state = self.pressure.state().await;
            let speed = speed(state.as_deref());
            if !std::mem::replace(&mut has_begun, true) {
                rotate(&mut run.folders, speed.turn(self.clock.now().minute()));
            }
            let is_slowed = speed != Speed::Full && !std::mem::replace(&mut has_slowed, true);
            if is_slowed && !self.passes.release_expired(run).await {
                return;
            }
            let room = run.room_in_pass(speed, state.as_deref());
            if !self.pass(room, run).await {
                return;
            }
            if run.has_more() && (run.left_in_run().is_nothing() || !self.pause(run.budget).await) {
                return;
            }
        }
    }

    /// One pass: of its room half is for what is forced, or, where there is one object for all, all of it in
    /// turn. Answers whether to go on.
    async fn pass(&self, room: Amount, run: &mut HeldRun<'_>) -> bool {
        if run.speed == Speed::OneObject && !Speed::forced_first(self.clock.now().minute()) {
            return self.passes.pass(room, run).await && self.force(run.left_in_run(), run).await.is_some();
        }
        let is_alone = run.folders.is_empty();
        let part = if is_alone { room.deliveries } else { room.deliveries.div_ceil(FORCED_PART) };
        let part = Amount { deliveries: part.min(OF_ONE_MAX), ..room };
        let Some(released) = self.force(part, run).await else { return false };
        self.passes.pass(room.minus(released), run).await
    }

    /// Releases forced deliveries. Answers how much, or `None` if the queue does not take them.
    async fn force(&self, max: Amount, run: &mut HeldRun<'_>) -> Option<Amount> {
        let released = self.forced.release(&mut run.forced, max, run.budget).await;
        run.forced_sent += released.sent;
        run.add(released);
        (!released.is_refused).then_some(released.amount())
    }

    /// Waits for the next pass. Answers whether there is time for one.
    async fn pause(&self, budget: Budget<'_>) -> bool {
        if self.clock.monotonic() + PASS_PAUSE >= budget.begin {
            return false;
        }
        self.clock.sleep(PASS_PAUSE).await;
        budget.may_begin(self.clock)
    }
}
