//! Force, at an operator's request: ends the holds of a subscription, of its link and of its fallback, and has wake
//! release the events that are held or parked for it.

use axum::extract::State;
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{ForcedView, LinkView, SecretText, StatusState, SubscriptionSettings};
use posthaste_core::attempt::handshake::act;
use posthaste_core::attempt::{Action, Begin};
use posthaste_core::model::Timestamp;
use posthaste_ports::{Clock, Ports};

use crate::document::{BadRequests, Problems, UnknownSubscription, WrongStates};
use crate::error::{ApiError, unknown_subscription};
use crate::extract::Path;
use crate::health_changes::HealthChanges;
use crate::manage::Managed;
use crate::paths::SubscriptionPath;
use crate::response::JsonResponse;

/// The outlook on events that wait.
const WHAT_NOW: &str = "what is held or parked for it begins to go out within a minute, the oldest first and little by \
    little at first; retries that are already in the queue go out within 15 minutes";

/// Force a subscription
///
/// Ends the holds of an active subscription: its own, its link's (so that other subscriptions there are tried again too)
/// and those of its fallback. What is held or parked for it begins to go out within a minute. If its endpoint still fails,
/// they begin anew. One that is paused is to be resumed instead, and a disabled one enabled: both force as well.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/force", tag = "subscriptions",
    params(SubscriptionPath),
    responses((status = 200, description = "Done; what was in the way is shown", body = ForcedView),
        BadRequests, UnknownSubscription, WrongStates, Problems))]
pub(crate) async fn force<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
) -> Result<JsonResponse<ForcedView>, ApiError> {
    let record = manage.existing(&path.topic).await?;
    let (name, settings) =
        record.settings.subscription(&path.name).ok_or_else(|| unknown_subscription(&path))?;
    require_active(settings, manage.clock.now())?;
    let forced = manage.apply(&HealthChanges::forced(&record, [name])?).await?;
    tracing::info!(
        topic = %record.name, subscription = %name, action = "force", ended = forced.len(),
        "subscription acted on"
    );
    Ok(JsonResponse::new(ForcedView {
        topic: record.name.clone(),
        subscription: name.clone(),
        detail: detail(&forced),
        forced,
    }))
}

fn require_active(settings: &SubscriptionSettings, now: Timestamp) -> Result<(), Problem> {
    // Force begins no handshake, so its code is never used.
    let code = &SecretText::new("");
    act(Action::Force, settings, Begin { now, code }).map(drop).map_err(|wrong| {
        let state = settings.status.as_ref().map(|status| status.at(now).state);
        Problem::new(ProblemKind::WrongState).detail(format!("{wrong}{}", instead(state)))
    })
}

/// The advice for a subscription in this state.
fn instead(state: Option<StatusState>) -> &'static str {
    match state {
        Some(StatusState::Paused) => "; resume it, which forces as well",
        Some(StatusState::Disabled | StatusState::Failed) => "; enable it, which forces as well",
        Some(StatusState::Pending) => "; its endpoint has yet to consent",
        Some(StatusState::Active) | None => "",
    }
}

fn detail(forced: &[LinkView]) -> String {
    match forced {
        [] => format!("no hold was in its way; {WHAT_NOW}"),
        [_] => format!("the hold has ended; {WHAT_NOW}"),
        more => format!("{} holds have ended; {WHAT_NOW}", more.len()),
    }
}
