//! The requests of clients that are being answered, counted for the end of the server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of requests of clients whose answers are not sent to their end.
#[derive(Debug, Default)]
pub struct UnderWay(AtomicUsize);

/// One of them, until this is dropped.
#[derive(Debug)]
pub(super) struct CountedRequest(Arc<UnderWay>);

impl UnderWay {
    /// The number of requests.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts a request until the result is dropped.
    pub(super) fn count_request(self: &Arc<Self>) -> CountedRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        CountedRequest(Arc::clone(self))
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
