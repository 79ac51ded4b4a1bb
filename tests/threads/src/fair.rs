//! Places on a link that subscriptions share.

#[path = "../../../functions/deliver/src/concurrency/fair.rs"]
#[allow(dead_code, reason = "the product needs more of it")]
mod code;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::future::{block_on, spawn, yield_now};

use crate::search::{Search, give_up};
use code::FairLimit;

pub(crate) const SEARCH: Search = Search::new("functions/deliver/src/concurrency/fair.rs", run);

const MAX: usize = 2;

/// Five requests of three subscriptions for two places, one of which gives up.
fn run() {
    let limit = Arc::new(FairLimit::new(MAX));
    let open = Arc::new(AtomicUsize::new(0));
    let requests: Vec<_> = [0, 0, 1, 2]
        .into_iter()
        .map(|sharer: u8| {
            let limit = Arc::clone(&limit);
            let open = Arc::clone(&open);
            spawn(async move {
                let slot = limit
                    .wait_for_slot(&sharer)
                    .await
                    .expect("it is never closed");
                assert!(open.fetch_add(1, Ordering::SeqCst) < MAX, "too many");
                yield_now().await;
                open.fetch_sub(1, Ordering::SeqCst);
                drop(slot);
            })
        })
        .collect();
    let leaving = Arc::clone(&limit);
    let gives_up = spawn(async move { give_up(leaving.wait_for_slot(&1)).await });
    block_on(async {
        for request in requests {
            request.await.expect("it ends");
        }
        gives_up.await.expect("it ends");
    });
    // Every place came back.
    let all: Vec<_> = (0..=MAX).map_while(|_| limit.try_enter(&0)).collect();
    assert_eq!(all.len(), MAX);
}
