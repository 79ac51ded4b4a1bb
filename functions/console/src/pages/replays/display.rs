//! Values of replays, as lists and the page of one replay show them.

use maud::{Markup, html};
use posthaste_core::api::{ReplayOutcomes, ReplayReason, ReplayState, ReplayView};

use crate::display::number;
use crate::pages::known_topic::subscription_link;

/// The events per second of a replay that names no rate.
const RATE_DEFAULT: u32 = 100;

/// The subscription of a replay.
pub(crate) fn target_link(replay: &ReplayView) -> Markup {
    let topic = replay.topic.as_str();
    let name = replay.subscription.as_str();
    subscription_link(
        topic,
        name,
        replay.reason == Some(ReplayReason::SubscriptionDeleted),
    )
}

pub(super) fn rate_text(replay: &ReplayView) -> String {
    number(
        replay
            .request
            .rate_per_second
            .unwrap_or(RATE_DEFAULT)
            .into(),
    )
}

/// The state of a replay, and its reason.
pub(crate) fn state_badge(replay: &ReplayView) -> Markup {
    let (class, word) = match replay.state {
        ReplayState::Running if !has_begun(replay) => ("", "starts within a minute"),
        ReplayState::Running => ("good", "running"),
        ReplayState::Waiting => ("warn", "waiting"),
        // It is not known yet what became of the events.
        ReplayState::Done if replay.queued > 0 && is_open(replay) => ("", "all queued"),
        ReplayState::Done => ("good", "done"),
        ReplayState::Failed => ("bad", "failed"),
        ReplayState::Cancelled => ("bad", "cancelled"),
        ReplayState::Unknown => ("", "unknown"),
    };
    html! {
        span class={ "badge " (class) } { (word) }
        @if let Some(text) = outcome_text(replay) { " " span.hint { (text) } }
        @if replay.recovery.is_some() { " " span.hint { "by itself, after an outage" } }
        @if let Some(reason) = replay.reason { " " span.hint { (reason_text(reason)) } }
    }
}

/// The outcomes of the events of a replay that has ended, where some did not get through.
fn outcome_text(replay: &ReplayView) -> Option<String> {
    let (delivered, failed_again) = match &replay.outcomes {
        Some(outcomes) => (outcomes.delivered, outcomes.failed_again),
        None if replay.queued == 0 => (0, 0),
        None => return None,
    };
    let failed = failed_again + replay.failed;
    let at_least = at_least(replay.outcomes.as_ref());
    (has_ended(replay) && failed > 0).then(|| {
        let [delivered, failed] = [delivered, failed].map(number);
        format!("{at_least}{delivered} delivered, {at_least}{failed} failed")
    })
}

/// The words before numbers of events that have ended, where there may be more.
pub(super) fn at_least(outcomes: Option<&ReplayOutcomes>) -> &'static str {
    match outcomes {
        Some(outcomes) if outcomes.is_partial => "at least ",
        Some(_) | None => "",
    }
}

/// Whether a replay has ended.
pub(super) const fn has_ended(replay: &ReplayView) -> bool {
    matches!(
        replay.state,
        ReplayState::Done | ReplayState::Failed | ReplayState::Cancelled
    )
}

/// Whether a list does not say what became of the events of a replay that has ended.
pub(super) const fn is_uncounted(replay: &ReplayView) -> bool {
    has_ended(replay) && replay.queued > 0 && replay.outcomes.is_none()
}

/// Whether it is not known what became of each queued event.
fn is_open(replay: &ReplayView) -> bool {
    let outcomes = replay.outcomes.as_ref();
    outcomes.is_none_or(|outcomes| outcomes.waiting > 0)
}

/// Whether a worker has taken the replay up, which writes its record again.
fn has_begun(replay: &ReplayView) -> bool {
    replay.objects > 0 || replay.updated_at > replay.created_at
}

fn reason_text(reason: ReplayReason) -> &'static str {
    match reason {
        ReplayReason::Pressure => "because of back pressure",
        ReplayReason::SubscriptionNotActive => "because the subscription is not active",
        ReplayReason::Unavailable => "because a store or the queue does not answer",
        ReplayReason::Requested => "by an operator",
        ReplayReason::SubscriptionDeleted => "because the subscription was deleted",
        ReplayReason::Outage => "until the endpoint has been well for some minutes",
        ReplayReason::RecoveryOff => "because the recovery of the subscription was turned off",
    }
}
