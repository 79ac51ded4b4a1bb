//! Dead letters: lists of them by subscription, time and reason, and each of them as it is stored.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{DeadLetterObject, DeadLetterPage, IsoTimestamp};
use posthaste_core::attempt::DeadLetterReason;
use posthaste_core::stored::{WrittenIn, layout};
use posthaste_ports::{ErrorKind, ObjectMeta, ObjectStore, PortError, Ports};
use serde::Deserialize;

use crate::answer::{Answer, ApiError, JsonResponse};
use crate::document::{BadRequests, LargeObject, NoObject, Problems, UnknownSubscription};
use crate::extract::{Path, Query, SubscriptionPath};
use crate::manage::{Manage, Managed};
use crate::paging::{Page, cursor};

/// Keys of a listing, at most: S3 gives no more.
const LIST_KEYS: usize = 1000;

/// Most listings of a request. A page whose filter passes over more objects has a cursor.
const LISTINGS_MAX: usize = 10;

/// Most objects that a request reads to look for a reason. A page that needs more has a cursor.
const READS_MAX: usize = 50;

/// The query of dead letters.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeadLetterQuery {
    /// Only objects written at this time or later. Of an object that was copied, the hour in its key counts.
    #[param(value_type = Option<String>, format = DateTime)]
    from: Option<IsoTimestamp>,
    /// Only objects written before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    to: Option<IsoTimestamp>,
    /// Only objects with an event that was given up for this reason. Objects are read to tell, so pages are
    /// shorter.
    #[param(inline)]
    reason: Option<DeadLetterReason>,
    /// Most objects on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// The beginning of the page: the `cursor` of the page before.
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
/// The subscription, or its topic, may have been deleted: its dead letters stay. Where there is neither a
/// subscription nor any dead letter of it, the answer is 404.
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
/// A JSON array of events, each with the members that say what became of it. A message that could not be read
/// is answered byte for byte.
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

/// A search for dead letters of one subscription: a walk through the bucket with a limit of listings and
/// reads.
struct Search {
    /// The prefix of the subscription's objects.
    prefix: String,
    /// The time in which they were written.
    written: WrittenIn,
    /// The reason for which an event was given up.
    reason: Option<DeadLetterReason>,
    /// Most objects on the page.
    items: usize,
    /// The key after which the page begins.
    after: Option<String>,
}

impl Search {
    /// Finds one page.
    async fn run(mut self, bucket: &impl ObjectStore) -> Result<DeadLetterPage, PortError> {
        let mut found = Vec::new();
        let mut reads_left = READS_MAX;
        for _ in 0..LISTINGS_MAX {
            let listing = bucket.list(&self.prefix, self.after.as_deref(), LIST_KEYS).await?;
            for object in listing.objects {
                // A full page ends at the next object, so that no cursor leads to an empty page.
                if found.len() == self.items || reads_left == 0 {
                    return Ok(page(found, self.after.as_deref()));
                }
                let key = object.key.clone();
                if self.is_in_time(&object) && self.has_reason(bucket, &key, &mut reads_left).await? {
                    let ObjectMeta { key, size, modified_at } = object;
                    found.push(DeadLetterObject { key, size, modified_at: IsoTimestamp(modified_at) });
                }
                self.after = Some(key);
            }
            if listing.next_after.is_none() {
                return Ok(page(found, None));
            }
            self.after = listing.next_after;
        }
        Ok(page(found, self.after.as_deref()))
    }

    fn is_in_time(&self, object: &ObjectMeta) -> bool {
        let WrittenIn { from, to } = self.written;
        (from.is_none() && to.is_none()) || self.written.takes(&self.prefix, &object.key, object.modified_at)
    }

    /// Whether an object holds an event with the reason of the search. Without a reason no object is read.
    async fn has_reason(
        &self,
        bucket: &impl ObjectStore,
        key: &str,
        reads_left: &mut usize,
    ) -> Result<bool, PortError> {
        let Some(reason) = self.reason else { return Ok(true) };
        *reads_left -= 1;
        let object = bucket.get(key).await?;
        Ok(object.is_some_and(|object| holds_reason(&object.bytes, reason)))
    }
}

/// Whether an object is a list with an event that was given up for `reason`; no if it cannot be parsed.
fn holds_reason(bytes: &[u8], reason: DeadLetterReason) -> bool {
    /// An event of either schema. CloudEvents allow names in lower case only.
    #[derive(Deserialize)]
    struct Event {
        #[serde(rename = "deadLetterReason")]
        event_grid: Option<serde_json::Value>,
        #[serde(rename = "deadletterreason")]
        cloud_events: Option<serde_json::Value>,
    }
    let Ok(expected) = serde_json::to_value(reason) else { return false };
    let events: Vec<Event> = serde_json::from_slice(bytes).unwrap_or_default();
    events.iter().any(|e| [&e.event_grid, &e.cloud_events].contains(&&Some(expected.clone())))
}

fn page(dead_letters: Vec<DeadLetterObject>, after: Option<&str>) -> DeadLetterPage {
    DeadLetterPage { dead_letters, cursor: after.map(cursor) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_found_under_either_name() {
        let check = |object: &str, expected| {
            let found = holds_reason(object.as_bytes(), DeadLetterReason::EndpointGone);
            assert_eq!(found, expected, "{object}");
        };
        check(r#"[{"deadLetterReason":"EndpointGone"}]"#, true);
        check(r#"[{"id":1},{"deadletterreason":"EndpointGone","data":{}}]"#, true);
        check(r#"[{"deadletterreason":"TimeToLiveExceeded"}]"#, false);
        check(r#"[{"data":{"deadLetterReason":"EndpointGone"}}]"#, false);
        check("[]", false);
        check("not JSON", false);
        check(r#"{"deadLetterReason":"EndpointGone"}"#, false);
    }
}
