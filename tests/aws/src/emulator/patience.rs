//! The one place where this crate meets real time: another process is watched, again and again,
//! until it is ready.

use std::time::{Duration, Instant};

/// Longest start of an emulator: far longer than it takes, so that a busy machine fails no test.
const PATIENCE: Duration = Duration::from_mins(2);

const POLL: Duration = Duration::from_millis(50);

/// Calls `probe` again and again until it answers; `None` after the limit.
#[expect(
    clippy::disallowed_methods,
    reason = "another process is watched, and its time is real"
)]
pub(super) fn until<T>(mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(seen) = probe() {
            return Some(seen);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(POLL);
    }
}
