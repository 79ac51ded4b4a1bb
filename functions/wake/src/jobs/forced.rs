//! Parked deliveries of subscriptions that an operator forced, released before their minute. manage leaves a
//! request for each, and wake walks through all that is parked, in passes beside those of what is held. Held
//! deliveries go by their own rules, which force has opened.

mod requests;

use std::error::Error;

use posthaste_core::release::{Amount, ForcedWalk, Quota, Released};
use posthaste_core::stored::layout;
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ObjectStore, Ports};

use crate::batches::Batches;
use crate::budget::Budget;
use crate::objects::RELEASES_AT_ONCE;
use crate::ports::WakePorts;
use requests::{Request, Requests};

/// Most deliveries that are forced in one run: a part of what a run can send, the rest is for what is held.
const FORCED_MAX: usize = 2_000;

/// Releases what is forced.
pub(crate) struct Forced<'a, P: Ports> {
    batches: &'a Batches<'a, P>,
    requests: Requests<'a, P>,
    store: &'a P::Store,
    clock: &'a P::Clock,
}

/// One run.
#[derive(Debug, Default)]
pub(crate) struct ForcedRun {
    /// Deliveries that were sent.
    pub(crate) sent: usize,
    walk: ForcedWalk,
    requests: Vec<Request>,
}

impl<'a, P: Ports> Forced<'a, P> {
    pub(crate) fn new(ports: &'a WakePorts<P>, batches: &'a Batches<'a, P>) -> Self {
        let WakePorts { state: store, registry, clock, .. } = ports;
        Self { batches, requests: Requests { store, registry, clock }, store, clock }
    }

    /// Reads the requests. Where they cannot be read nothing is forced in this run. Where parked deliveries
    /// were moved to an earlier minute the walk begins again.
    pub(crate) async fn begin(&self, has_moved: bool) -> ForcedRun {
        let mut requests = self.requests.all().await.unwrap_or_else(|error| {
            let error = &error as &dyn Error;
            tracing::error!(error, "requests not read, the next run forces deliveries");
            Vec::new()
        });
        if has_moved {
            for request in &mut requests {
                request.object.after = None;
            }
        }
        let walk = ForcedWalk::begin(requests.iter().map(Request::folder).collect());
        ForcedRun { sent: 0, walk, requests }
    }

    /// Releases up to so many deliveries of the forced subscriptions.
    pub(crate) async fn release(&self, run: &mut ForcedRun, max: Amount, budget: Budget<'_>) -> Released {
        let quota = Quota { max, at_once: RELEASES_AT_ONCE }.at_most(FORCED_MAX.saturating_sub(run.sent));
        let mut released = Released::default();
        while run.is_open() && !quota.after(&released).max.is_nothing() && budget.may_begin(self.clock) {
            let Some(first) = run.walk.keys.front().cloned() else {
                self.turn_page(&mut run.walk).await;
                continue;
            };
            let rest = quota.after(&released);
            released.add(self.batches.release(&mut run.walk.keys, rest, budget).await);
            if released.is_refused {
                run.walk.refuse(first);
            }
        }
        run.sent += released.sent;
        if run.sent >= FORCED_MAX {
            run.walk.stop();
        }
        released
    }

    /// Deletes the requests, or writes down how far the walk came.
    pub(crate) async fn end(&self, run: ForcedRun) {
        let ended = if run.walk.is_through() {
            self.requests.end(&run.requests).await
        } else {
            self.requests.save(run.requests, run.walk.reached()).await
        };
        if let Err(error) = ended {
            let error = &error as &dyn Error;
            tracing::error!(error, "requests not written, the next run forces once more");
        }
    }

    async fn turn_page(&self, walk: &mut ForcedWalk) {
        let Some(after) = walk.turn_page() else { return };
        match self.store.list(layout::PARKED, after.as_deref(), LIST_PAGE_MAX).await {
            Ok(page) => {
                let keys = page.objects.into_iter().map(|object| object.key).collect();
                walk.add_page(keys, page.next_after, self.clock.now());
            }
            Err(error) => {
                let error = &error as &dyn Error;
                tracing::error!(error, "parked deliveries not listed, the next run forces them");
                walk.stop();
            }
        }
    }
}

impl ForcedRun {
    /// Tells whether there may be more to send in this run.
    pub(crate) fn is_open(&self) -> bool {
        self.walk.is_open()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use posthaste_core::stored::ForceRequest;

    use super::*;
    use crate::objects::Objects;
    use crate::testing::{Kit, PAGE};
    use crate::waits::WaitNotes;

    const REQUEST: &str = "forcing/orders.billing";
    const HOUR: Duration = Duration::from_hours(1);

    /// Releases up to so many in one run; answers how many were sent.
    async fn run(kit: &Kit, max: usize) -> usize {
        let waits = WaitNotes::new(&kit.ports, &kit.activity);
        let objects = Objects::new(&kit.ports, &waits);
        let batches = Batches::new(&objects, &kit.clock);
        let forced = Forced::new(&kit.ports, &batches);
        let mut run = forced.begin(false).await;
        let max = Amount { deliveries: max, ..Amount::ALL };
        let released = forced.release(&mut run, max, kit.budget()).await;
        forced.end(run).await;
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
        assert_eq!(ForceRequest::parse(&request.bytes).after.as_ref(), keys.first());
        assert_eq!(run(&kit, 100).await, 7);
        assert_eq!(kit.store.keys("forcing/").len() + kit.store.keys("parked/").len(), 0);
    }

    #[tokio::test]
    async fn without_a_request_what_is_parked_is_not_listed() {
        let kit = Kit::new();
        kit.park(HOUR, "x", 1);
        assert_eq!(run(&kit, 100).await, 0);
        assert!(kit.store.take_listed(layout::PARKED).is_empty());
    }
}
