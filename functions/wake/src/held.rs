//! Releasing what is held: which of a subscription's deliveries may go is decided in [`posthaste_core::held`].
//!
//! A run looks at every folder once, and goes on with those that may send: one after the other some deliveries of each, a
//! pass, then a pause, so that a backlog neither fills the queue nor keeps one subscription's from another's. What a run
//! leaves the next one finds.

mod folders;
mod links;
mod take;

use std::collections::VecDeque;
use std::error::Error;
use std::time::Duration;

use posthaste_core::health::{Gate, Target};
use posthaste_core::held::{Release, Room, Standing, release};
use posthaste_core::layout;
use posthaste_core::limits::HELD_PER_OBJECT_MAX;
use posthaste_core::time::Timestamp;
use posthaste_core::topic::{Status, Subscription};
use posthaste_ports::guard::guarded;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender, RegistryError};

use crate::Wake;
use crate::limits::{Limits, within};
use folders::Folder;
use links::Links;
use take::Taken;

/// Most deliveries of one subscription that are released in one pass.
pub(crate) const OF_ONE_MAX: usize = HELD_PER_OBJECT_MAX;

/// The time between two passes, in which deliver takes what the last one sent.
pub(crate) const PASS_PAUSE: Duration = Duration::from_secs(1);

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

/// What may go of a folder, and where to.
#[derive(Debug)]
struct Judged {
    release: Release,
    /// `None` where nobody is asked.
    target: Option<Target>,
}

/// Whether a folder has another turn in this run.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Again,
    Done,
    /// Nobody has: the queue takes nothing.
    Stop,
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
    /// Releases what may go, in passes, while there is time and room.
    pub(crate) async fn release_held(&self, limits: Limits, holding: &mut Holding) {
        let mut folders = match self.folders(limits, holding).await {
            Ok(folders) => folders,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "what is held not listed, the next run goes on"
                );
                return;
            }
        };
        while !folders.is_empty() {
            let Some(room) = self.room_in_pass(limits, holding).await else { return };
            if !self.pass(&mut folders, room, limits, holding).await {
                return;
            }
            if !folders.is_empty() && !self.pause(limits).await {
                return;
            }
        }
    }

    /// How many deliveries the next pass may send; `None` if there is none: under pressure, or out of time.
    pub(crate) async fn room_in_pass(&self, limits: Limits, holding: &mut Holding) -> Option<usize> {
        if !self.may_begin(limits) || self.is_under_pressure().await {
            return None;
        }
        Some(holding.room.in_pass(self.ports.pressure.state().await.as_deref()))
    }

    /// Waits for the next pass. Answers whether there is time for one.
    pub(crate) async fn pause(&self, limits: Limits) -> bool {
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

    /// Gives every folder a turn, as far as there is room; who had none comes first in the next pass. Answers whether to
    /// go on.
    async fn pass(
        &self,
        folders: &mut VecDeque<Folder>,
        room: usize,
        limits: Limits,
        holding: &mut Holding,
    ) -> bool {
        let mut room = room;
        holding.links.begin_pass();
        for _ in 0..folders.len() {
            if room == 0 || !self.may_begin(limits) {
                break;
            }
            let Some(mut folder) = folders.pop_front() else { break };
            let turn = self.take_turn(&mut folder, room.min(OF_ONE_MAX), limits, &mut holding.links);
            let (taken, next) = guarded(turn).await.unwrap_or_else(|_| {
                tracing::error!(folder = %folder.name, "held deliveries not released, it panicked");
                (Taken::default(), Next::Done)
            });
            room = room.saturating_sub(taken.sent);
            holding.sent += taken.sent;
            holding.add(taken);
            match next {
                Next::Again => folders.push_back(folder),
                Next::Done => {}
                Next::Stop => return false,
            }
        }
        true
    }

    /// Releases some of a folder: first what has expired, then what its subscription may have.
    async fn take_turn(
        &self,
        folder: &mut Folder,
        max: usize,
        limits: Limits,
        links: &mut Links,
    ) -> (Taken, Next) {
        let now = self.ports.clock.now();
        let mut taken = self.take_from(folder, max, Some(now), limits).await;
        let Judged { release, target } = self.judge(folder, now, links).await.unwrap_or_else(|error| {
            tracing::error!(folder = %folder.name, error = &error as &dyn Error, "held deliveries left, their topic cannot be read");
            Judged { release: Release::Nothing, target: None }
        });
        let allowed = links.allowed(release, target.as_ref()).min(max.saturating_sub(taken.sent));
        let released = match release {
            Release::Probe(_) => self.take_one_of(folder, allowed, limits).await,
            Release::All | Release::AtMost(_) | Release::Nothing => {
                self.take_from(folder, allowed, None, limits).await
            }
        };
        links.note(release, target.as_ref(), released.sent);
        taken.add(released);
        let next = match release {
            _ if taken.is_refused => Next::Stop,
            Release::All | Release::AtMost(_) if !folder.is_empty() => Next::Again,
            _ if folder.has_expired(now) => Next::Again,
            _ => Next::Done,
        };
        (taken, next)
    }

    /// Which of a folder's deliveries go. What lies in a folder that is nobody's goes: deliver knows what to do with it.
    async fn judge(&self, folder: &Folder, now: Timestamp, links: &Links) -> Result<Judged, RegistryError> {
        let to_nobody = |status| Judged { release: release(status, Standing::WELL, now), target: None };
        let Some((topic, subscription)) = layout::folder_owner(&folder.name) else {
            return Ok(to_nobody(None));
        };
        let topic = self.ports.registry.topic(&topic).await?;
        let found = topic.as_ref().and_then(|topic| topic.subscription(&subscription));
        let Some(found) = found.filter(|subscription| !subscription.lifetime.is_over(now)) else {
            return Ok(to_nobody(None));
        };
        let status = found.status_at(now);
        if status != Status::Active {
            return Ok(to_nobody(Some(status)));
        }
        let (target, gate) = self.route(found).await;
        let recovering_since = self.ports.links.recovering_since(&target);
        let standing = Standing { gate, recovering_since, passes: links.passes(&target) };
        Ok(Judged { release: release(Some(status), standing, now), target: Some(target) })
    }

    /// Where deliver would send a subscription's deliveries: to the first of its endpoints that does not have them held.
    async fn route(&self, subscription: &Subscription) -> (Target, Gate) {
        for endpoint in subscription.endpoints() {
            let target = Target::on(endpoint.link(), subscription);
            let gate = self.ports.links.gate(&target, true).await;
            if gate != Gate::Hold {
                return (target, gate);
            }
        }
        (Target::of(subscription), Gate::Hold)
    }

    /// Sends one of a folder's deliveries, any. If the first always were the one that asks, a few that fail for themselves
    /// would keep all others waiting, for they come back to the front.
    async fn take_one_of(&self, folder: &mut Folder, allowed: usize, limits: Limits) -> Taken {
        let mut drawn = [0; 2];
        self.ports.entropy.fill(&mut drawn);
        folder.draw(u16::from_le_bytes(drawn));
        let taken = self.take_from(folder, allowed.min(1), None, limits).await;
        folder.sort();
        taken
    }

    /// Sends up to `max` deliveries of a folder, those that expire first in front; with `expired_by`, only those whose time
    /// is over by then.
    async fn take_from(
        &self,
        folder: &mut Folder,
        max: usize,
        expired_by: Option<Timestamp>,
        limits: Limits,
    ) -> Taken {
        let mut taken = Taken::default();
        while taken.sent < max && !taken.is_refused && self.may_begin(limits) {
            if folder.keys.is_empty() && !self.list_more(folder, limits).await {
                break;
            }
            let mut wanted = folder.take_wanted(expired_by);
            if wanted.is_empty() {
                break;
            }
            taken.add(self.take(&mut wanted, max - taken.sent, limits).await);
            folder.give_back(wanted);
        }
        taken
    }

    /// The same for a run: what is forced, then what is held.
    pub(crate) async fn release_waiting(&self, limits: Limits, holding: &mut Holding) {
        let work = async {
            self.release_forced(limits, holding).await;
            self.release_held(limits, holding).await;
        };
        if within(&self.ports.clock, limits.work, work).await.is_none() {
            tracing::error!("held deliveries not released to the end in time, the next run goes on");
        }
    }
}
