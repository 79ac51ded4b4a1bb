//! The events that a user finds by what it has: an event's id, a `webhook-id`, or the key of a
//! dead letter.

use axum::Extension;
use axum::extract::State;
use posthaste_core::api::FoundEvents;
use posthaste_core::api::events::{EventQuery, ListTime};
use posthaste_ports::Ports;
use serde::Deserialize;

use crate::answer::{ApiResult, JsonResponse};
use crate::document::{BadRequests, LargeObject, Problems};
use crate::event_finder::EventFinder;
use crate::extract::{Path, Query};

/// The path of what is looked for.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct KnownByPath {
    /// An event's id, a `webhook-id`, or the key of a dead-letter object, percent-encoded. Any text
    /// where the query has it.
    id: String,
}

/// Find events by what you have
///
/// The id may be that of an event, the `webhook-id` of a request, or the key of a dead-letter
/// object, of any topic. Every event that it leads to is shown, with its deliveries. If there is
/// none, the list is empty and the note says why that may be. The log is searched for at most ten
/// seconds, from the newest hour back; `searchedFrom` says how far.
#[utoipa::path(get, path = "/events/{id}", tag = "events", params(KnownByPath, EventQuery),
    responses((status = 200, description = "The events", body = FoundEvents),
        LargeObject, BadRequests, Problems))]
pub(crate) async fn find_events<P: Ports>(
    State(finder): State<EventFinder<P>>,
    Path(KnownByPath { id }): Path<KnownByPath>,
    Query(query): Query<EventQuery>,
    time: Option<Extension<ListTime>>,
) -> ApiResult<FoundEvents> {
    let id = query.event_id(id);
    let time = time.map(|Extension(time)| time);
    let found = finder.find_events(id, &query, time).await?;
    Ok(JsonResponse::new(found))
}
