//! A held folder's part of a pass: what it may send is reserved before its turn begins, of the room
//! in the pass as of what its link may have, so that the folders beside it do not send the same.

use crate::circuit::DeliveryTarget;
use crate::model::{HELD_PER_OBJECT_MAX, Timestamp};
use crate::release::{HeldFolder, HeldRelease, LinkShares, ReleaseAmount};

/// Most deliveries of one subscription that are released in one pass.
pub const OF_ONE_MAX: usize = HELD_PER_OBJECT_MAX;

/// Deliveries of a folder that may be released, and where to.
#[derive(Debug)]
pub struct ReleasePermission {
    /// The deliveries that may go in a pass.
    pub release: HeldRelease,
    /// `None` where no endpoint is asked.
    pub target: Option<DeliveryTarget>,
    /// Most of the folder that are released in a run.
    pub in_run_max: usize,
    /// Most that are released now, beside what is due of the subscription already.
    pub own_room: usize,
}

/// A folder whose turn it is, and what is reserved for it.
#[derive(Debug)]
pub struct FolderAllotment {
    /// The folder.
    pub folder: HeldFolder,
    /// The part of the pass's room.
    pub room: ReleaseAmount,
    /// The number that may be sent besides those that have expired.
    pub allowed: usize,
    /// Deliveries that have expired by then are sent first. `None` where that was done already.
    pub expired_by: Option<Timestamp>,
    permission: ReleasePermission,
}

/// True if a folder has another turn in this run.
#[derive(Debug, PartialEq, Eq)]
pub enum NextTurn {
    /// The folder has another turn.
    Again,
    /// The folder has no other turn.
    Done,
    /// No folder has: the queue takes nothing.
    Stop,
}

impl ReleasePermission {
    /// A permission for which no endpoint is asked.
    pub fn without_target(release: HeldRelease) -> Self {
        Self {
            release,
            target: None,
            in_run_max: usize::MAX,
            own_room: usize::MAX,
        }
    }

    /// The number of a folder's deliveries that may be sent now.
    fn allowed_now(&self, folder: &HeldFolder, links: &LinkShares) -> usize {
        let left_in_run = self.in_run_max.saturating_sub(folder.released);
        links
            .allowed_for(self.release, self.target.as_ref())
            .min(left_in_run)
            .min(self.own_room)
    }
}

impl FolderAllotment {
    /// Reserves what a folder may have of this room.
    pub fn reserve(
        folder: HeldFolder,
        permission: ReleasePermission,
        room: ReleaseAmount,
        links: &mut LinkShares,
        expired_by: Option<Timestamp>,
    ) -> Self {
        let max = room.deliveries.min(OF_ONE_MAX);
        let allowed = permission.allowed_now(&folder, links).min(max);
        links.reserve_deliveries(permission.release, permission.target.as_ref(), allowed);
        // How many have expired is not known before they are read.
        let has_expired = expired_by.is_some_and(|now| folder.has_expired(now));
        let room = ReleaseAmount {
            deliveries: if has_expired { max } else { allowed },
            ..room
        };
        Self {
            folder,
            room,
            allowed,
            expired_by,
            permission,
        }
    }

    /// Tells whether one delivery goes as a probe.
    pub fn is_probe(&self) -> bool {
        matches!(self.permission.release, HeldRelease::Probe(_))
    }

    /// Ends the turn, and gives back what is left of it. `released` counts those that had not
    /// expired. Answers the folder, and whether it has another turn.
    pub fn end_turn(
        mut self,
        released: usize,
        is_refused: bool,
        links: &mut LinkShares,
    ) -> (HeldFolder, NextTurn) {
        let ReleasePermission {
            release, target, ..
        } = &self.permission;
        links.give_back(
            *release,
            target.as_ref(),
            self.allowed.saturating_sub(released),
        );
        self.folder.released += released;
        let next = if is_refused {
            NextTurn::Stop
        } else {
            self.next(links)
        };
        (self.folder, next)
    }

    fn next(&self, links: &LinkShares) -> NextTurn {
        let has_more = match self.permission.release {
            HeldRelease::All | HeldRelease::AtMost(_) => {
                self.folder.released < self.permission.in_run_max
            }
            // None was sent as the probe after all.
            HeldRelease::Probe(_) => self.permission.allowed_now(&self.folder, links) > 0,
            HeldRelease::Nothing => false,
        };
        let has_expired = self
            .expired_by
            .is_some_and(|now| self.folder.has_expired(now));
        let goes_on = (has_more && !self.folder.is_empty()) || has_expired;
        if goes_on {
            NextTurn::Again
        } else {
            NextTurn::Done
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::circuit::ProbedTargets;

    const NOW: Timestamp = Timestamp::from_millis(1_772_856_300_000);
    const PROBE: HeldRelease = HeldRelease::Probe(ProbedTargets {
        link: true,
        subscription: false,
    });

    fn folder(minute: &str) -> HeldFolder {
        let mut folders = Vec::new();
        HeldFolder::sort_page(
            vec![format!("held/orders.one/{minute}/x.json")],
            false,
            &mut folders,
        );
        folders.remove(0)
    }

    fn reserve(
        release: HeldRelease,
        minute: &str,
        room: usize,
        links: &mut LinkShares,
    ) -> FolderAllotment {
        let target = Some(DeliveryTarget::parse("https://a.example:443 orders.one").unwrap());
        let permission = ReleasePermission {
            release,
            target,
            in_run_max: 300,
            own_room: usize::MAX,
        };
        let room = ReleaseAmount {
            deliveries: room,
            objects: 8,
        };
        FolderAllotment::reserve(folder(minute), permission, room, links, Some(NOW))
    }

    /// Deliveries that may go are reserved, and all the room where something has expired.
    #[test]
    fn allowed_deliveries_are_reserved_all_room_if_some_expired() {
        let check = |release, minute, room, expected| {
            let allotment = reserve(release, minute, room, &mut LinkShares::default());
            assert_eq!(
                (allotment.allowed, allotment.room.deliveries),
                expected,
                "{release:?} {minute} {room}"
            );
        };
        let past = "20200101T0000Z";
        let later = "20300101T0000Z";
        check(HeldRelease::All, later, 500, (OF_ONE_MAX, OF_ONE_MAX));
        check(HeldRelease::All, later, 50, (50, 50));
        check(HeldRelease::AtMost(4), later, 50, (4, 4));
        check(PROBE, later, 50, (1, 1));
        check(HeldRelease::Nothing, later, 50, (0, 0));
        check(HeldRelease::Nothing, past, 50, (0, 50));
        check(PROBE, past, 500, (1, OF_ONE_MAX));
    }

    #[test]
    fn a_folder_has_another_turn_while_something_of_it_may_go() {
        let check = |release, minute, released, is_refused, expected| {
            let mut links = LinkShares::default();
            let allotment = reserve(release, minute, 500, &mut links);
            let (folder, next) = allotment.end_turn(released, is_refused, &mut links);
            assert_eq!(
                (folder.released, next),
                (released, expected),
                "{release:?} {minute} {released}"
            );
        };
        let past = "20200101T0000Z";
        let later = "20300101T0000Z";
        check(HeldRelease::All, later, 200, false, NextTurn::Again);
        check(HeldRelease::All, later, 300, false, NextTurn::Done);
        check(HeldRelease::All, later, 0, true, NextTurn::Stop);
        check(PROBE, later, 1, false, NextTurn::Done);
        check(PROBE, later, 0, false, NextTurn::Again);
        check(HeldRelease::Nothing, later, 0, false, NextTurn::Done);
        check(HeldRelease::Nothing, past, 0, false, NextTurn::Again);
    }

    proptest! {
        #[test]
        fn folders_on_one_link_never_have_more_than_it_may_and_what_does_not_go_is_given_back(
            max in 1_usize..50,
            turns in prop::collection::vec((0_usize..300, 0_usize..60), 1..10),
        ) {
            let mut links = LinkShares::default();
            let mut reserved = Vec::new();
            for (room, _) in &turns {
                reserved.push(reserve(HeldRelease::AtMost(max), "20300101T0000Z", *room, &mut links));
            }
            let allowed: usize = reserved.iter().map(|it| it.allowed).sum();
            prop_assert!(allowed <= max);
            let mut all = 0;
            for (allotment, (_, sent)) in reserved.into_iter().zip(&turns) {
                let sent = allotment.allowed.min(*sent);
                all += sent;
                allotment.end_turn(sent, false, &mut links);
            }
            let next = reserve(HeldRelease::AtMost(max), "20300101T0000Z", 500, &mut links);
            prop_assert_eq!(next.allowed, max - all);
        }
    }
}
