//! The search through orders of threads.

use std::future::poll_fn;
use std::task::Poll;

use shuttle::future::yield_now;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, Runner};

/// Changes of priority in one run of the scheduler that has priorities: faults need few.
const CHANGES: usize = 3;

/// A part of the product, and a run of it that checks what must hold in every order.
#[derive(Clone, Copy)]
pub struct Search {
    /// The file that is searched.
    pub of: &'static str,
    run: fn(),
}

impl Search {
    pub(crate) const fn new(of: &'static str, run: fn()) -> Self {
        Self { of, run }
    }

    /// Tries so many orders of two kinds each: by chance, and by priorities that change a few
    /// times. The same seed tries the same orders.
    ///
    /// # Panics
    /// If something does not hold in one of them, or all threads wait for each other.
    pub fn search(&self, seed: u64, orders: usize) {
        self.search_by(RandomScheduler::new_from_seed(seed, orders));
        self.search_by(PctScheduler::new_from_seed(seed, CHANGES, orders));
    }

    fn search_by(&self, scheduler: impl Scheduler + 'static) {
        Runner::new(scheduler, Config::new()).run(self.run);
    }
}

/// Begins what is to be waited for, lets others go on, and gives up.
pub(crate) async fn give_up(wait: impl Future) {
    let mut wait = Box::pin(wait);
    let given = poll_fn(|context| Poll::Ready(wait.as_mut().poll(context))).await;
    yield_now().await;
    drop((given, wait));
}
