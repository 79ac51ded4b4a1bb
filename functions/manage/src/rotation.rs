//! Rotation of a subscription's signing secret: a new one is made and signs first, the old ones sign for a while.

use axum::extract::State;
use posthaste_core::api::{RotateSecret, RotatedSecret, SubscriptionSettings};
use posthaste_core::model::SubscriptionName;
use posthaste_ports::Ports;

use crate::conditions::{Conditions, subscription_etag};
use crate::document::{BadRequests, BadWrites, FullOfSecrets, Problems, UnknownSubscription};
use crate::error::ApiError;
use crate::extract::{OptionalJsonBody, Path};
use crate::manage::Managed;
use crate::paths::SubscriptionPath;
use crate::response::JsonResponse;

/// Rotate a subscription's signing secret
///
/// Makes a new secret, which is shown in this answer and never again. It signs first from now on; the present secrets
/// of the same kind go on signing until the overlap ends, and then vanish by themselves. Secrets of the other kind
/// stay. The body may be left out.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/rotate-secret", tag = "subscriptions",
    params(SubscriptionPath,
        ("If-Match" = Option<String>, Header, description = "Rotate only if this is its version")),
    request_body(content = Option<RotateSecret>, content_type = "application/json"),
    responses((status = 200, description = "Rotated: the new secret, in clear", body = RotatedSecret,
            headers(("ETag" = String, description = "The subscription's version, for If-Match"))),
        BadRequests, UnknownSubscription, BadWrites, FullOfSecrets, Problems))]
pub(crate) async fn rotate_secret<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
    conditions: Conditions,
    OptionalJsonBody(written): OptionalJsonBody<RotateSecret>,
) -> Result<JsonResponse<RotatedSecret>, ApiError> {
    let editor = manage.editor();
    let rotate = |_: &SubscriptionName, settings: &mut SubscriptionSettings| {
        editor.rotate_secret(&mut settings.signing, &written)
    };
    let (record, name, rotated) = manage.change_subscription(&path, &conditions, rotate).await?;
    tracing::info!(
        topic = %record.name, subscription = %name, kind = ?rotated.kind, "signing secret rotated"
    );
    Ok(JsonResponse::versioned(rotated, subscription_etag(&record, &record.settings.subscriptions[&name])))
}
