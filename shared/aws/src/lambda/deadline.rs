//! The deadline of a handler: Lambda gives a wall-clock time, handlers measure with a clock that
//! never jumps.

use std::time::Duration;

use lambda_runtime::Context;
use posthaste_core::model::Timestamp;
use posthaste_ports::Clock;

/// Time of an invocation that is kept for the work after the handler's deadline: [`LATE_MAX`] for a
/// handler that is late, and three seconds for metrics and the way to Lambda, which a function with
/// little CPU may need. An invocation that Lambda cuts off returns nothing, and each of its
/// messages comes again. A handler that sends requests keeps time of its own before its deadline,
/// so that this margin is no part of its work.
pub const ANSWER_MARGIN: Duration = Duration::from_secs(5);

/// Longest time after its deadline that a handler of messages may still return. After it, every
/// message is handed back.
pub const LATE_MAX: Duration = Duration::from_secs(2);

const _: () = assert!(LATE_MAX.as_secs() + 3 <= ANSWER_MARGIN.as_secs());

/// The handler's deadline as a time of `clock.monotonic()`. An invocation that has less than the
/// margin left gets a deadline that is now: it then starts nothing and hands everything back.
pub(super) fn from_context<C: Clock>(context: &Context, clock: &C) -> Duration {
    let left = Timestamp::from_millis(context.deadline).since(clock.now());
    clock.monotonic() + left.saturating_sub(ANSWER_MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_testkit::ManualClock;

    fn check(left_ms: i64, expected: Duration) {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        clock.advance(Duration::from_secs(7));
        let mut context = Context::default();
        context.deadline = clock.now().as_millis().saturating_add_signed(left_ms);
        assert_eq!(from_context(&context, &clock), clock.monotonic() + expected);
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
