//! A pass: every folder has its turn, several of them side by side, so that many subscriptions with little held for each
//! wait for one another as little as may be.
//!
//! What a turn may send is set aside before it begins, of the room in the pass as of what its link may have, so that those
//! beside it do not send the same.

use std::collections::VecDeque;
use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::model::time::Timestamp;
use posthaste_core::release::held::Release;
use posthaste_core::release::speed::Amount;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};
use posthaste_services::catch_panic::catch_panic;

use super::Holding;
use super::folders::Folder;
use super::links::Links;
use super::take::Taken;
use super::turn::{Judged, Next, Turn};
use crate::Wake;
use crate::limits::Limits;
use crate::release::RELEASES_AT_ONCE;

/// Most folders that have their turn at the same time.
const TURNS_AT_ONCE: usize = RELEASES_AT_ONCE;

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Gives every folder a turn, as far as there is room; who had none comes first in the next pass. Answers whether to
    /// go on.
    pub(super) async fn pass(
        &self,
        folders: &mut VecDeque<Folder>,
        room: Amount,
        limits: Limits,
        holding: &mut Holding,
    ) -> bool {
        holding.links.begin_pass();
        let (mut room, mut to_come) = (room, folders.len());
        while to_come > 0 && !room.is_nothing() && self.may_begin(limits) {
            let some: VecDeque<_> = folders.drain(..TURNS_AT_ONCE.min(to_come)).collect();
            to_come -= some.len();
            let (row, without_room) = self.row(some, room, holding).await;
            to_come += without_room.len();
            without_room.into_iter().rev().for_each(|folder| folders.push_front(folder));
            let (taken, goes_on) = self.take_turns(row, folders, limits, holding).await;
            if !goes_on {
                return false;
            }
            room = room.minus(taken.amount());
        }
        true
    }

    /// Sets aside what these folders may have. Answers also those for which there is no room beside the others.
    async fn row(
        &self,
        mut folders: VecDeque<Folder>,
        room: Amount,
        holding: &mut Holding,
    ) -> (Vec<Turn>, VecDeque<Folder>) {
        let now = self.ports.clock.now();
        let expired_by = holding.takes_expired_in_turns().then_some(now);
        let links = &mut holding.links;
        let judged = join_all(folders.iter().map(|folder| self.judge_safely(folder, now, links))).await;
        // Where there is one object for all, the first folder that may send has it. Those that may not need none.
        let objects = (room.objects / folders.len().max(1)).max(1);
        let (mut row, mut room) = (Vec::new(), room);
        for judged in judged {
            let Some(folder) = (!room.is_nothing()).then(|| folders.pop_front()).flatten() else { break };
            let turn = Turn::begin(folder, judged, Amount { objects, ..room }, links, expired_by);
            if turn.room.deliveries > 0 {
                room = room.minus(turn.room);
            }
            row.push(turn);
        }
        (row, folders)
    }

    /// Has these turns side by side. Answers what went, and whether to go on.
    async fn take_turns(
        &self,
        mut row: Vec<Turn>,
        folders: &mut VecDeque<Folder>,
        limits: Limits,
        holding: &mut Holding,
    ) -> (Taken, bool) {
        let at_once = RELEASES_AT_ONCE / row.len().max(1);
        let turns = row.iter_mut().map(|turn| catch_panic(self.take_turn(turn, at_once, limits)));
        let (mut taken, mut goes_on) = (Taken::default(), true);
        let all_went = join_all(turns).await;
        for (turn, went) in row.into_iter().zip(all_went) {
            let has_panicked = went.is_err();
            let went = went.unwrap_or_default();
            taken.add(went.taken);
            let (folder, next) = turn.end(&went, &mut holding.links);
            match next {
                _ if has_panicked => {
                    tracing::error!(folder = %folder.name, "held deliveries not released, it panicked");
                }
                Next::Again => folders.push_back(folder),
                Next::Done => {}
                Next::Stop => goes_on = false,
            }
        }
        holding.sent += taken.sent;
        holding.add(taken);
        (taken, goes_on)
    }

    /// Sends all that has expired in these folders, several side by side. Answers whether to go on.
    pub(super) async fn release_expired(
        &self,
        folders: &mut VecDeque<Folder>,
        limits: Limits,
        holding: &mut Holding,
    ) -> bool {
        let now = self.ports.clock.now();
        for some in folders.make_contiguous().chunks_mut(TURNS_AT_ONCE) {
            let at_once = RELEASES_AT_ONCE / some.len();
            let takes = some
                .iter_mut()
                .map(|folder| catch_panic(self.take_expired_from(folder, now, at_once, limits)));
            let mut all = Taken::default();
            for result in join_all(takes).await {
                match result {
                    Ok(more) => all.add(more),
                    Err(error) => {
                        tracing::error!(error = &error as &dyn Error, "releasing what has expired panicked");
                    }
                }
            }
            holding.sent += all.sent;
            holding.add_expired(all);
            if all.is_refused {
                return false;
            }
        }
        true
    }

    /// What may go of a folder: nothing, where that cannot be found out.
    async fn judge_safely(&self, folder: &Folder, now: Timestamp, links: &Links) -> Judged {
        match catch_panic(self.judge(folder, now, links)).await {
            Ok(Ok(judged)) => return judged,
            Ok(Err(error)) => {
                tracing::error!(folder = %folder.name, error = &error as &dyn Error, "held deliveries left, their topic cannot be read");
            }
            Err(_) => tracing::error!(folder = %folder.name, "held deliveries left, it panicked"),
        }
        Judged::to_nobody(Release::Nothing)
    }
}
