//! The period that the times of a command name.

use std::sync::OnceLock;

use posthaste_core::model::{Timestamp, WrittenTime};
use posthaste_ports::Clock;
use posthaste_system::SystemClock;

/// The time at which the command began to ask. All its requests are for the same period.
static ASKED_AT: OnceLock<Timestamp> = OnceLock::new();

/// The beginning and the end, as requests have them.
pub(super) fn query_period(
    from: Option<WrittenTime>,
    to: Option<WrittenTime>,
) -> [Option<String>; 2] {
    let now = *ASKED_AT.get_or_init(|| SystemClock.now());
    let (from, to) = WrittenTime::resolve_period(from, to, now);
    [from, to].map(|time| time.map(|time| time.to_string()))
}
