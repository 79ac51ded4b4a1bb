//! A pass: every folder has its turn, several of them side by side, so that many subscriptions with
//! few held deliveries each wait for one another as little as possible.

use std::collections::VecDeque;
use std::error::Error;

use futures_util::future::join_all;
use posthaste_core::release::{
    FolderAllotment, HeldFolder, HeldRelease, NextTurn, ReleaseAmount, ReleasePermission,
    ReleaseSpeed, ReleasedCounts, own_room,
};
use posthaste_ports::{Clock, Ports};
use posthaste_services::catch_panic::catch_panic;

use super::run::HeldRun;
use super::{permissions, turns};
use crate::objects::RELEASES_AT_ONCE;
use crate::ports::WakePorts;

/// Most folders that have their turn at the same time.
const TURNS_AT_ONCE: usize = RELEASES_AT_ONCE;

/// Gives every folder a turn, as far as there is room; folders that had none come first in the next
/// pass. Answers whether to go on.
pub(super) async fn give_turns<P: Ports>(
    held: &mut HeldRun<'_, P>,
    mut room: ReleaseAmount,
) -> bool {
    held.links.begin_pass();
    let mut to_come = held.folders.len();
    while to_come > 0 && !room.is_nothing() && held.run.may_begin() {
        let some: VecDeque<_> = held.folders.drain(..TURNS_AT_ONCE.min(to_come)).collect();
        to_come -= some.len();
        let (batch, without_room) = allot_room(held, some, room).await;
        to_come += without_room.len();
        without_room
            .into_iter()
            .rev()
            .for_each(|folder| held.folders.push_front(folder));
        let (released, goes_on) = take_turns(held, batch).await;
        if !goes_on {
            return false;
        }
        room = room.minus(released.amount());
    }
    true
}

/// Reserves what these folders may have. Answers also the folders for which there is no room beside
/// the others.
async fn allot_room<P: Ports>(
    held: &mut HeldRun<'_, P>,
    mut folders: VecDeque<HeldFolder>,
    mut room: ReleaseAmount,
) -> (Vec<FolderAllotment>, VecDeque<HeldFolder>) {
    let ports = held.run.ports;
    let now = held.run.ports.clock.now();
    let links = &mut held.links;
    // Under pressure what has expired has gone before the turns.
    let expired_by = (held.speed == ReleaseSpeed::Full).then_some(now);
    let permissions = join_all(
        folders
            .iter()
            .map(|folder| permissions::for_folder(ports, folder, now, links)),
    )
    .await;
    let own_rooms = Box::pin(own_rooms(ports, &folders, &permissions)).await;
    // Where there is one object for all, the first folder that may send has it. A folder that may
    // not needs none.
    let objects = (room.objects / folders.len().max(1)).max(1);
    let mut batch = Vec::new();
    for (permission, own_room) in permissions.into_iter().zip(own_rooms) {
        let Some(folder) = (!room.is_nothing()).then(|| folders.pop_front()).flatten() else {
            break;
        };
        let room_here = ReleaseAmount { objects, ..room };
        let permission = ReleasePermission {
            own_room,
            ..permission
        };
        let allotment = FolderAllotment::reserve(folder, permission, room_here, links, expired_by);
        if allotment.room.deliveries > 0 {
            room = room.minus(allotment.room);
        }
        batch.push(allotment);
    }
    (batch, folders)
}

/// The room of each folder's subscription beside what is due of it already. Where none may send,
/// nothing is asked.
async fn own_rooms<P: Ports>(
    ports: &WakePorts<P>,
    folders: &VecDeque<HeldFolder>,
    permissions: &[ReleasePermission],
) -> Vec<usize> {
    if permissions
        .iter()
        .all(|permission| matches!(permission.release, HeldRelease::Nothing))
    {
        return vec![usize::MAX; folders.len()];
    }
    let state = ports.pressure.state().await;
    let state = state.as_deref();
    let names: Vec<_> = folders.iter().map(|folder| folder.name.clone()).collect();
    let due = ports.count_due(&names).await;
    due.into_iter().map(|due| own_room(state, due)).collect()
}

/// Takes these turns side by side. Answers what was released, and whether to go on.
async fn take_turns<P: Ports>(
    held: &mut HeldRun<'_, P>,
    mut batch: Vec<FolderAllotment>,
) -> (ReleasedCounts, bool) {
    let run = held.run;
    let at_once = RELEASES_AT_ONCE / batch.len().max(1);
    let turns = batch
        .iter_mut()
        .map(|turn| catch_panic(turns::release_allotment(run, turn, at_once)));
    let results = join_all(turns).await;
    let mut all = ReleasedCounts::default();
    let mut goes_on = true;
    for (allotment, result) in batch.into_iter().zip(results) {
        let has_panicked = result.is_err();
        let (released, unexpired) = result.unwrap_or_default();
        all.add_released(released);
        let (folder, next) = allotment.end_turn(unexpired, released.is_refused, &mut held.links);
        match next {
            _ if has_panicked => {
                tracing::error!(folder = %folder.name, "held deliveries not released: sending them panicked");
            }
            NextTurn::Again => held.folders.push_back(folder),
            NextTurn::Done => {}
            NextTurn::Stop => goes_on = false,
        }
    }
    held.sent += all.sent;
    held.count_released(all);
    (all, goes_on)
}

/// Releases all that has expired, of several folders side by side and in half of the time. Answers
/// whether to go on.
pub(super) async fn release_expired<P: Ports>(held: &mut HeldRun<'_, P>) -> bool {
    let now = held.run.ports.clock.now();
    let half = held.run.with_half_time();
    let mut folders = std::mem::take(&mut held.folders);
    for some in folders.make_contiguous().chunks_mut(TURNS_AT_ONCE) {
        let at_once = RELEASES_AT_ONCE / some.len();
        let releases = some
            .iter_mut()
            .map(|folder| catch_panic(turns::release_expired(half, folder, now, at_once)));
        let mut all = ReleasedCounts::default();
        for released in join_all(releases).await {
            match released {
                Ok(more) => all.add_released(more),
                Err(error) => {
                    let error = &error as &dyn Error;
                    tracing::error!(
                        error,
                        "expired deliveries not released: sending them panicked"
                    );
                }
            }
        }
        held.sent += all.sent;
        held.count_expired(all);
        if all.is_refused {
            return false;
        }
    }
    held.folders = folders;
    true
}
