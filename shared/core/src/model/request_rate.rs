//! The rate of requests that an endpoint gets. `attempt` gives it out, over all workers.

use std::num::NonZeroU32;

/// A rate: whole requests a minute, at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RequestRate(NonZeroU32);

impl RequestRate {
    /// One request a minute.
    pub const SLOWEST: Self = Self(NonZeroU32::MIN);

    /// The rate of this number of requests a minute; `None` for zero.
    pub fn per_minute(requests: u32) -> Option<Self> {
        NonZeroU32::new(requests).map(Self)
    }

    /// The rate of this number of requests a second, in whole requests a minute, rounded down;
    /// `None` for less than one a minute, for more than can be counted, and for a value that is
    /// not a number.
    pub fn per_second(requests: f64) -> Option<Self> {
        let per_minute = (requests * 60.0).floor();
        if !(1.0..=f64::from(u32::MAX)).contains(&per_minute) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is a whole number in range"
        )]
        Self::per_minute(per_minute as u32)
    }

    /// Requests a minute.
    pub fn requests_per_minute(self) -> u32 {
        self.0.get()
    }
}
