//! Releasing what is held: which of a subscription's deliveries may go is decided in [`posthaste_core::held`].
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

use posthaste_core::held::Room;
use posthaste_core::limits::HELD_PER_OBJECT_MAX;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};

use crate::Wake;
use crate::forced::Forcing;
use crate::limits::{Limits, within};
use folders::Folder;
use links::Links;
pub(crate) use take::{Portion, Taken};

/// Most deliveries of one subscription that are released in one pass.
pub(crate) const OF_ONE_MAX: usize = HELD_PER_OBJECT_MAX;

/// The time between two passes, in which deliver takes what the last one sent.
pub(crate) const PASS_PAUSE: Duration = Duration::from_secs(1);

/// Forced deliveries get one in so many of those that a pass has room for, rounded up.
const FORCED_PART: usize = 2;

/// One run's way through what is held.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    /// The key after which the folders are looked at; `None` for all of them.
    pub(crate) after: Option<String>,
    /// Held deliveries that were sent.
    pub(crate) sent: usize,
    /// Parked deliveries that were sent before their minute.
    pub(crate) forced: usize,
    /// Objects that are tried again in the next run.
    pub(crate) left: usize,
    /// What the queue has room for.
    pub(crate) room: Room,
    /// What went to which link.
    links: Links,
}

impl Holding {
    /// Goes on after this key.
    pub(crate) fn after(after: Option<String>) -> Self {
        Self { after, ..Self::default() }
    }

    pub(crate) fn add(&mut self, taken: Taken) {
        self.left += taken.left;
        self.room.take(taken.sent);
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
            let mut forcing = self.begin_forcing().await;
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

    /// Releases in passes, while there is time and room, and the queue takes it.
    async fn passes(
        &self,
        folders: &mut VecDeque<Folder>,
        forcing: &mut Forcing,
        limits: Limits,
        holding: &mut Holding,
    ) {
        while !folders.is_empty() || forcing.is_open() {
            let Some(room) = self.room_in_pass(limits, holding).await else { return };
            let part = if folders.is_empty() { room } else { room.div_ceil(FORCED_PART) };
            let forced = self.force_some(forcing, part.min(OF_ONE_MAX), limits, holding).await;
            if forced.is_refused || !self.pass(folders, room - forced.sent, limits, holding).await {
                return;
            }
            let has_more = !folders.is_empty() || forcing.is_open();
            if has_more && !self.pause(limits).await {
                return;
            }
        }
    }

    /// How many deliveries the next pass may send; `None` if there is none: under pressure, or out of time.
    async fn room_in_pass(&self, limits: Limits, holding: &mut Holding) -> Option<usize> {
        if !self.may_begin(limits) || self.is_under_pressure().await {
            return None;
        }
        Some(holding.room.in_pass(self.ports.pressure.state().await.as_deref()))
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
