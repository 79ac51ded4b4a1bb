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

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_local::ManualClock;

    fn check(left_ms: i64, expected: Duration) {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        clock.advance(Duration::from_secs(7));
        let mut context = Context::default();
        context.deadline = clock.now().as_millis().saturating_add_signed(left_ms);
        assert_eq!(of(&context, &clock), clock.monotonic() + expected);
    }

    #[test]
    fn the_handler_stops_a_margin_before_lambda_cuts_it_off() {
        check(120_000, Duration::from_secs(115));
    }

    #[test]
    fn with_less_left_than_the_margin_nothing_is_begun() {
        check(4_999, Duration::ZERO);
        check(-1_000, Duration::ZERO);
    }
}
