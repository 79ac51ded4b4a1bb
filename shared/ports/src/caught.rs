//! Panics that an adapter expects of a library on damaged bytes, and turns into errors. They are
//! not faults of posthaste, and the log does not call them so.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    /// The number of nested scopes of this thread that catch their panics.
    static CATCHING: Cell<u32> = const { Cell::new(0) };
}

/// A scope that catches panics, until it is dropped.
struct CatchingScope;

impl CatchingScope {
    fn enter() -> Self {
        CATCHING.set(CATCHING.get() + 1);
        Self
    }
}

impl Drop for CatchingScope {
    fn drop(&mut self) {
        CATCHING.set(CATCHING.get() - 1);
    }
}

/// Runs work on bytes that may be damaged, and returns what it panicked with. State that the work
/// shares with others must stay usable.
pub fn catch_expected_panic<T>(work: impl FnOnce() -> T) -> Result<T, Box<dyn Any + Send>> {
    let _catching = CatchingScope::enter();
    catch_unwind(AssertUnwindSafe(work))
}

/// Whether a panic of this thread is caught by [`catch_expected_panic`]. For the panic hook.
pub fn is_caught() -> bool {
    CATCHING.get() > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_is_caught_inside_alone() {
        assert!(!is_caught());
        let caught = catch_expected_panic(|| {
            assert!(catch_expected_panic(is_caught).is_ok_and(|is_caught| is_caught));
            assert!(is_caught());
            std::panic::resume_unwind(Box::new("damaged"));
        });
        assert_eq!(caught.unwrap_err().downcast_ref::<&str>(), Some(&"damaged"));
        assert!(!is_caught());
    }
}
