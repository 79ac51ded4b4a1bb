//! Containment of panics: a panic costs the part of a batch in which it happens, and not the
//! neighbours. A message that makes one of our functions panic is handed back, while the work on
//! the others of its batch continues.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;

/// A part panicked. The panic hook has logged where and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("panicked")]
pub struct CaughtPanic;

/// Runs one part of a batch. The values that it shares with other parts must stay usable when it
/// ends in the middle: plain data behind a mutex that has no poison.
pub fn catch_panic<T>(
    part: impl Future<Output = T>,
) -> impl Future<Output = Result<T, CaughtPanic>> {
    // Not an `async fn`, which would hold the part twice.
    AssertUnwindSafe(part)
        .catch_unwind()
        .map(|ended| ended.map_err(|_| CaughtPanic))
}

/// Runs a part that does not wait, in the same way.
pub fn catch_panic_now<T>(part: impl FnOnce() -> T) -> Result<T, CaughtPanic> {
    catch_unwind(AssertUnwindSafe(part)).map_err(|_| CaughtPanic)
}
