//! The time that a list may take, where a page of the console waits for it.

use std::time::Duration;

/// The time after which a list of attempts, or a search for events, answers what it has found, among
/// the extensions of a request. Without it each has the time of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListTime(pub Duration);
