//! A subscription's state, for people.

use posthaste_core::api::StatusView;
use posthaste_core::model::visible::visible_line;

/// A state and its reason, for people.
pub(super) fn state_text(status: &StatusView) -> String {
    match &status.reason {
        Some(reason) => format!("{:?}: {}", status.state, visible_line(reason)),
        None => format!("{:?}", status.state),
    }
}
