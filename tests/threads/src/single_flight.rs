//! Requests to a store that callers share, which the caches of topics stand on.

#[path = "../../../shared/services/src/single_flight.rs"]
#[allow(unreachable_pub, reason = "the product hands it on")]
mod code;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use shuttle::future::{block_on, spawn, yield_now};

use crate::search::{Search, give_up};
use code::SingleFlight;

pub(crate) const SEARCH: Search = Search::new("shared/services/src/single_flight.rs", run);

/// Requests to the store: those that were begun, those under way, and the last that has ended.
#[derive(Default)]
struct Store {
    begun: AtomicUsize,
    under_way: AtomicUsize,
    ended: AtomicUsize,
}

/// A request that is counted as under way until it has ended, or is dropped.
struct Request(Arc<Store>);

impl Store {
    async fn ask(self: Arc<Self>) -> usize {
        let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let others = self.under_way.fetch_add(1, Ordering::SeqCst);
        assert_eq!(others, 0, "two ask the same at once");
        let request = Request(Arc::clone(&self));
        yield_now().await;
        drop(request);
        self.ended.fetch_max(number, Ordering::SeqCst);
        number
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Three callers ask for the same, and one more that gives up, perhaps while its request is the
/// one that the others wait for.
fn run() {
    let flights = SingleFlight::<usize>::default();
    let store = Arc::new(Store::default());
    let callers: Vec<_> = (0..3)
        .map(|_| {
            let flights = flights.clone();
            let store = Arc::clone(&store);
            spawn(async move {
                let ended = store.ended.load(Ordering::SeqCst);
                let seen = flights.run("key", || Arc::clone(&store).ask()).await;
                // What ended last may still be handed on, and nothing older.
                assert!(seen >= ended, "{seen} was over when {ended} ended");
            })
        })
        .collect();
    let leaving = flights.clone();
    let asked = Arc::clone(&store);
    let gives_up = spawn(async move { give_up(leaving.run("key", || asked.ask())).await });
    block_on(async {
        for caller in callers {
            caller.await.expect("it ends");
        }
        gives_up.await.expect("it ends");
    });
    // No request is kept that nobody waits for.
    let nothing = SingleFlight::<usize>::default();
    assert_eq!(format!("{flights:?}"), format!("{nothing:?}"));
}
