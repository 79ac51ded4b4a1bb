//! The wait of a letter that its bucket refused.

use std::time::Duration;

use posthaste_core::attempt::settle::dead_letter_delay;
use posthaste_core::model::StorageTrouble;

/// The wait after the first refusal; it doubles up to what the queue can delay (15 minutes).
const WAIT_FIRST: Duration = Duration::from_secs(10);

/// Doublings after which the wait is longer than the queue can delay.
const DOUBLINGS_MAX: u32 = 8;

/// The wait of a letter that was refused.
pub(crate) fn wait_after_refusal(trouble: StorageTrouble) -> Duration {
    let doublings = trouble.failures.saturating_sub(1).min(DOUBLINGS_MAX);
    dead_letter_delay(WAIT_FIRST * 2_u32.pow(doublings))
}
