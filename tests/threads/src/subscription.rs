//! Places of one subscription, of which there are more while requests wait.

#[path = "../../../functions/deliver/src/concurrency/subscription.rs"]
#[allow(dead_code, reason = "the product needs more of it")]
mod code;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::future::{block_on, spawn, yield_now};

use crate::search::{Search, give_up};
use code::{ConcurrencyBound, SubscriptionLimit};

pub(crate) const SEARCH: Search =
    Search::new("functions/deliver/src/concurrency/subscription.rs", run);

const MAX: usize = 2;

/// Four requests for one place, and for a second one while two wait; one more gives up.
fn run() {
    let limit = Arc::new(SubscriptionLimit::new(ConcurrencyBound::new(1, 2, MAX)));
    let open = Arc::new(AtomicUsize::new(0));
    let requests: Vec<_> = (0..4)
        .map(|_| {
            let limit = Arc::clone(&limit);
            let open = Arc::clone(&open);
            spawn(async move {
                let slot = limit.wait_for_slot().await.expect("it is never closed");
                assert!(open.fetch_add(1, Ordering::SeqCst) < MAX, "too many");
                yield_now().await;
                open.fetch_sub(1, Ordering::SeqCst);
                drop(slot);
            })
        })
        .collect();
    let leaving = Arc::clone(&limit);
    let gives_up = spawn(async move { give_up(leaving.wait_for_slot()).await });
    block_on(async {
        for request in requests {
            request.await.expect("it ends");
        }
        gives_up.await.expect("it ends");
    });
    // The next one that is given back takes the added place with it.
    drop(limit.try_enter().expect("a free place"));
    let all: Vec<_> = (0..=MAX).map_while(|_| limit.try_enter()).collect();
    assert_eq!(all.len(), 1);
}
