//! Times of an invocation that are reserved for its last steps, and calls that end by a deadline.

use std::time::Duration;

use posthaste_ports::{Clock, ErrorKind, PortError};
use posthaste_services::timeout_at;

/// Time that is reserved for leaving messages that ask for what could not be done, such as notices:
/// sending those may hang, and must not cost a second object.
pub(crate) const LEAVING_TIME: Duration = Duration::from_secs(10);

/// Time that is reserved for writing: the longest that one call to S3 takes, its retries included
/// (`OPERATION_TIMEOUT` of posthaste-aws).
pub(crate) const WRITING_TIME: Duration = Duration::from_secs(20);

/// Least time for reading with which work on an object begins. Eight payloads at a time, an object
/// is read in about a second.
pub(crate) const READING_TIME_MIN: Duration = Duration::from_secs(5);

/// The result of a call, or a timeout at the deadline. After a timeout it is not known whether the
/// call had an effect.
pub(crate) async fn in_time<T>(
    clock: &impl Clock,
    deadline: Duration,
    call: impl Future<Output = Result<T, PortError>> + Send,
) -> Result<T, PortError> {
    match timeout_at(clock, deadline, call).await {
        Some(result) => result,
        None => Err(PortError::new("get an answer in time", ErrorKind::TimedOut)),
    }
}
