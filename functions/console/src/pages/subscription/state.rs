//! The state of a subscription.

use maud::{Markup, html};
use posthaste_core::api::{StatusState, StatusView};
use posthaste_core::model::KeepingMissed;

use crate::display::{foreign_text, time_tag};

/// The state in a word.
pub(crate) fn status_badge(state: StatusState) -> Markup {
    let (class, word) = match state {
        StatusState::Active => ("good", "active"),
        StatusState::Pending => ("warn", "pending"),
        StatusState::Paused => ("warn", "paused"),
        StatusState::Failed => ("bad", "failed"),
        StatusState::Disabled => ("bad", "disabled"),
    };
    html! { span class={ "badge " (class) } { (word) } }
}

/// The fate of what a disabled subscription misses.
fn missed_text(keeping: KeepingMissed) -> Markup {
    html! {
        @match keeping {
            KeepingMissed::Never => "are skipped and counted",
            KeepingMissed::Until(end) => {
                "become dead letters until " (time_tag(end)) ", and are skipped and counted after it"
            }
            KeepingMissed::Always => "become dead letters",
        }
    }
}

/// The state with its reason, and for how long the new events of a disabled one become dead
/// letters.
pub(super) fn describe_state(status: &StatusView, keeping: Option<KeepingMissed>) -> Markup {
    html! {
        (status_badge(status.state)) " since " (time_tag(status.since.0))
        @if let Some(reason) = &status.reason { br; (foreign_text(reason)) }
        @if let Some(keeping) = keeping { br; span.hint { "New events " (missed_text(keeping)) "." } }
        @if let Some(consent) = &status.consent {
            br; span.hint { "The endpoint consented at " (time_tag(consent.at.0)) "." }
        }
        @if let Some(handshake) = &status.handshake {
            br; span.hint { "The endpoint may consent until " (time_tag(handshake.expires_at.0)) "." }
        }
    }
}
