//! Dead letters: lists of them, the newest first, and each object as it is stored.

pub(crate) mod import;
mod owners;
mod search;
mod walk;

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::DeadLetterPage;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{DeadLetterReason, Timestamp, WrittenTime};
use posthaste_core::stored::{WrittenIn, layout};
use posthaste_ports::{Clock, ObjectStore, Ports};
use serde::Deserialize;

pub(crate) use self::owners::DeadLetterScope;
pub(crate) use self::search::{CLOCKS_DIFFER_MAX, is_lasting};
use self::search::{LetterSearch, SearchPosition};
pub(crate) use self::walk::{DatedObject, NewestFirstWalk, WalkStep};
use crate::answer::{ApiError, ApiResult, JsonResponse, unknown_topic};
use crate::document::{
    BadRequests, LargeObject, NoObject, Problems, UnknownSubscription, UnknownTopic,
};
use crate::extract::{Path, Query, SubscriptionPath, TopicPath};
use crate::manage::{Manage, ManageState};
use crate::paging::{PageRequest, bad_cursor};

/// The query of dead letters.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadLetterQuery {
    /// Only those written at this time or later. Of an object that was copied, the hour in its key
    /// counts.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<WrittenTime>,
    /// Only those written before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<WrittenTime>,
    /// Only events that were given up for this reason.
    #[param(inline)]
    reason: Option<DeadLetterReason>,
    /// Only events of this type, compared exactly.
    #[serde(rename = "type")]
    event_type: Option<String>,
    /// Whether to show resolved dead letters too. False when left out.
    #[serde(default, rename = "includeResolved")]
    include_resolved: bool,
    /// Most dead letters on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The beginning of the page: the `cursor` of the page before.
    cursor: Option<String>,
}

/// The path of a dead-letter object.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DeadLetterPath {
    /// The object's key, as a list shows it; its slashes may stand as they are. Any text where the
    /// query has the key.
    key: String,
}

/// The query of a dead-letter object.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadLetterKeyQuery {
    /// The object's key, in place of that of the path: for one that posthaste did not make, with
    /// characters that proxies may change in a path, such as `%`.
    key: Option<String>,
}

/// List all dead letters
///
/// One row for each event that was given up, the newest first, of every topic and subscription,
/// also of those that are gone. Rows are read for a few seconds; `cursor` says where to go on.
#[utoipa::path(get, path = "/dead-letters", tag = "dead letters", params(DeadLetterQuery),
    responses((status = 200, description = "One page of dead letters", body = DeadLetterPage),
        BadRequests, Problems))]
pub(crate) async fn list_all_dead_letters<P: Ports>(
    State(manage): ManageState<P>,
    Query(query): Query<DeadLetterQuery>,
) -> ApiResult<DeadLetterPage> {
    let is_first = query.cursor.is_none();
    let search = query.into_search(DeadLetterScope::All, manage.clock.now())?;
    let mut page = manage.search_letters(search).await?;
    if is_first {
        page.recoveries = manage.list_recoveries(layout::RECOVERY).await;
    }
    Ok(JsonResponse::new(page))
}

/// List a topic's dead letters
///
/// As all dead letters, of one topic. It may have been deleted. Where there is neither a topic nor
/// any dead letter of it, the answer is 404.
#[utoipa::path(get, path = "/topics/{topic}/dead-letters", tag = "dead letters",
    params(TopicPath, DeadLetterQuery),
    responses((status = 200, description = "One page of dead letters", body = DeadLetterPage),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn list_dead_letters_of_topic<P: Ports>(
    State(manage): ManageState<P>,
    Path(path): Path<TopicPath>,
    Query(query): Query<DeadLetterQuery>,
) -> ApiResult<DeadLetterPage> {
    let prefix = layout::dead_letters_of_topic(&path.topic);
    let is_first = query.cursor.is_none();
    let mut page = manage
        .search_letters(
            query.into_search(DeadLetterScope::Topic(prefix.clone()), manage.clock.now())?,
        )
        .await?;
    if is_empty(&page)
        && manage.has_no_letters(&prefix).await?
        && manage.load_record(&path.topic).await?.is_none()
    {
        return Err(unknown_topic(&path.topic).into());
    }
    if is_first {
        let marks = layout::recovery_marks_of(&path.topic);
        page.recoveries = manage.list_recoveries(&marks).await;
    }
    Ok(JsonResponse::new(page))
}

/// List a subscription's dead letters
///
/// As all dead letters, of one subscription. It, or its topic, may have been deleted: its dead
/// letters stay. Where there is neither a subscription nor any dead letter of it, the answer
/// is 404.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions/{name}/dead-letters", tag = "dead letters",
    params(SubscriptionPath, DeadLetterQuery),
    responses((status = 200, description = "One page of dead letters", body = DeadLetterPage),
        BadRequests, UnknownSubscription, Problems))]
pub(crate) async fn list_dead_letters<P: Ports>(
    State(manage): ManageState<P>,
    Path(path): Path<SubscriptionPath>,
    Query(query): Query<DeadLetterQuery>,
) -> ApiResult<DeadLetterPage> {
    let prefix = layout::dead_letters_of(&path.topic, &path.name);
    let is_first = query.cursor.is_none();
    let search = query.into_search(
        DeadLetterScope::Subscription(prefix.clone()),
        manage.clock.now(),
    )?;
    manage.note_dead_letter_read(&path.topic, &path.name).await;
    let mut page = manage.search_letters(search).await?;
    if is_empty(&page) && manage.has_no_letters(&prefix).await? {
        path.find_in(&manage.existing_record(&path.topic).await?)?;
    }
    if is_first {
        let mark = layout::recovery_mark_key(&path.topic, &path.name);
        let mut recoveries = manage.list_recoveries(&mark).await;
        // Other names may begin with this one.
        recoveries.retain(|it| it.subscription.folded() == path.name.folded());
        page.recoveries = recoveries;
    }
    Ok(JsonResponse::new(page))
}

fn is_empty(page: &DeadLetterPage) -> bool {
    page.dead_letters.is_empty() && page.failures.is_empty() && page.cursor.is_none()
}

impl DeadLetterQuery {
    fn into_search(self, scope: DeadLetterScope, now: Timestamp) -> Result<LetterSearch, ApiError> {
        let Self {
            from,
            to,
            reason,
            event_type,
            include_resolved,
            limit,
            cursor,
        } = self;
        let PageRequest { items, after } = PageRequest::parse(limit, cursor.as_deref())?;
        let after = after
            .map(|after| SearchPosition::parse(&after).ok_or_else(bad_cursor))
            .transpose()?;
        let (from, to) = WrittenTime::resolve_period(from, to, now);
        let written = WrittenIn { from, to };
        Ok(LetterSearch {
            scope,
            written,
            reason,
            event_type,
            include_resolved,
            items,
            after,
        })
    }
}

/// Show a dead-letter object
///
/// A JSON array of events, each with the members that say what became of it. A message that could
/// not be read is answered byte for byte.
#[utoipa::path(get, path = "/dead-letters/{*key}", tag = "dead letters",
    params(DeadLetterPath, DeadLetterKeyQuery),
    responses((status = 200, description = "The object", content(
            (Vec<serde_json::Value> = "application/json"), (serde_json::Value = "application/octet-stream"))),
        NoObject, LargeObject, BadRequests, Problems))]
pub(crate) async fn show_dead_letter<P: Ports>(
    State(manage): ManageState<P>,
    Path(DeadLetterPath { key }): Path<DeadLetterPath>,
    Query(query): Query<DeadLetterKeyQuery>,
) -> Result<Response, ApiError> {
    let key = query.key.unwrap_or(key);
    let object = manage
        .letter_object(&key)
        .await?
        .ok_or_else(|| ApiProblem::new(ProblemKind::NotFound).detail("there is no such object"))?;
    if let Some((topic, subscription)) = layout::dead_letter_owner(&key) {
        manage.note_dead_letter_read(&topic, &subscription).await;
    }
    let is_json = !key.starts_with(layout::MALFORMED);
    let content_type = if is_json {
        "application/json"
    } else {
        "application/octet-stream"
    };
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(content_type)),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // Producers wrote the content, so a browser must not show it as a page.
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, object.bytes).into_response())
}

impl<P: Ports> Manage<P> {
    /// Whether no object lies under a prefix. An empty list would hide a name that is written
    /// wrong.
    async fn has_no_letters(&self, prefix: &str) -> Result<bool, ApiError> {
        Ok(self
            .dead_letters
            .list(prefix, None, 1)
            .await?
            .objects
            .is_empty())
    }
}
