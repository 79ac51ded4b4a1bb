//! Parked deliveries of subscriptions that an operator forced, released before their minute. manage
//! leaves a request for each, and wake walks through all that is parked, in passes beside those of
//! what is held. Held deliveries go by their own rules, which force has opened.

mod requests;

use std::error::Error;

use posthaste_core::release::{ForcedWalk, ReleaseAmount, ReleaseQuota, ReleasedCounts};
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ObjectStore, Ports};

use crate::batches;
use crate::objects::RELEASES_AT_ONCE;
use crate::ports::WakePorts;
use crate::run::WakeRun;
use requests::LoadedForceRequest;

/// Most deliveries that are forced in one run: a part of what a run can send. The rest is for held
/// ones.
const FORCED_MAX: usize = 2_000;

/// Releases what is forced, in one run.
pub(crate) struct ForcedRelease<'a, P: Ports> {
    run: WakeRun<'a, P>,
    /// Deliveries that were sent.
    pub(crate) sent: usize,
    walk: ForcedWalk,
    requests: Vec<LoadedForceRequest>,
}

impl<'a, P: Ports> ForcedRelease<'a, P> {
    pub(crate) fn new(run: WakeRun<'a, P>) -> Self {
        Self {
            run,
            sent: 0,
            walk: ForcedWalk::default(),
            requests: Vec::new(),
        }
    }

    /// Reads the requests. Where they cannot be read nothing is forced in this run. Where parked
    /// deliveries were moved to an earlier minute the walk begins again.
    pub(crate) async fn load_requests(&mut self, has_moved: bool) {
        self.requests = requests::load_due(self.run).await.unwrap_or_else(|error| {
            self.run.note_work();
            let error = &error as &dyn Error;
            tracing::error!(
                error,
                "requests to force deliveries not read, the next run tries again"
            );
            Vec::new()
        });
        if has_moved {
            self.requests
                .iter_mut()
                .for_each(|request| request.object.after = None);
        }
        self.walk = ForcedWalk::begin(
            self.requests
                .iter()
                .map(LoadedForceRequest::forced_folder)
                .collect(),
        );
    }

    /// Tells whether there may be more to send in this run.
    pub(crate) fn is_open(&self) -> bool {
        self.walk.is_open()
    }

    /// Releases deliveries of the forced subscriptions, up to this amount.
    pub(crate) async fn release_up_to(&mut self, max: ReleaseAmount) -> ReleasedCounts {
        let quota = ReleaseQuota {
            max,
            at_once: RELEASES_AT_ONCE,
        }
        .capped_at(FORCED_MAX.saturating_sub(self.sent));
        let mut released = ReleasedCounts::default();
        while self.is_open()
            && !quota.rest_after(&released).max.is_nothing()
            && self.run.may_begin()
        {
            let Some(first) = self.walk.keys.front().cloned() else {
                self.turn_page().await;
                continue;
            };
            let rest = quota.rest_after(&released);
            released.add_released(
                batches::release_within_quota(self.run, &mut self.walk.keys, rest).await,
            );
            if released.is_refused {
                self.walk.stop_at_refused(first);
            }
        }
        self.sent += released.sent;
        if self.sent >= FORCED_MAX {
            self.walk.stop();
        }
        released
    }

    /// Deletes the requests, or writes down how far the walk came.
    pub(crate) async fn store_progress(&mut self) {
        let ports = self.run.ports;
        let requests = std::mem::take(&mut self.requests);
        let ended = if self.walk.is_finished() {
            requests::delete_finished(ports, &requests).await
        } else {
            requests::save_progress(ports, requests, self.walk.reached_key()).await
        };
        if let Err(error) = ended {
            let error = &error as &dyn Error;
            tracing::error!(
                error,
                "progress of forced deliveries not stored, the next run may send copies"
            );
        }
    }

    async fn turn_page(&mut self) {
        let WakePorts { state, clock, .. } = self.run.ports;
        let Some(after) = self.walk.turn_page() else {
            return;
        };
        match state
            .list(layout::PARKED, after.as_deref(), LIST_PAGE_MAX)
            .await
        {
            Ok(page) => {
                let keys = page.objects.into_iter().map(|object| object.key).collect();
                self.walk.add_page(keys, page.next_after, clock.now());
            }
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::error!(
                    error,
                    "parked deliveries not listed, the next run forces them"
                );
                self.walk.stop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::stored::ForceRequest;

    use super::*;
    use crate::testing::{Kit, PAGE};

    const REQUEST: &str = "forcing/orders.billing";
    const HOUR: Duration = Duration::from_hours(1);

    /// Releases up to `max` deliveries in one run; answers how many were sent.
    async fn run(kit: &Kit, max: usize) -> usize {
        let mut forced = ForcedRelease::new(kit.run());
        forced.load_requests(false).await;
        let released = forced
            .release_up_to(ReleaseAmount {
                deliveries: max,
                ..ReleaseAmount::ALL
            })
            .await;
        forced.store_progress().await;
        released.sent
    }

    #[tokio::test]
    async fn a_request_remembers_how_far_it_came_and_goes_at_the_end() {
        let kit = Kit::new();
        kit.store.write(REQUEST, "{}");
        let count = u32::try_from(PAGE).unwrap() + 2;
        let keys: Vec<_> = (1..=count).map(|n| kit.park(n * HOUR, "x", 2)).collect();
        assert_eq!(run(&kit, 3).await, 3);
        let request = kit.store.get(REQUEST).await.unwrap().unwrap();
        assert_eq!(
            ForceRequest::parse(&request.bytes).after.as_ref(),
            keys.first()
        );
        assert_eq!(run(&kit, 100).await, 7);
        assert_eq!(
            kit.store.keys("forcing/").len() + kit.store.keys("parked/").len(),
            0
        );
    }

    #[tokio::test]
    async fn without_a_request_what_is_parked_is_not_listed() {
        let kit = Kit::new();
        kit.park(HOUR, "x", 1);
        assert_eq!(run(&kit, 100).await, 0);
        assert!(kit.store.take_listed(layout::PARKED).is_empty());
    }
}
