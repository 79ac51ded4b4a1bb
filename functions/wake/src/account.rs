//! The deliveries that one run released, counted for parked and held ones together: they are released side by
//! side, and under pressure share what may be sent.

use parking_lot::Mutex;
use posthaste_core::release::speed::{Amount, RunAccount, Speed, Waiting};

/// The account of a run.
#[derive(Debug, Default)]
pub(crate) struct SharedAccount(Mutex<RunAccount>);

impl SharedAccount {
    /// So much was released of this place.
    pub(crate) fn add(&self, place: Waiting, released: Amount) {
        self.0.lock().add(place, released);
    }

    /// How much may still be released of this place.
    pub(crate) fn left(&self, place: Waiting, speed: Speed) -> Amount {
        self.0.lock().left(place, speed)
    }
}
