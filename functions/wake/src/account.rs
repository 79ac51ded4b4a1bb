//! What one run has released, kept for both places at once: they are released side by side, and under pressure share what
//! may go.

use std::sync::{Arc, Mutex, PoisonError};

use posthaste_core::release::speed::{Amount, RunAccount, Speed, Waiting};

/// The account of a run; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedAccount(Arc<Mutex<RunAccount>>);

impl SharedAccount {
    /// So much was released of this place.
    pub(crate) fn add(&self, place: Waiting, released: Amount) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).add(place, released);
    }

    /// What may still be released of this place.
    pub(crate) fn left(&self, place: Waiting, speed: Speed) -> Amount {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).left(place, speed)
    }
}
