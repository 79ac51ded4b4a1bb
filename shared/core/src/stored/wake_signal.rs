//! The signal that there is, or will be, work for wake: an object that says until when. A run that
//! began after that time has seen the work, so that wake may rest.
//!
//! Key `signals/wake.json`; without a version. Written by manage and deliver before they make work,
//! read by wake. An object that cannot be read counts as a signal. Fixture: `wake-signal.json`.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::{Timestamp, render_json};

/// The key of the signal.
pub const WAKE_SIGNAL: &str = "signals/wake.json";

/// The length of a signal: work that is made in this time needs no other. Through an outage a
/// worker makes work all the time, and each signal is a write; after a single one wake looks for a
/// few minutes longer.
const LENGTH: Duration = Duration::from_mins(10);

/// The end of a signal in which new work needs another one: the time in which announced work is
/// made, which is a request of manage or the settling of an invocation.
const ENDING: Duration = Duration::from_mins(1);

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeSignal {
    /// The time until which the announced work is made.
    pub until: Timestamp,
}

impl WakeSignal {
    /// A signal that is sent now.
    pub fn sent_at(now: Timestamp) -> Self {
        Self {
            until: now + LENGTH,
        }
    }

    /// Tells whether work that is made from now on is announced by this signal.
    pub fn announces_work_at(self, now: Timestamp) -> bool {
        now + ENDING <= self.until && self.until <= now + LENGTH
    }

    /// Reads an object.
    pub fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Writes the object.
    pub fn render(self) -> Bytes {
        render_json(&self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURE: &str = include_str!("fixtures/wake-signal.json");

    #[test]
    fn a_signal_is_written_as_it_always_was_and_read_back() {
        let signal = WakeSignal {
            until: Timestamp::from_millis(1_700_000_600_000),
        };
        assert_eq!(signal.render(), FIXTURE.trim_end());
        assert_eq!(WakeSignal::parse(FIXTURE.as_bytes()).unwrap(), signal);
        assert!(WakeSignal::parse(b"{}").is_err());
    }

    #[test]
    fn a_signal_announces_work_until_a_minute_before_its_end() {
        let at = |second: u64| Timestamp::from_millis(second * 1000);
        let signal = WakeSignal::sent_at(at(1000));
        let check =
            |now, expected| assert_eq!(signal.announces_work_at(at(now)), expected, "{now}");
        check(1000, true);
        check(1540, true);
        check(1541, false);
        // The clock was set back.
        check(999, false);
    }
}
