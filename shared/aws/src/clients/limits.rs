//! Bounds on each request: the time that it may take, and the number of its attempts.

use std::time::Duration;

use aws_smithy_types::retry::RetryConfig;
use aws_smithy_types::timeout::TimeoutConfig;

/// Longest time to connect, TLS included. Within a region it takes a few milliseconds; a function
/// with little CPU needs some hundred for its first handshake.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Longest time to the first byte of a response, the sending of the request included: 8 MiB at 1
/// MB/s. One value for both services, so that they share a connector and with it the parsed roots.
pub const READ_TIMEOUT: Duration = Duration::from_secs(9);

/// Longest time for one attempt.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest time for one operation with all its attempts: two that hang, or three that fail sooner.
/// It turns a service that hangs into an error. A function that runs several operations in a row,
/// or must return by some time, bounds them itself: deliver by the parts of its invocation
/// (`posthaste_deliver::SETTLING_TIME`, which is longer than this), deadletter by the time that it
/// keeps for writing, manage by a limit on each request.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(20);

/// Most attempts of one operation.
pub const ATTEMPTS_MAX: u32 = 3;

/// The first wait between attempts, before jitter; it doubles. The SDK's second is long beside a
/// function's work.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(100);

/// The longest wait between attempts.
pub const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// Timeouts of a request whose response may come after `wait`. A receive always has room for
/// the longest wait, because a connector with another read timeout has its own connections.
pub(crate) fn request_timeouts(wait: Duration) -> TimeoutConfig {
    TimeoutConfig::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(wait + READ_TIMEOUT)
        .operation_attempt_timeout(wait + ATTEMPT_TIMEOUT)
        .operation_timeout(wait + OPERATION_TIMEOUT)
        .build()
}

pub(super) fn retry_config() -> RetryConfig {
    RetryConfig::standard()
        .with_max_attempts(ATTEMPTS_MAX)
        .with_initial_backoff(BACKOFF_FIRST)
        .with_max_backoff(BACKOFF_MAX)
}
