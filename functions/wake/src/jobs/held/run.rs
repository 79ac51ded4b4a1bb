//! One run through what is held: how far it came, what went, and what the queue and each link still have room
//! for.

use std::collections::VecDeque;

use parking_lot::Mutex;
use posthaste_core::pressure::PressureState;
use posthaste_core::release::{Amount, HeldFolder, LinkShares, Released, Room, RunAccount, Speed, Waiting};

use crate::budget::Budget;
use crate::jobs::forced::ForcedRun;

/// One run, and its result.
#[derive(Debug)]
pub(crate) struct HeldRun<'a> {
    /// The key after which the next run looks at folders; `None` for all of them.
    pub(crate) held_to: Option<String>,
    /// Held deliveries that were sent.
    pub(crate) sent: usize,
    /// Parked deliveries that were sent before their minute.
    pub(crate) forced_sent: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// The folders that have a turn in the next pass.
    pub(super) folders: VecDeque<HeldFolder>,
    /// The walk through what is forced.
    pub(super) forced: ForcedRun,
    pub(super) budget: Budget<'a>,
    /// The speed of this pass.
    pub(super) speed: Speed,
    /// Deliveries by link.
    pub(super) links: LinkShares,
    room: Room,
    /// Everything that was released in this run, parked deliveries too.
    account: &'a Mutex<RunAccount>,
}

impl<'a> HeldRun<'a> {
    /// A run that looks at folders after this key.
    pub(super) fn new(held_to: Option<String>, account: &'a Mutex<RunAccount>, budget: Budget<'a>) -> Self {
        Self {
            held_to,
            sent: 0,
            forced_sent: 0,
            left: 0,
            speed: Speed::Full,
            links: LinkShares::default(),
            room: Room::default(),
            folders: VecDeque::new(),
            forced: ForcedRun::default(),
            account,
            budget,
        }
    }

    /// Counts what was released because it may.
    pub(super) fn add(&mut self, released: Released) {
        self.account.lock().add(Waiting::Held, released.amount());
        self.add_expired(released);
    }

    /// Counts what was released because it has expired, which the pressure does not slow.
    pub(super) fn add_expired(&mut self, released: Released) {
        self.left += released.left;
        self.room.take(released.sent);
    }

    /// Tells whether what has expired goes in the turns of its folder. Under pressure it has gone before
    /// them.
    pub(super) fn releases_expired_in_turns(&self) -> bool {
        self.speed == Speed::Full
    }

    /// Tells whether something may be left to release.
    pub(super) fn has_more(&self) -> bool {
        !self.folders.is_empty() || self.forced.is_open()
    }

    /// How much the run may still release at this speed.
    pub(super) fn left_in_run(&self) -> Amount {
        self.account.lock().left(Waiting::Held, self.speed)
    }

    /// How much the next pass may release, at this speed and by this state of the pressure.
    pub(super) fn room_in_pass(&mut self, speed: Speed, state: Option<&PressureState>) -> Amount {
        self.speed = speed;
        self.room.for_pass(self.left_in_run(), speed, state)
    }
}
