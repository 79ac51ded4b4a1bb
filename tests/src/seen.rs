//! A record of things seen by any thread, for tests that wait for more.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::patience::PATIENCE;

/// A growing list. Clones share it.
#[derive(Debug)]
pub struct Seen<T>(Arc<Shared<T>>);

#[derive(Debug)]
struct Shared<T> {
    items: Mutex<Vec<T>>,
    grew: Condvar,
}

impl<T> Default for Seen<T> {
    fn default() -> Self {
        Self(Arc::new(Shared {
            items: Mutex::default(),
            grew: Condvar::new(),
        }))
    }
}

impl<T> Clone for Seen<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> Seen<T> {
    /// Adds an item.
    pub fn push(&self, item: T) {
        self.lock().push(item);
        self.0.grew.notify_all();
    }

    /// Everything until now.
    pub fn all(&self) -> Vec<T> {
        self.lock().clone()
    }

    /// Everything after the first `count` items.
    pub fn since(&self, count: usize) -> Vec<T> {
        self.lock().iter().skip(count).cloned().collect()
    }

    /// Waits until `probe` finds what it looks for among the items; panics when that does not come.
    pub fn wait_for<R>(&self, what: &str, probe: impl FnMut(&[T]) -> Option<R>) -> R {
        self.wait_within(PATIENCE, what, probe)
    }

    /// The same for what may take longer, or must not take so long.
    pub fn wait_within<R>(
        &self,
        patience: Duration,
        what: &str,
        mut probe: impl FnMut(&[T]) -> Option<R>,
    ) -> R {
        let mut found = None;
        let looking = |items: &mut Vec<T>| {
            found = probe(items);
            found.is_none()
        };
        let (items, _) = self
            .0
            .grew
            .wait_timeout_while(self.lock(), patience, looking)
            .unwrap_or_else(PoisonError::into_inner);
        // Freed before the panic, so that other threads do not die of it.
        drop(items);
        found.unwrap_or_else(|| panic!("gave up waiting for {what}"))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.items.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
