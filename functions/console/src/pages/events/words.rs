//! The words for results.

use posthaste_core::delivery_log::LogResult;

/// The word of a result. A record is never changed, so that of a failure does not say that the
/// event still waits.
pub(super) const fn result_word(result: LogResult) -> &'static str {
    match result {
        LogResult::Retry => "retried later",
        LogResult::Delivered
        | LogResult::Pending
        | LogResult::Unmatched
        | LogResult::Held
        | LogResult::DeadLettered
        | LogResult::Dropped
        | LogResult::Unknown => result.as_str(),
    }
}
