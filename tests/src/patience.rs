//! The one place where tests meet real time. They watch another process, so they can only look
//! again and again until they see what must come; nothing is ever waited for by its duration.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest time for anything that must happen. Far longer than it takes, so that a busy machine
/// fails no test.
pub const PATIENCE: Duration = Duration::from_mins(3);

const POLL: Duration = Duration::from_millis(20);

/// Looks again and again until `probe` sees it, and panics when that takes longer than
/// [`PATIENCE`].
#[expect(
    clippy::disallowed_methods,
    reason = "another process is watched, and its time is real"
)]
pub fn wait_until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = probe() {
            return seen;
        }
        assert!(Instant::now() < deadline, "gave up waiting for {what}");
        std::thread::sleep(POLL);
    }
}

/// Rests between two requests of a load, or before an answer of a slow endpoint. Nothing is ever
/// waited for with it.
#[expect(
    clippy::disallowed_methods,
    reason = "a load on another process has a rate in real time"
)]
pub fn rest(length: Duration) {
    std::thread::sleep(length);
}

/// The time since the epoch, to compare what another process did, or to tell it a time that is
/// near.
#[expect(
    clippy::disallowed_methods,
    reason = "another process is watched, and its time is real"
)]
pub fn now() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("the clock is past 1970")
}
