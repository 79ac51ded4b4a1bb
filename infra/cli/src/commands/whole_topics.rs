//! Parts shared by all commands that read topics whole.

use crate::error::CommandFailure;

/// Topics on a page of whole ones: larger ones make it shorter.
pub(super) const PAGE_TOPICS: &str = "200";

/// Error of what needs all topics, where one cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the topic {0} cannot be read, so nothing was done")]
pub(super) struct UnreadableTopicError(pub(super) String);

impl CommandFailure for UnreadableTopicError {
    fn hint(&self) -> Option<String> {
        Some("`posthaste topics` says what is wrong with it".to_owned())
    }
}
