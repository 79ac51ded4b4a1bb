//! A folder's turn in a pass: what may go of it, what is set aside for that, and what went.

use std::collections::VecDeque;

use posthaste_core::circuit::{Gate, Target};
use posthaste_core::model::time::Timestamp;
use posthaste_core::model::topic::{Status, Subscription};
use posthaste_core::release::held::{Release, Standing, at_rate, release};
use posthaste_core::release::speed::Amount;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};
use posthaste_services::RegistryError;

use super::OF_ONE_MAX;
use super::folders::Folder;
use super::links::Links;
use super::take::{Portion, Taken};
use crate::Wake;
use crate::limits::Limits;

/// What may go of a folder, and where to.
#[derive(Debug)]
pub(super) struct Judged {
    release: Release,
    /// `None` where nobody is asked.
    target: Option<Target>,
    /// Most of it that go in a run.
    in_run_max: usize,
}

/// A folder whose turn it is.
#[derive(Debug)]
pub(super) struct Turn {
    /// What it is about.
    pub(super) folder: Folder,
    /// The part of the pass that is set aside for it.
    pub(super) room: Amount,
    judged: Judged,
    /// How many may go; those that have expired go beside them.
    allowed: usize,
    /// What has expired by then goes first. `None` where it has gone already.
    expired_by: Option<Timestamp>,
}

/// What went in a turn.
#[derive(Debug, Default)]
pub(super) struct Went {
    /// All of it.
    pub(super) taken: Taken,
    /// How many of them had not expired.
    released: usize,
}

/// Whether a folder has another turn in this run.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// It has.
    Again,
    /// It has not.
    Done,
    /// Nobody has: the queue takes nothing.
    Stop,
}

impl Judged {
    /// What goes, or does not, without anybody being asked.
    pub(super) fn to_nobody(release: Release) -> Self {
        Self { release, target: None, in_run_max: usize::MAX }
    }

    /// How many of a folder's deliveries may go now.
    fn allowed(&self, folder: &Folder, links: &Links) -> usize {
        let left_in_run = self.in_run_max.saturating_sub(folder.released);
        links.allowed(self.release, self.target.as_ref()).min(left_in_run)
    }
}

impl Turn {
    /// Sets aside what a folder may have.
    pub(super) fn begin(
        folder: Folder,
        judged: Judged,
        room: Amount,
        links: &mut Links,
        expired_by: Option<Timestamp>,
    ) -> Self {
        let max = room.deliveries.min(OF_ONE_MAX);
        let allowed = judged.allowed(&folder, links).min(max);
        links.reserve(judged.release, judged.target.as_ref(), allowed);
        // How many have expired is not known before they are read.
        let has_expired = expired_by.is_some_and(|now| folder.has_expired(now));
        let room = Amount { deliveries: if has_expired { max } else { allowed }, ..room };
        Self { folder, room, judged, allowed, expired_by }
    }

    /// Gives back what was set aside and did not go. Answers the folder, and whether it has another turn.
    pub(super) fn end(mut self, went: &Went, links: &mut Links) -> (Folder, Next) {
        let Judged { release, target, .. } = &self.judged;
        links.give_back(*release, target.as_ref(), self.allowed.saturating_sub(went.released));
        self.folder.released += went.released;
        let next = if went.taken.is_refused { Next::Stop } else { self.next(links) };
        (self.folder, next)
    }

    fn next(&self, links: &Links) -> Next {
        let has_more = match self.judged.release {
            Release::All | Release::AtMost(_) => self.folder.released < self.judged.in_run_max,
            // Nobody has asked after all.
            Release::Probe(_) => self.judged.allowed(&self.folder, links) > 0,
            Release::Nothing => false,
        };
        let has_expired = self.expired_by.is_some_and(|now| self.folder.has_expired(now));
        let goes_on = (has_more && !self.folder.is_empty()) || has_expired;
        if goes_on { Next::Again } else { Next::Done }
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
    /// Releases some of a folder: first what has expired, then what its subscription may have.
    pub(super) async fn take_turn(&self, turn: &mut Turn, at_once: usize, limits: Limits) -> Went {
        let portion = Portion { max: turn.room, at_once };
        let mut taken = match turn.expired_by {
            Some(_) => self.take_from(&mut turn.folder, portion, turn.expired_by, limits).await,
            None => Taken::default(),
        };
        let portion = portion.after(&taken).at_most(turn.allowed);
        let released = match turn.judged.release {
            Release::Probe(_) => self.take_one_of(&mut turn.folder, portion, limits).await,
            Release::All | Release::AtMost(_) | Release::Nothing => {
                self.take_from(&mut turn.folder, portion, None, limits).await
            }
        };
        taken.add(released);
        Went { taken, released: released.sent }
    }

    /// Which of a folder's deliveries go. What lies in a folder that is nobody's goes: deliver knows what to do with it.
    pub(super) async fn judge(
        &self,
        folder: &Folder,
        now: Timestamp,
        links: &Links,
    ) -> Result<Judged, RegistryError> {
        let to_nobody = |status| Judged::to_nobody(release(status, Standing::WELL, now));
        let Some((topic, subscription)) = layout::folder_owner(&folder.name) else {
            return Ok(to_nobody(None));
        };
        let topic = self.ports.registry.topic(&topic).await?;
        let found = topic.as_ref().and_then(|topic| topic.subscription(&subscription));
        let Some(found) = found.filter(|subscription| !subscription.lifetime.is_over(now)) else {
            return Ok(to_nobody(None));
        };
        self.note_waiting(found, now).await;
        let status = found.status_at(now);
        if status != Status::Active {
            return Ok(to_nobody(Some(status)));
        }
        let (target, gate) = self.route(found).await;
        let recovering_since = self.ports.links.recovering_since(&target);
        let standing = Standing { gate, recovering_since, passes: links.passes(&target) };
        let release = release(Some(status), standing, now);
        Ok(Judged { release, target: Some(target), in_run_max: at_rate(found.rate, found.batching) })
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
    /// would keep all others waiting, for they come back to the front. It is drawn of a page, and not of the few
    /// keys that are kept: in a long outage each of those would ask again and again, and then wait for hours.
    async fn take_one_of(&self, folder: &mut Folder, portion: Portion, limits: Limits) -> Taken {
        let mut drawn = [0; 2];
        self.ports.entropy.fill(&mut drawn);
        if !folder.is_listed() {
            self.list_more(folder, limits).await;
        }
        folder.draw(u16::from_le_bytes(drawn));
        let taken = self.take_from(folder, portion.at_most(1), None, limits).await;
        folder.sort();
        taken
    }

    /// Sends a portion of a folder's deliveries, those that expire first in front; with `expired_by`, only those whose time
    /// is over by then.
    async fn take_from(
        &self,
        folder: &mut Folder,
        portion: Portion,
        expired_by: Option<Timestamp>,
        limits: Limits,
    ) -> Taken {
        let mut taken = Taken::default();
        while !portion.after(&taken).max.is_nothing() && !taken.is_refused && self.may_begin(limits) {
            if folder.keys.is_empty() && !self.list_more(folder, limits).await {
                break;
            }
            let mut wanted = folder.take_wanted(expired_by);
            if wanted.is_empty() {
                break;
            }
            taken.add(self.take(&mut wanted, portion.after(&taken), limits).await);
            folder.give_back(wanted);
        }
        taken
    }

    /// Sends all that has expired of a folder. What lies beside it stays, for the folder's turns.
    pub(super) async fn take_expired_from(
        &self,
        folder: &mut Folder,
        now: Timestamp,
        at_once: usize,
        limits: Limits,
    ) -> Taken {
        let (mut taken, mut left) = (Taken::default(), VecDeque::new());
        while !taken.is_refused && self.may_begin(limits) {
            if folder.keys.is_empty() && !self.list_more(folder, limits).await {
                break;
            }
            let mut wanted = folder.take_wanted(Some(now));
            if wanted.is_empty() {
                break;
            }
            taken.add(self.take_expired(&mut wanted, now, at_once, limits).await.0);
            left.append(&mut wanted);
        }
        folder.give_back(left);
        taken
    }
}
