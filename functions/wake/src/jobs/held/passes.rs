//! A pass: every folder has its turn, several of them side by side, so that many subscriptions with little
//! held for each wait for one another as little as may be.

use std::collections::VecDeque;
use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::release::{Allotment, Amount, HeldFolder, NextTurn, Released};
use posthaste_ports::{Clock, Ports};
use posthaste_services::catch_panic::catch_panic;

use super::permissions::Permissions;
use super::run::HeldRun;
use super::turns::Turns;
use crate::objects::RELEASES_AT_ONCE;

/// Most folders that have their turn at the same time.
const TURNS_AT_ONCE: usize = RELEASES_AT_ONCE;

/// Gives folders their turns.
pub(super) struct Passes<'a, P: Ports> {
    pub(super) permissions: Permissions<'a, P>,
    pub(super) turns: Turns<'a, P>,
    pub(super) clock: &'a P::Clock,
}

impl<P: Ports> Passes<'_, P> {
    /// Gives every folder a turn, as far as there is room; folders that had none come first in the next pass.
    /// Answers whether to go on.
    pub(super) async fn pass(&self, mut room: Amount, run: &mut HeldRun<'_>) -> bool {
        run.links.begin_pass();
        let mut to_come = run.folders.len();
        while to_come > 0 && !room.is_nothing() && run.budget.may_begin(self.clock) {
            let some: VecDeque<_> = run.folders.drain(..TURNS_AT_ONCE.min(to_come)).collect();
            to_come -= some.len();
            let (batch, without_room) = self.allot(some, room, run).await;
            to_come += without_room.len();
            without_room.into_iter().rev().for_each(|folder| run.folders.push_front(folder));
            let (released, goes_on) = self.take_turns(batch, run).await;
            if !goes_on {
                return false;
            }
            room = room.minus(released.amount());
        }
        true
    }

    /// Reserves what these folders may have. Answers also those for which there is no room beside the others.
    async fn allot(
        &self,
        mut folders: VecDeque<HeldFolder>,
        room: Amount,
        run: &mut HeldRun<'_>,
    ) -> (Vec<Allotment>, VecDeque<HeldFolder>) {
        let now = self.clock.now();
        let expired_by = run.releases_expired_in_turns().then_some(now);
        let links = &mut run.links;
        let permissions = folders.iter().map(|folder| self.permissions.of(folder, now, links));
        let permissions = join_all(permissions).await;
        // Where there is one object for all, the first folder that may send has it. Those that may not need
        // none.
        let objects = (room.objects / folders.len().max(1)).max(1);
        let (mut batch, mut room) = (Vec::new(), room);
        for permission in permissions {
            let Some(folder) = (!room.is_nothing()).then(|| folders.pop_front()).flatten() else { break };
            let room_here = Amount { objects, ..room };
            let allotment = Allotment::reserve(folder, permission, room_here, links, expired_by);
            if allotment.room.deliveries > 0 {
                room = room.minus(allotment.room);
            }
            batch.push(allotment);
        }
        (batch, folders)
    }

    /// Has these turns side by side. Answers what was released, and whether to go on.
    async fn take_turns(&self, mut batch: Vec<Allotment>, run: &mut HeldRun<'_>) -> (Released, bool) {
        let at_once = RELEASES_AT_ONCE / batch.len().max(1);
        let turns = batch.iter_mut().map(|turn| catch_panic(self.turns.take(turn, at_once, run.budget)));
        let results = join_all(turns).await;
        let (mut all, mut goes_on) = (Released::default(), true);
        for (allotment, result) in batch.into_iter().zip(results) {
            let has_panicked = result.is_err();
            let (released, unexpired) = result.unwrap_or_default();
            all.add(released);
            let (folder, next) = allotment.end(unexpired, released.is_refused, &mut run.links);
            match next {
                _ if has_panicked => {
                    tracing::error!(folder = %folder.name, "held deliveries not released, it panicked");
                }
                NextTurn::Again => run.folders.push_back(folder),
                NextTurn::Done => {}
                NextTurn::Stop => goes_on = false,
            }
        }
        run.sent += all.sent;
        run.add(all);
        (all, goes_on)
    }

    /// Releases all that has expired, of several folders side by side and in half of the time. Answers
    /// whether to go on.
    pub(super) async fn release_expired(&self, run: &mut HeldRun<'_>) -> bool {
        let (now, half) = (self.clock.now(), run.budget.half(self.clock));
        let mut folders = std::mem::take(&mut run.folders);
        for some in folders.make_contiguous().chunks_mut(TURNS_AT_ONCE) {
            let at_once = RELEASES_AT_ONCE / some.len();
            let release = |folder| catch_panic(self.turns.release_expired(folder, now, at_once, half));
            let mut all = Released::default();
            for released in join_all(some.iter_mut().map(release)).await {
                match released {
                    Ok(more) => all.add(more),
                    Err(error) => {
                        let error = &error as &dyn Error;
                        tracing::error!(error, "releasing what has expired panicked");
                    }
                }
            }
            run.sent += all.sent;
            run.add_expired(all);
            if all.is_refused {
                return false;
            }
        }
        run.folders = folders;
        true
    }
}
