//! Operators' work on a subscription: actions on its state, force, and the rotation of its signing
//! secret.

use axum::extract::State;
use posthaste_core::api::{
    ForcedView, RotateSecret, RotatedSecret, SubscriptionAction, SubscriptionSettings,
};
use posthaste_ports::Ports;
use serde::Deserialize;

use crate::answer::ApiResult;
use crate::audit::RequestCaller;
use crate::conditions::WriteConditions;
use crate::document::{
    BadRequests, BadWrites, FullOfSecrets, Problems, UnknownSubscription, WrongStates,
};
use crate::extract::{OptionalJsonBody, Path, SubscriptionPath};
use crate::subscription_actions::SubscriptionActions;
use crate::subscription_editor::SubscriptionEditor;

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
    State(actions): State<SubscriptionActions<P>>,
    RequestCaller(caller): RequestCaller,
    Path(ActionPath { action }): Path<ActionPath>,
    Path(path): Path<SubscriptionPath>,
) -> ApiResult<SubscriptionSettings> {
    actions.act(caller, &path, action).await
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
    State(actions): State<SubscriptionActions<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
) -> ApiResult<ForcedView> {
    actions.force(caller, &path).await
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
    State(editor): State<SubscriptionEditor<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    conditions: WriteConditions,
    OptionalJsonBody(written): OptionalJsonBody<RotateSecret>,
) -> ApiResult<RotatedSecret> {
    editor
        .rotate_secret(caller, &path, &conditions, &written)
        .await
}
