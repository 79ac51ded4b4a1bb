//! Releasing what is held: which of a subscription's deliveries may go is decided in [`posthaste_core::release::held`].
//!
//! A run looks at every folder once, and goes on with those that may send: in turn some deliveries of each, a pass, then a
//! pause, so that a backlog neither fills the queue nor keeps one subscription's from another's. Of the room in a pass half
//! is for what an operator has forced. What a run leaves the next one finds.

mod folders;
mod links;
mod row;
mod take;
mod turn;

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use posthaste_core::model::limits::HELD_PER_OBJECT_MAX;
use posthaste_core::pressure::PressureState;
use posthaste_core::release::room::Room;
use posthaste_core::release::speed::{Amount, Speed, Waiting, speed};
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};

use crate::Wake;
use crate::account::SharedAccount;
use crate::forced::Forcing;
use crate::limits::{Limits, within};
use folders::{Folder, rotate};
use links::Links;
pub(crate) use take::{Portion, Taken};

/// Most deliveries of one subscription that are released in one pass.
pub(crate) const OF_ONE_MAX: usize = HELD_PER_OBJECT_MAX;

/// The time between two passes, in which deliver takes what the last one sent.
pub(crate) const PASS_PAUSE: Duration = Duration::from_secs(1);

/// Forced deliveries get one in so many of those that a pass has room for, rounded up.
const FORCED_PART: usize = 2;

/// One run's way through what is held.
#[derive(Debug)]
pub(crate) struct Holding {
    /// The key after which the folders are looked at; `None` for all of them.
    pub(crate) after: Option<String>,
    /// Held deliveries that were sent.
    pub(crate) sent: usize,
    /// Parked deliveries that were sent before their minute.
    pub(crate) forced: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// Whether this run has moved parked deliveries to an earlier minute, which a walk may have left behind.
    pub(crate) has_pulled_in: bool,
    /// What the queue has room for.
    pub(crate) room: Room,
    /// How fast this pass is.
    speed: Speed,
    /// What went in this run, of what is parked too.
    account: SharedAccount,
    /// What went to which link.
    links: Links,
}

impl Holding {
    /// Goes on after this key.
    pub(crate) fn after(after: Option<String>, account: SharedAccount) -> Self {
        Self {
            after,
            sent: 0,
            forced: 0,
            left: 0,
            has_pulled_in: false,
            room: Room::default(),
            speed: Speed::Full,
            account,
            links: Links::default(),
        }
    }

    /// Some of what may go went.
    pub(crate) fn add(&mut self, taken: Taken) {
        self.account.add(Waiting::Held, taken.amount());
        self.add_expired(taken);
    }

    /// Some of what has expired went, which the pressure does not slow.
    fn add_expired(&mut self, taken: Taken) {
        self.left += taken.left;
        self.room.take(taken.sent);
    }

    /// Whether what has expired goes in the turns of its folder. Under pressure it has gone before them.
    fn takes_expired_in_turns(&self) -> bool {
        self.speed == Speed::Full
    }

    /// How many deliveries the next pass may send, at this speed and by this state of the pressure.
    fn room_in_pass(&mut self, speed: Speed, state: Option<&PressureState>) -> Amount {
        self.speed = speed;
        let left = self.account.left(Waiting::Held, speed);
        match speed {
            Speed::Full | Speed::Slow => {
                Amount { deliveries: left.deliveries.min(self.room.in_pass(state)), ..left }
            }
            // It is less than any room.
            Speed::OneObject => left,
        }
    }
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Releases what is held and what is forced, as far as a run may go.
    pub(crate) async fn release_waiting(&self, limits: Limits, holding: &mut Holding) {
        let work = async {
            let mut forcing = self.begin_forcing(holding.has_pulled_in).await;
            let mut folders = self.folders(limits, holding).await.unwrap_or_else(|error| {
                tracing::error!(
                    error = &error as &dyn Error,
                    "what is held not listed, the next run goes on"
                );
                VecDeque::new()
            });
            self.passes(&mut folders, &mut forcing, limits, holding).await;
            self.end_forcing(forcing).await;
        };
        if within(&self.ports.clock, limits.work, work).await.is_none() {
            tracing::error!("held deliveries not released to the end in time, the next run goes on");
        }
    }

    /// Releases in passes, while there is time and room, and the queue takes it. Under pressure what has expired goes
    /// first, in half of the time, and no pass follows once the run's part has gone.
    async fn passes(
        &self,
        folders: &mut VecDeque<Folder>,
        forcing: &mut Forcing,
        limits: Limits,
        holding: &mut Holding,
    ) {
        let (mut has_begun, mut has_slowed) = (false, false);
        while !folders.is_empty() || forcing.is_open() {
            if !self.may_begin(limits) {
                return;
            }
            let state = self.ports.pressure.state().await;
            let speed = speed(state.as_deref());
            if !std::mem::replace(&mut has_begun, true) {
                rotate(folders, speed.turn(self.ports.clock.now().minute()));
            }
            if speed != Speed::Full && !std::mem::replace(&mut has_slowed, true) {
                let half = limits.half_from(self.ports.clock.monotonic());
                if !self.release_expired(folders, half, holding).await {
                    return;
                }
            }
            let room = holding.room_in_pass(speed, state.as_deref());
            if !self.release_in_pass(folders, forcing, room, limits, holding).await {
                return;
            }
            let is_over = holding.account.left(Waiting::Held, speed).is_nothing();
            let has_more = !folders.is_empty() || forcing.is_open();
            if has_more && (is_over || !self.pause(limits).await) {
                return;
            }
        }
    }

    /// One pass: of its room half is for what is forced, or, where there is one object for all, all of it in turn. Answers
    /// whether to go on.
    async fn release_in_pass(
        &self,
        folders: &mut VecDeque<Folder>,
        forcing: &mut Forcing,
        room: Amount,
        limits: Limits,
        holding: &mut Holding,
    ) -> bool {
        let is_forced_last =
            holding.speed == Speed::OneObject && !Speed::forced_first(self.ports.clock.now().minute());
        if is_forced_last {
            return self.pass(folders, room, limits, holding).await && {
                let left = holding.account.left(Waiting::Held, holding.speed);
                !self.force_some(forcing, left, limits, holding).await.is_refused
            };
        }
        let part = if folders.is_empty() { room.deliveries } else { room.deliveries.div_ceil(FORCED_PART) };
        let part = Amount { deliveries: part.min(OF_ONE_MAX), ..room };
        let forced = self.force_some(forcing, part, limits, holding).await;
        !forced.is_refused && self.pass(folders, room.minus(forced.amount()), limits, holding).await
    }

    /// Waits for the next pass. Answers whether there is time for one.
    async fn pause(&self, limits: Limits) -> bool {
        let clock = &self.ports.clock;
        if clock.monotonic() + PASS_PAUSE >= limits.begin {
            return false;
        }
        clock.sleep(PASS_PAUSE).await;
        self.may_begin(limits)
    }

    pub(crate) fn may_begin(&self, limits: Limits) -> bool {
        self.ports.clock.monotonic() < limits.begin && !self.is_stopped()
    }
}
