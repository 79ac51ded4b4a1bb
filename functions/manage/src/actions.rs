//! Operators' work on a subscription: actions on its state, force, and the rotation of its signing
//! secret.

use axum::extract::State;
use posthaste_core::api::handshake::status_after_action;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{
    AuditAction, ForcedView, LinkView, NewHandshake, RotateSecret, RotatedSecret, SecretText,
    StatusState, SubscriptionAction, SubscriptionSettings,
};
use posthaste_core::model::{SubscriptionName, Timestamp};
use posthaste_ports::{Clock, Ports};
use serde::Deserialize;

use crate::answer::{ApiResult, JsonResponse};
use crate::audit::RequestCaller;
use crate::conditions::{WriteConditions, subscription_etag};
use crate::document::{
    BadRequests, BadWrites, FullOfSecrets, Problems, UnknownSubscription, WrongStates,
};
use crate::extract::{OptionalJsonBody, Path, SubscriptionPath};
use crate::health_changes::HealthChanges;
use crate::manage::ManageState;

/// The outlook on events that wait.
const WHAT_NOW: &str = "what is held or parked for it begins to go out within a minute, the oldest first and \
    little by little at first; retries that are already in the queue go out within 15 minutes";

/// The last part of an action's path.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ActionPath {
    /// The action.
    #[param(inline)]
    action: SubscriptionAction,
}

/// Validate, pause, resume, enable or disable a subscription
///
/// `pause` lets the events of an active subscription wait, and `resume` delivers them. `disable`
/// lets new events pass by and gives up those that wait; `enable` delivers again, also where the
/// endpoint did not consent. `validate` asks the endpoint again; `enable` and `resume` ask it too,
/// where it must consent and has not. They also end a hold, as `force` does. The answer shows the
/// state.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/{action}", tag = "subscriptions",
    params(SubscriptionPath, ActionPath),
    responses((status = 200, description = "Done; the answer shows the state", body = SubscriptionSettings,
        headers(("ETag" = String, description = "The version, for If-Match"))),
        BadRequests, UnknownSubscription, WrongStates, Problems))]
pub(crate) async fn act_on_subscription<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(ActionPath { action }): Path<ActionPath>,
    Path(path): Path<SubscriptionPath>,
) -> ApiResult<SubscriptionSettings> {
    let editor = manage.editor();
    let until = manage.work_ends();
    let act = |name: &SubscriptionName, settings: &mut SubscriptionSettings| {
        editor.apply_action(action, name, settings)
    };
    let entry = manage.new_audit_entry(caller, action.into());
    let (record, name, handshake) = manage
        .change_subscription(entry, &path, &WriteConditions::default(), act)
        .await?;
    let written_at = manage.clock.monotonic();
    let word = action.as_str();
    tracing::info!(topic = %record.name, subscription = %name, action = word, "subscription acted on");
    match action {
        // The operator wants deliveries now: a hold would delay them.
        SubscriptionAction::Resume | SubscriptionAction::Enable => {
            let health = HealthChanges::to_force(&record, [&name]).unwrap_or_default();
            manage.apply_after_write(&record.name, &health, until).await;
        }
        SubscriptionAction::Disable
        | SubscriptionAction::Validate
        | SubscriptionAction::Pause
        | SubscriptionAction::Force => {}
    }
    let ends = manage.handshake_ends(until);
    let record = manage
        .shake_hands(record, handshake.into_iter().collect(), ends, written_at)
        .await?;
    let settings = record
        .settings
        .subscriptions
        .get(&name)
        .ok_or_else(|| path.unknown_problem())?;
    let shown = settings.to_view(&name, manage.clock.now());
    Ok(JsonResponse::with_etag(
        shown,
        subscription_etag(&record, settings),
    ))
}

/// Force a subscription
///
/// Ends the holds of an active subscription: its own, its link's (so that other subscriptions there
/// are tried again too) and those of its fallback. Events that are held or parked for it begin to
/// go out within a minute. If its endpoint still fails, the holds begin again. Resume a paused
/// subscription instead, and enable a disabled one: both end holds as well. A subscription that is
/// forced again while its events are still going out keeps the `id` of the first request.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/force", tag = "subscriptions",
    params(SubscriptionPath),
    responses((status = 200, description = "Done; what was in the way is shown", body = ForcedView),
        BadRequests, UnknownSubscription, WrongStates, Problems))]
pub(crate) async fn force<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
) -> ApiResult<ForcedView> {
    let record = manage.existing_record(&path.topic).await?;
    let (name, settings) = path.find_in(&record)?;
    require_active(settings, manage.clock.now())?;
    let changes = HealthChanges::to_force(&record, [name])?;
    let entry = manage.new_audit_entry(caller, AuditAction::Force);
    let entry = entry.of_subscription(&path.topic, &path.name);
    let force = async {
        // First, so that wake ends the holds if this process cannot.
        let id = manage.request_force(&record, name).await?;
        Ok((id, manage.apply_health_changes(&changes).await?))
    };
    let (id, forced) = manage
        .run_audited(entry, force, |entry, (_, forced)| {
            entry.with_detail(&format!("{} holds ended", forced.len()))
        })
        .await?;
    tracing::info!(
        topic = %record.name, subscription = %name, action = SubscriptionAction::Force.as_str(),
        holds_ended = forced.len(), "subscription acted on"
    );
    Ok(JsonResponse::new(ForcedView {
        id,
        topic: record.name.clone(),
        subscription: name.clone(),
        detail: forced_detail(&forced),
        forced,
    }))
}

/// Rotate a subscription's signing secret
///
/// Makes a new secret, which is shown in this answer and never again. It signs first from now on;
/// the present secrets of the same kind go on signing until the overlap ends, and are then removed.
/// At most three secrets sign beside each other, four after the first rotation of three. If one
/// more would sign, the rotation is refused; with `drop`, the oldest that an earlier rotation
/// replaced ends at once (`ended`). Secrets of the other kind stay. The body may be left out.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/rotate-secret", tag = "subscriptions",
    params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Rotate only if this is its version")),
    request_body(content = Option<RotateSecret>, content_type = "application/json"),
    responses((status = 200, description = "Rotated: the new secret, in clear", body = RotatedSecret,
            headers(("ETag" = String, description = "The subscription's version, for If-Match"))),
        BadRequests, UnknownSubscription, BadWrites, FullOfSecrets, Problems))]
pub(crate) async fn rotate_secret<P: Ports>(
    State(manage): ManageState<P>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    conditions: WriteConditions,
    OptionalJsonBody(written): OptionalJsonBody<RotateSecret>,
) -> ApiResult<RotatedSecret> {
    let editor = manage.editor();
    let rotate = |_: &SubscriptionName, settings: &mut SubscriptionSettings| {
        editor.rotate_secret(&mut settings.signing, &written)
    };
    let entry = manage.new_audit_entry(caller, AuditAction::RotateSecret);
    let (record, name, rotated) = manage
        .change_subscription(entry, &path, &conditions, rotate)
        .await?;
    tracing::info!(
        topic = %record.name, subscription = %name, signature = %rotated.kind, "signing secret rotated"
    );
    Ok(JsonResponse::with_etag(
        rotated,
        subscription_etag(&record, &record.settings.subscriptions[&name]),
    ))
}

fn require_active(settings: &SubscriptionSettings, now: Timestamp) -> Result<(), ApiProblem> {
    // Force begins no handshake, so its code is never used.
    let code = &SecretText::new("");
    status_after_action(
        SubscriptionAction::Force,
        settings,
        NewHandshake { now, code },
    )
    .map(drop)
    .map_err(|wrong| {
        let state = settings
            .status
            .as_ref()
            .map(|status| status.effective_at(now).state);
        ApiProblem::new(ProblemKind::WrongState)
            .detail(format!("{wrong}{}", advice_for_state(state)))
    })
}

/// The advice for a subscription in this state.
fn advice_for_state(state: Option<StatusState>) -> &'static str {
    match state {
        Some(StatusState::Paused) => "; resume it, which forces as well",
        Some(StatusState::Disabled | StatusState::Failed) => "; enable it, which forces as well",
        Some(StatusState::Pending) => "; its endpoint has yet to consent",
        Some(StatusState::Active) | None => "",
    }
}

fn forced_detail(forced: &[LinkView]) -> String {
    match forced {
        [] => format!("no hold was in its way; {WHAT_NOW}"),
        [_] => format!("the hold has ended; {WHAT_NOW}"),
        more => format!("{} holds have ended; {WHAT_NOW}", more.len()),
    }
}
