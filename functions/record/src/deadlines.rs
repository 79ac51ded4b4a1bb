//! Calls that end by a deadline.

use std::time::Duration;

use posthaste_ports::Clock;
use posthaste_services::timeout_at;

use crate::error::LogFilesError;

/// The result of a call, or an error at `deadline`. After that it is not known whether the call had
/// an effect.
pub(crate) async fn in_time<T>(
    clock: &impl Clock,
    deadline: Duration,
    call: impl Future<Output = Result<T, LogFilesError>> + Send,
) -> Result<T, LogFilesError> {
    timeout_at(clock, deadline, call)
        .await
        .unwrap_or(Err(LogFilesError::OutOfTime))
}
