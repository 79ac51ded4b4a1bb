//! A folder's turn: its deliveries that have expired are released, then those that its subscription
//! may have.

use std::collections::VecDeque;

use posthaste_core::model::Timestamp;
use posthaste_core::release::{FolderAllotment, HeldFolder, ReleaseQuota, ReleasedCounts};
use posthaste_ports::{Entropy, Ports};

use super::folders::list_more;
use crate::batches;
use crate::run::WakeRun;

/// Releases what is allotted. Answers all that was released, and how many deliveries of it had not
/// expired.
pub(super) async fn release_allotment<P: Ports>(
    run: WakeRun<'_, P>,
    allotment: &mut FolderAllotment,
    at_once: usize,
) -> (ReleasedCounts, usize) {
    let quota = ReleaseQuota {
        max: allotment.room,
        at_once,
    };
    let mut released = ReleasedCounts::default();
    if allotment.expired_by.is_some() {
        released =
            release_from_folder(run, &mut allotment.folder, quota, allotment.expired_by).await;
    }
    let quota = quota.rest_after(&released).capped_at(allotment.allowed);
    let allowed = if allotment.is_probe() {
        release_one(run, &mut allotment.folder, quota).await
    } else {
        release_from_folder(run, &mut allotment.folder, quota, None).await
    };
    released.add_released(allowed);
    (released, allowed.sent)
}

/// Releases one of a folder's deliveries, any. If the first were always the probe, a few that fail
/// for reasons of their own would keep all others waiting, for they come back to the front. The
/// delivery is drawn from a page, and not from the few keys that are kept: in a long outage each of
/// those would be the probe again and again, and then wait for hours.
async fn release_one<P: Ports>(
    run: WakeRun<'_, P>,
    folder: &mut HeldFolder,
    quota: ReleaseQuota,
) -> ReleasedCounts {
    let mut drawn = [0; 2];
    run.ports.entropy.fill(&mut drawn);
    if folder.more_after.is_some() {
        list_more(run, folder).await;
    }
    folder.put_drawn_first(u16::from_le_bytes(drawn));
    let released = release_from_folder(run, folder, quota.capped_at(1), None).await;
    folder.sort_keys();
    released
}

/// Releases deliveries of a folder, those that expire first in front. With `expired_by`, it takes
/// only objects that have expired by then.
async fn release_from_folder<P: Ports>(
    run: WakeRun<'_, P>,
    folder: &mut HeldFolder,
    quota: ReleaseQuota,
    expired_by: Option<Timestamp>,
) -> ReleasedCounts {
    let mut released = ReleasedCounts::default();
    while quota.is_open(&released)
        && let Some(mut wanted) = next_wanted_keys(run, folder, expired_by).await
    {
        released.add_released(
            batches::release_within_quota(run, &mut wanted, quota.rest_after(&released)).await,
        );
        folder.give_back(wanted);
    }
    released
}

/// Releases all that has expired of a folder. The rest stays, for the folder's turns.
pub(super) async fn release_expired<P: Ports>(
    run: WakeRun<'_, P>,
    folder: &mut HeldFolder,
    now: Timestamp,
    at_once: usize,
) -> ReleasedCounts {
    let mut released = ReleasedCounts::default();
    let mut left = VecDeque::new();
    while !released.is_refused
        && let Some(mut wanted) = next_wanted_keys(run, folder, Some(now)).await
    {
        released.add_released(
            batches::release_expired(run, &mut wanted, now, at_once)
                .await
                .0,
        );
        left.append(&mut wanted);
    }
    folder.give_back(left);
    released
}

/// The next wanted keys of a folder; `None` if there are none, or no time is left.
async fn next_wanted_keys<P: Ports>(
    run: WakeRun<'_, P>,
    folder: &mut HeldFolder,
    expired_by: Option<Timestamp>,
) -> Option<VecDeque<String>> {
    if !run.may_begin() || (folder.keys.is_empty() && !list_more(run, folder).await) {
        return None;
    }
    Some(folder.take_wanted(expired_by)).filter(|wanted| !wanted.is_empty())
}
