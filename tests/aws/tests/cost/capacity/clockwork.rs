//! Work on the manual clock, without a runtime: the clock moves when nothing else can, so a run is
//! exact.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use posthaste_testkit::ManualClock;

/// Whether something can go on.
#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work`. Whenever nothing in it can go on, the clock moves to the next sleeper.
pub(super) fn run<T>(clock: &ManualClock, work: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut work = pin!(work);
    loop {
        if let Poll::Ready(output) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        while !woken.0.swap(false, Ordering::Relaxed) {
            clock.advance_to_next().expect("something sleeps");
        }
    }
}
