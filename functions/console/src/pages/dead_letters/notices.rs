//! Texts that the pages of dead letters show after an action.

/// The notices of actions.
pub(super) const DONE: [(&str, &str); 2] = [
    ("resolved", "The dead letters are resolved."),
    (
        "deleted",
        "The dead letters are deleted, or resolved where others are stored with them.",
    ),
];
