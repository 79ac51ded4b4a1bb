//! Dead letters: found by subscription, time and reason, and shown as they lie in the bucket.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::problem::{Problem, ProblemKind};
use posthaste_core::api::{DeadLetterObject, DeadLetterPage, IsoTimestamp};
use posthaste_core::attempt::decide::DeadLetterReason;
use posthaste_core::stored::dead_letter::WrittenIn;
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ErrorKind, ObjectMeta, PortError};
use serde::Deserialize;

use crate::answer::{Failure, Shown, store_problem};
use crate::document::{BadRequests, LargeObject, NoObject, Problems, UnknownSubscription};
use crate::edit::spelling;
use crate::input::{Asked, At, SubscriptionPath, page_items};
use crate::subscriptions::unknown_subscription;
use crate::{Manage, Managed, Store, Webhooks, cursor};

/// Keys asked of the store at once; what S3 gives at most.
const LIST_KEYS: usize = 1000;

/// Listings of the store per request. A page whose filter passes over more goes on with its cursor.
const LISTINGS_MAX: usize = 10;

/// Objects read per request to look for a reason. A page that needs more goes on with its cursor.
const READS_MAX: usize = 50;

/// Which dead letters.
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
    responses((status = 200, description = "One page of objects", body = DeadLetterPage), BadRequests, UnknownSubscription,
        Problems))]
pub(crate) async fn list_dead_letters<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<SubscriptionPath>,
    Asked(query): Asked<DeadLetterQuery>,
) -> Result<Shown<DeadLetterPage>, Failure> {
    let items = page_items(query.limit)?;
    let after = cursor::parse(query.cursor.as_deref())?;
    manage.note_dead_letter_read(&path.topic, &path.name).await;
    let prefix = layout::dead_letters_of(&path.topic, &path.name);
    let is_first = after.is_none();
    let page = manage.find(Search { prefix, query, items, after }).await?;
    if is_first && page.dead_letters.is_empty() && page.cursor.is_none() {
        manage.require_subscription_or_letters(&path).await?;
    }
    Ok(Shown::new(page))
}

/// Show a dead-letter object
///
/// A JSON array of events, each with the members that say what became of it. A message that could not be read is
/// answered byte for byte.
#[utoipa::path(get, path = "/dead-letters/{*key}", tag = "dead letters", params(DeadLetterPath),
    responses((status = 200, description = "The object", content(
            (Vec<serde_json::Value> = "application/json"), (serde_json::Value = "application/octet-stream"))),
        NoObject, LargeObject, BadRequests, Problems))]
pub(crate) async fn show_dead_letter<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
    At(path): At<DeadLetterPath>,
) -> Result<Response, Failure> {
    let object = match manage.dead_letters.get(&path.key).await {
        Ok(object) => object,
        // A key the store refuses is a key under which nothing lies.
        Err(PortError { kind: ErrorKind::Invalid, .. }) => None,
        Err(error) => return Err(Failure(store_problem(&error))),
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
        // Producers wrote what is in it: no browser shall take it for a page.
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((headers, object.bytes).into_response())
}

/// What to look for, and where to begin.
struct Search {
    prefix: String,
    query: DeadLetterQuery,
    items: usize,
    after: Option<String>,
}

impl<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy> Manage<S, D, W, C, E> {
    /// An empty list must not hide that a name is written wrong.
    async fn require_subscription_or_letters(&self, path: &SubscriptionPath) -> Result<(), Problem> {
        let prefix = layout::dead_letters_of(&path.topic, &path.name);
        let any = self.dead_letters.list(&prefix, None, 1).await.map_err(|error| store_problem(&error))?;
        if !any.objects.is_empty() {
            return Ok(());
        }
        let record = self.existing(&path.topic).await?;
        spelling(&record.settings, &path.name).map(drop).ok_or_else(|| unknown_subscription(path))
    }

    async fn find(&self, mut search: Search) -> Result<DeadLetterPage, Problem> {
        let mut found = Vec::new();
        let mut reads_left = READS_MAX;
        for _ in 0..LISTINGS_MAX {
            let listing = self.dead_letters.list(&search.prefix, search.after.as_deref(), LIST_KEYS).await;
            let listing = listing.map_err(|error| store_problem(&error))?;
            for object in listing.objects {
                // A full page is noticed at the next object, so that no cursor leads to nothing.
                if found.len() == search.items || reads_left == 0 {
                    return Ok(page(found, search.after.as_deref()));
                }
                let key = object.key.clone();
                if search.is_in_time(&object) && self.has_reason(&search, &object, &mut reads_left).await? {
                    found.push(shown(object));
                }
                search.after = Some(key);
            }
            if listing.next_after.is_none() {
                return Ok(page(found, None));
            }
            search.after = listing.next_after;
        }
        Ok(page(found, search.after.as_deref()))
    }

    /// Whether an object holds an event with the reason that is looked for. Reads it only if there is one.
    async fn has_reason(
        &self,
        search: &Search,
        object: &ObjectMeta,
        reads_left: &mut usize,
    ) -> Result<bool, Problem> {
        let Some(reason) = search.query.reason else { return Ok(true) };
        *reads_left -= 1;
        let object = self.dead_letters.get(&object.key).await.map_err(|error| store_problem(&error))?;
        Ok(object.is_some_and(|object| holds_reason(&object.bytes, reason)))
    }
}

impl Search {
    fn is_in_time(&self, object: &ObjectMeta) -> bool {
        let DeadLetterQuery { from, to, .. } = self.query;
        if from.is_none() && to.is_none() {
            return true;
        }
        let written = WrittenIn { from: from.map(|from| from.0), to: to.map(|to| to.0) };
        written.takes(&self.prefix, &object.key, object.modified_at)
    }
}

/// Whether an object is a list with an event given up for `reason`. One that cannot be read holds none.
fn holds_reason(bytes: &[u8], reason: DeadLetterReason) -> bool {
    /// The member has another name in CloudEvents, which knows lower case only.
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

fn shown(object: ObjectMeta) -> DeadLetterObject {
    DeadLetterObject { key: object.key, size: object.size, modified_at: IsoTimestamp(object.modified_at) }
}

fn page(dead_letters: Vec<DeadLetterObject>, after: Option<&str>) -> DeadLetterPage {
    DeadLetterPage { dead_letters, cursor: after.map(cursor::render) }
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
