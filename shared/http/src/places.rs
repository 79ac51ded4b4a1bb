//! The places of connections: each that is open, or being opened, takes one file descriptor.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The places of all connections.
#[derive(Debug, Clone)]
pub(crate) struct SocketPlaces {
    max: usize,
    taken: Arc<AtomicUsize>,
}

/// The place of one connection. Dropping it frees the place.
#[derive(Debug)]
pub(crate) struct SocketPlace(Arc<AtomicUsize>);

impl SocketPlaces {
    pub(crate) fn new(max: usize) -> Self {
        let taken = Arc::default();
        Self { max, taken }
    }

    /// A place, if there is one.
    pub(crate) fn take(&self) -> Option<SocketPlace> {
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |taken| {
                (taken < self.max).then_some(taken + 1)
            })
            .ok()?;
        Some(SocketPlace(Arc::clone(&self.taken)))
    }
}

impl Drop for SocketPlace {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
