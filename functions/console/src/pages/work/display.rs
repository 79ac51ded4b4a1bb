//! Work that resolves or deletes dead letters, in words.

use maud::{Markup, html};
use posthaste_core::api::{LetterWorkAction, LetterWorkState, LetterWorkView};

use crate::display::number;

/// The notices of actions.
pub(super) const DONE: [(&str, &str); 2] = [
    (
        "cancelled",
        "It is cancelled. What was done by then stays done.",
    ),
    (
        "ended",
        "It had ended before it could be cancelled. It stays as it is.",
    ),
];

/// The action on the letters, as a title.
pub(super) const fn action_title(action: LetterWorkAction) -> &'static str {
    match action {
        LetterWorkAction::Resolve => "Resolve",
        LetterWorkAction::Delete => "Delete",
    }
}

/// The state of the work, with its reason.
pub(super) fn state_badge(state: LetterWorkState) -> Markup {
    let (class, word, reason) = match state {
        LetterWorkState::Running => ("good", "running", None),
        LetterWorkState::Waiting => ("warn", "waiting", Some("goes on within two minutes")),
        LetterWorkState::Done => ("good", "done", None),
        LetterWorkState::Cancelled => ("bad", "cancelled", Some("by an operator")),
        LetterWorkState::Unknown => ("", "unknown", None),
    };
    html! {
        span class={ "badge " (class) } { (word) }
        @if let Some(reason) = reason { " " span.hint { (reason) } }
    }
}

/// Whether there is more to do.
pub(super) const fn is_open(view: &LetterWorkView) -> bool {
    matches!(
        view.state,
        LetterWorkState::Running | LetterWorkState::Waiting
    )
}

/// The number of dead letters that will be done in all, as far as those before tell.
pub(super) fn total_text(view: &LetterWorkView) -> Option<String> {
    let left = view.objects_left.filter(|_| is_open(view))?;
    if view.objects_read == 0 {
        return None;
    }
    let ahead = u128::from(view.events) * u128::from(left) / u128::from(view.objects_read);
    let total = view
        .events
        .saturating_add(u64::try_from(ahead).unwrap_or(u64::MAX));
    let word = if view.has_more_left {
        "more than"
    } else {
        "about"
    };
    Some(format!("{word} {}", number(total)))
}
