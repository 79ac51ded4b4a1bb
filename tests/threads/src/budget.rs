//! The room for stored payloads.

#[path = "../../../functions/deliver/src/payloads/budget.rs"]
mod code;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::future::{block_on, spawn, yield_now};

use crate::search::{Search, give_up};
use code::PayloadBudget;

pub(crate) const SEARCH: Search = Search::new("functions/deliver/src/payloads/budget.rs", run);

const BYTES: u32 = 10;

/// Requests of several sizes, which read one after the other; one gives up.
fn run() {
    let budget = Arc::new(PayloadBudget::new(BYTES, 1));
    let held = Arc::new(AtomicUsize::new(0));
    let reading = Arc::new(AtomicUsize::new(0));
    let requests: Vec<_> = [4, 6, 99]
        .into_iter()
        .map(|bytes: usize| {
            let budget = Arc::clone(&budget);
            let held = Arc::clone(&held);
            let reading = Arc::clone(&reading);
            spawn(async move {
                let share = budget.hold_bytes(bytes).await.expect("a share");
                let shares = share.num_permits();
                let before = held.fetch_add(shares, Ordering::SeqCst);
                assert!(before + shares <= BYTES as usize, "too many bytes");
                let read = budget.read_in_turn(async {
                    assert_eq!(reading.fetch_add(1, Ordering::SeqCst), 0, "two read");
                    yield_now().await;
                    reading.fetch_sub(1, Ordering::SeqCst);
                });
                read.await;
                held.fetch_sub(shares, Ordering::SeqCst);
                drop(share);
            })
        })
        .collect();
    let leaving = Arc::clone(&budget);
    let gives_up = spawn(async move { give_up(leaving.hold_bytes(7)).await });
    block_on(async {
        for request in requests {
            request.await.expect("it ends");
        }
        gives_up.await.expect("it ends");
        let all = budget.hold_bytes(BYTES as usize).await.expect("all of it");
        assert_eq!(all.num_permits(), BYTES as usize);
    });
}
