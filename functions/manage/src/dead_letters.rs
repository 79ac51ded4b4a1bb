//! Dead letters: lists of them by subscription, time and reason, and each of them as it is stored.

mod search;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{DeadLetterPage, IsoTimestamp};
use posthaste_core::attempt::DeadLetterReason;
use posthaste_core::stored::{WrittenIn, layout};
use posthaste_ports::{ErrorKind, ObjectStore, PortError, Ports};
use serde::Deserialize;

use self::search::Search;
use crate::answer::{Answer, ApiError, JsonResponse};
use crate::document::{BadRequests, LargeObject, NoObject, Problems, UnknownSubscription};
use crate::extract::{Path, Query, SubscriptionPath};
use crate::manage::{Manage, Managed};
use crate::paging::Page;

/// The query of dead letters.
#[derive(Debug, Clone, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadLetterQuery {
    /// Only objects written at this time or later. Of an object that was copied, the hour in its key counts.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<IsoTimestamp>,
    /// Only objects written before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<IsoTimestamp>,
    /// Only objects with an event that was given up for this reason. Objects are read to tell, so pages are shorter.
    #[param(inline)]
    reason: Option<DeadLetterReason>,
    /// Most objects on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

/// The path of a dead-letter object.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DeadLetterPath {
    /// The object's key, as a list shows it; its slashes may stand as they are.
    key: String,
}

/// List a subscription's dead letters
///
/// The subscription, or its topic, may have been deleted: its dead letters stay. Where there is neither a subscription nor
/// any dead letter of it, the answer is 404.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions/{name}/dead-letters", tag = "dead letters",
    params(SubscriptionPath, DeadLetterQuery),
    responses((status = 200, description = "One page of objects", body = DeadLetterPage),
        BadRequests, UnknownSubscription, Problems))]
pub(crate) async fn list_dead_letters<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<SubscriptionPath>,
    Query(query): Query<DeadLetterQuery>,
) -> Answer<DeadLetterPage> {
    let Page { items, after } = Page::parse(query.limit, query.cursor.as_deref())?;
    manage.note_dead_letter_read(&path.topic, &path.name).await;
    let prefix = layout::dead_letters_of(&path.topic, &path.name);
    let DeadLetterQuery { from, to, reason, .. } = query;
    let written = WrittenIn { from: from.map(|from| from.0), to: to.map(|to| to.0) };
    let is_first = after.is_none();
    let page = Search { prefix, written, reason, items, after }.run(&manage.dead_letters).await?;
    if is_first && page.dead_letters.is_empty() && page.cursor.is_none() {
        manage.require_subscription_or_letters(&path).await?;
    }
    Ok(JsonResponse::new(page))
}

/// Show a dead-letter object
///
/// A JSON array of events, each with the members that say what became of it. A message that could not be read is
/// answered byte for byte.
#[utoipa::path(get, path = "/dead-letters/{*key}", tag = "dead letters", params(DeadLetterPath),
    responses((status = 200, description = "The object", content(
            (Vec<serde_json::Value> = "application/json"), (serde_json::Value = "application/octet-stream"))),
        NoObject, LargeObject, BadRequests, Problems))]
pub(crate) async fn show_dead_letter<P: Ports>(
    State(manage): Managed<P>,
    Path(path): Path<DeadLetterPath>,
) -> Result<Response, ApiError> {
    let object = match manage.dead_letters.get(&path.key).await {
        Ok(object) => object,
        // A store refuses only keys that no object can have.
        Err(PortError { kind: ErrorKind::Invalid, .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let object =
        object.ok_or_else(|| Problem::new(ProblemKind::NotFound).detail("there is no such object"))?;
    if let Some((topic, subscription)) = layout::dead_letter_owner(&path.key) {
        manage.note_dead_letter_read(&topic, &subscription).await;
    }
    let is_json = !path.key.starts_with(layout::MALFORMED);
    let content_type = if is_json { "application/json" } else { "application/octet-stream" };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Producers wrote the content, so a browser must not show it as a page.
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, object.bytes).into_response())
}

impl<P: Ports> Manage<P> {
    /// Requires that the subscription or a dead letter of it exists, because an empty list would hide a
    /// misspelled name.
    async fn require_subscription_or_letters(&self, path: &SubscriptionPath) -> Result<(), ApiError> {
        let prefix = layout::dead_letters_of(&path.topic, &path.name);
        if !self.dead_letters.list(&prefix, None, 1).await?.objects.is_empty() {
            return Ok(());
        }
        path.find(&self.existing(&path.topic).await?)?;
        Ok(())
    }
}
