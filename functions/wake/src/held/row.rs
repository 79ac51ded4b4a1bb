//! A pass: every folder has its turn, several of them side by side, so that many subscriptions with little held for each
//! wait for one another as little as may be.
//!
//! What a turn may send is set aside before it begins, of the room in the pass as of what its link may have, so that those
//! beside it do not send the same.

use std::collections::VecDeque;
use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::held::Release;
use posthaste_core::time::Timestamp;
use posthaste_ports::guard::guarded;
use posthaste_ports::{Clock, Entropy, ObjectStore, QueueSender};

use super::Holding;
use super::folders::Folder;
use super::links::Links;
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
        room: usize,
        limits: Limits,
        holding: &mut Holding,
    ) -> bool {
        holding.links.begin_pass();
        let (mut room, mut to_come) = (room, folders.len());
        while to_come > 0 && room > 0 && self.may_begin(limits) {
            let some: VecDeque<_> = folders.drain(..TURNS_AT_ONCE.min(to_come)).collect();
            to_come -= some.len();
            let (row, without_room) = self.row(some, room, &mut holding.links).await;
            to_come += without_room.len();
            without_room.into_iter().rev().for_each(|folder| folders.push_front(folder));
            let sent_before = holding.sent;
            if !self.take_turns(row, folders, limits, holding).await {
                return false;
            }
            room = room.saturating_sub(holding.sent - sent_before);
        }
        true
    }

    /// Sets aside what these folders may have. Answers also those for which there is no room beside the others.
    async fn row(
        &self,
        mut folders: VecDeque<Folder>,
        room: usize,
        links: &mut Links,
    ) -> (Vec<Turn>, VecDeque<Folder>) {
        let now = self.ports.clock.now();
        let judged = join_all(folders.iter().map(|folder| self.judge_safely(folder, now, links))).await;
        let (mut row, mut room) = (Vec::new(), room);
        for judged in judged {
            let Some(folder) = (room > 0).then(|| folders.pop_front()).flatten() else { break };
            let turn = Turn::begin(folder, judged, room, links, now);
            room = room.saturating_sub(turn.room);
            row.push(turn);
        }
        (row, folders)
    }

    /// Has these turns side by side. Answers whether to go on.
    async fn take_turns(
        &self,
        mut row: Vec<Turn>,
        folders: &mut VecDeque<Folder>,
        limits: Limits,
        holding: &mut Holding,
    ) -> bool {
        let objects = RELEASES_AT_ONCE / row.len().max(1);
        let turns = row.iter_mut().map(|turn| guarded(self.take_turn(turn, objects, limits)));
        let mut goes_on = true;
        let all_went = join_all(turns).await;
        for (turn, went) in row.into_iter().zip(all_went) {
            let has_panicked = went.is_err();
            let went = went.unwrap_or_default();
            holding.sent += went.taken.sent;
            holding.add(went.taken);
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
        goes_on
    }

    /// What may go of a folder: nothing, where that cannot be found out.
    async fn judge_safely(&self, folder: &Folder, now: Timestamp, links: &Links) -> Judged {
        match guarded(self.judge(folder, now, links)).await {
            Ok(Ok(judged)) => return judged,
            Ok(Err(error)) => {
                tracing::error!(folder = %folder.name, error = &error as &dyn Error, "held deliveries left, their topic cannot be read");
            }
            Err(_) => tracing::error!(folder = %folder.name, "held deliveries left, it panicked"),
        }
        Judged::to_nobody(Release::Nothing)
    }
}
