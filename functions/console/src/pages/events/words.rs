//! The words for results.

use posthaste_core::delivery_log::LogResult;

use crate::words;

/// The word of a result.
pub(super) const fn result_word(result: LogResult) -> &'static str {
    words::result_word(result).word
}
