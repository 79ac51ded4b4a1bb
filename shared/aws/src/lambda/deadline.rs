//! Until when a handler may work: Lambda says it as a wall-clock time, handlers measure with a clock that never jumps.

use std::time::Duration;

use lambda_runtime::Context;
use posthaste_core::time::Timestamp;
use posthaste_ports::Clock;

/// What is kept of an invocation's time for what follows the handler's last attempt: settling its messages, writing
/// metrics, and answering. An invocation that Lambda cuts off answers nothing, and every message of it comes again.
pub const SETTLING_MARGIN: Duration = Duration::from_secs(5);

/// The end of the handler's work as a time of `clock.monotonic()`. An invocation that has less than the margin left
/// gets a deadline that is now: it then starts nothing and hands everything back.
pub(super) fn of<C: Clock>(context: &Context, clock: &C) -> Duration {
    let left = Timestamp::from_millis(context.deadline).since(clock.now());
    clock.monotonic() + left.saturating_sub(SETTLING_MARGIN)
}
