//! A folder's turn: its deliveries that have expired are released, then those that its subscription may have.

use std::collections::VecDeque;

use posthaste_core::model::Timestamp;
use posthaste_core::release::{Allotment, HeldFolder, Quota, Released};
use posthaste_ports::{Entropy, Ports};

use super::folders::Folders;
use crate::batches::Batches;
use crate::budget::Budget;

/// Releases deliveries of one folder at a time.
pub(super) struct Turns<'a, P: Ports> {
    pub(super) batches: &'a Batches<'a, P>,
    pub(super) folders: Folders<'a, P>,
    pub(super) clock: &'a P::Clock,
    pub(super) entropy: &'a P::Entropy,
}

impl<P: Ports> Turns<'_, P> {
    /// Releases what is allotted. Answers all that was released, and how many of them had not expired.
    pub(super) async fn take(
        &self,
        allotment: &mut Allotment,
        at_once: usize,
        budget: Budget<'_>,
    ) -> (Released, usize) {
        let quota = Quota { max: allotment.room, at_once };
        let mut released = Released::default();
        if allotment.expired_by.is_some() {
            released = self.release(&mut allotment.folder, quota, allotment.expired_by, budget).await;
        }
        let quota = quota.after(&released).at_most(allotment.allowed);
        let allowed = if allotment.is_probe() {
            self.release_one(&mut allotment.folder, quota, budget).await
        } else {
            self.release(&mut allotment.folder, quota, None, budget).await
        };
        released.add(allowed);
        (released, allowed.sent)
    }

    /// Releases one of a folder's deliveries, any. If the first always were the probe, a few that fail for
    /// themselves would keep all others waiting, for they come back to the front. It is drawn of a page, and
    /// not of the few keys that are kept: in a long outage each of those would be the probe again and again,
    /// and then wait for hours.
    async fn release_one(&self, folder: &mut HeldFolder, quota: Quota, budget: Budget<'_>) -> Released {
        let mut drawn = [0; 2];
        self.entropy.fill(&mut drawn);
        if folder.more_after.is_some() {
            self.folders.list_more(folder, budget).await;
        }
        folder.draw(u16::from_le_bytes(drawn));
        let released = self.release(folder, quota.at_most(1), None, budget).await;
        folder.sort();
        released
    }

    /// Releases deliveries of a folder, those that expire first in front; with `expired_by`, only objects
    /// that have expired by then.
    async fn release(
        &self,
        folder: &mut HeldFolder,
        quota: Quota,
        expired_by: Option<Timestamp>,
        budget: Budget<'_>,
    ) -> Released {
        let mut released = Released::default();
        while quota.is_open(&released)
            && let Some(mut wanted) = self.wanted(folder, expired_by, budget).await
        {
            released.add(self.batches.release(&mut wanted, quota.after(&released), budget).await);
            folder.give_back(wanted);
        }
        released
    }

    /// Releases all that has expired of a folder. What lies beside it stays, for the folder's turns.
    pub(super) async fn release_expired(
        &self,
        folder: &mut HeldFolder,
        now: Timestamp,
        at_once: usize,
        budget: Budget<'_>,
    ) -> Released {
        let (mut released, mut left) = (Released::default(), VecDeque::new());
        while !released.is_refused
            && let Some(mut wanted) = self.wanted(folder, Some(now), budget).await
        {
            released.add(self.batches.release_expired(&mut wanted, now, at_once, budget).await.0);
            left.append(&mut wanted);
        }
        folder.give_back(left);
        released
    }

    /// The next wanted keys of a folder; `None` if there are none, or no time is left.
    async fn wanted(
        &self,
        folder: &mut HeldFolder,
        expired_by: Option<Timestamp>,
        budget: Budget<'_>,
    ) -> Option<VecDeque<String>> {
        if !budget.may_begin(self.clock)
            || (folder.keys.is_empty() && !self.folders.list_more(folder, budget).await)
        {
            return None;
        }
        Some(folder.take_wanted(expired_by)).filter(|wanted| !wanted.is_empty())
    }
}
