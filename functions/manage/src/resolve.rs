//! Dead letters that an operator is done with: resolved, so that lists and replays leave them out,
//! or deleted.

pub(crate) mod cancel;
mod claim;
mod ender;
mod ending_marks;
pub(crate) mod left;
pub(crate) mod list;
mod resolver;
mod work_cursor;
mod worked;

use axum::extract::State;
use posthaste_core::api::{ResolveRequest, ResolveResponse};
use posthaste_core::stored::LetterEnd;
use posthaste_ports::Ports;

use self::resolver::LetterResolver;
use crate::answer::ApiResult;
use crate::audit::RequestCaller;
use crate::document::{BadRequests, Problems, Unchanged, UnknownSubscription};
use crate::extract::{OptionalJsonBody, Path, SubscriptionPath};

/// Resolve a subscription's dead letters
///
/// A resolved dead letter needs nothing more: lists and replays leave it out unless asked. The
/// objects stay as they are. Letters that a replay delivers again are resolved without this
/// request. One request works for a few seconds; its `cursor` says where to go on. What nobody goes
/// on with is gone on with within two minutes: by the server itself, on AWS beside the answers to
/// later requests. The same is not done twice at once: a request that comes while another one works
/// on the same selection is answered 202 with its `id`. By its id the work is shown and cancelled under
/// `/dead-letters/work`. Objects that cannot be read or written are `failed`, and stay. With `dryRun`
/// it only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/resolve",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are resolved", body = ResolveResponse),
        (status = 202, description = "Another request resolves the same letters now", body = ResolveResponse),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn resolve_dead_letters<P: Ports>(
    State(resolver): State<LetterResolver<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> ApiResult<ResolveResponse> {
    let end = LetterEnd::Resolve;
    resolver.end_letters(caller, &path, request, end).await
}

/// Delete a subscription's dead letters
///
/// Resolved letters are selected too. An object is deleted when all its letters are selected or
/// resolved. Otherwise it stays, and the selected letters in it are resolved. One request works for
/// a few seconds; its `cursor` says where to go on. What nobody goes on with, what fails, and what is
/// asked for twice is as with `resolve`. With `dryRun` it only counts.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/dead-letters/delete",
    tag = "dead letters", params(SubscriptionPath), request_body(content = Option<ResolveRequest>),
    responses((status = 200, description = "The letters that are deleted or resolved", body = ResolveResponse),
        (status = 202, description = "Another request deletes the same letters now", body = ResolveResponse),
        BadRequests, UnknownSubscription, Unchanged, Problems))]
pub(crate) async fn delete_dead_letters<P: Ports>(
    State(resolver): State<LetterResolver<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    OptionalJsonBody(request): OptionalJsonBody<ResolveRequest>,
) -> ApiResult<ResolveResponse> {
    let end = LetterEnd::Delete;
    resolver.end_letters(caller, &path, request, end).await
}
