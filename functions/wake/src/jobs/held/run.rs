//! One run through what is held: how far it came, what it sent, and how much room the queue and
//! each link still have.

use std::collections::VecDeque;

use parking_lot::Mutex;
use posthaste_core::pressure::PressureState;
use posthaste_core::release::{
    HeldFolder, LinkShares, QueueRoom, ReleaseAmount, ReleaseSource, ReleaseSpeed, ReleasedCounts,
    RunAccount,
};
use posthaste_ports::Ports;

use crate::jobs::forced::ForcedRelease;
use crate::run::WakeRun;

/// One run, and its result.
pub(crate) struct HeldRun<'a, P: Ports> {
    pub(super) run: WakeRun<'a, P>,
    /// The key after which the next run looks at folders; `None` for all of them.
    pub(crate) held_to: Option<String>,
    /// Held deliveries that were sent.
    pub(crate) sent: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// The walk through what is forced.
    pub(crate) forced: ForcedRelease<'a, P>,
    /// The folders that have a turn in the next pass.
    pub(super) folders: VecDeque<HeldFolder>,
    /// The speed of this pass.
    pub(super) speed: ReleaseSpeed,
    /// Deliveries by link.
    pub(super) links: LinkShares,
    room: QueueRoom,
    /// Everything that was released in this run, parked deliveries too.
    account: &'a Mutex<RunAccount>,
}

impl<'a, P: Ports> HeldRun<'a, P> {
    /// A run that looks at folders after this key.
    pub(super) fn new(
        run: WakeRun<'a, P>,
        held_to: Option<String>,
        account: &'a Mutex<RunAccount>,
    ) -> Self {
        Self {
            run,
            held_to,
            sent: 0,
            left: 0,
            forced: ForcedRelease::new(run),
            folders: VecDeque::new(),
            speed: ReleaseSpeed::Full,
            links: LinkShares::default(),
            room: QueueRoom::default(),
            account,
        }
    }

    /// Counts what was released within the amount of this run.
    pub(super) fn count_released(&mut self, released: ReleasedCounts) {
        self.account
            .lock()
            .note_released(ReleaseSource::Held, released.amount());
        self.count_expired(released);
    }

    /// Counts what was released because it has expired, which the pressure does not slow.
    pub(super) fn count_expired(&mut self, released: ReleasedCounts) {
        self.left += released.left;
        self.room.note_released(released.sent);
    }

    /// Tells whether something may be left to release.
    pub(super) fn has_more(&self) -> bool {
        !self.folders.is_empty() || self.forced.is_open()
    }

    /// The amount that the run may still release at this speed.
    pub(super) fn left_in_run(&self) -> ReleaseAmount {
        self.account
            .lock()
            .left_to_release(ReleaseSource::Held, self.speed)
    }

    /// The amount that the next pass may release, at this speed and by this state of the pressure.
    pub(super) fn room_in_pass(
        &mut self,
        speed: ReleaseSpeed,
        state: Option<&PressureState>,
    ) -> ReleaseAmount {
        self.speed = speed;
        self.room.amount_for_pass(self.left_in_run(), speed, state)
    }
}
