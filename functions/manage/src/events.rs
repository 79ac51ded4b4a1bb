//! The deliveries of events: one event by its id, and lists of records of the delivery log.

use axum::extract::State;
use posthaste_core::api::events::{EventQuery, EventView, RecordPage, RecordQuery, RecordView};
use posthaste_ports::{Clock, Ports};

use crate::answer::{ApiResult, JsonResponse, unknown_topic};
use crate::document::{BadRequests, LargeObject, Problems, UnknownTopic};
use crate::event_log::{EventLog, is_empty, read_query};
use crate::event_path::EventPath;
use crate::event_viewer::EventViewer;
use crate::extract::{Path, Query, TopicPath};
use crate::request_clock::RequestClock;
use crate::topic_records::TopicRecords;

/// Show what became of an event
///
/// One entry for each delivery of the event to a subscription, with its attempts, and the state of
/// the event as a whole. A subscription that the event matches and that has no record yet is
/// `pending`. The note says how late the first record of an event may come. At most 1,000 records
/// are read, the newest, and for at most ten seconds; the note says if there may be more.
#[utoipa::path(get, path = "/topics/{topic}/events/{id}", tag = "events", params(EventPath, EventQuery),
    responses((status = 200, description = "The deliveries of the event", body = EventView),
        LargeObject, BadRequests, UnknownTopic, Problems))]
pub(crate) async fn show_event<P: Ports>(
    State(viewer): State<EventViewer<P>>,
    Path(EventPath { topic, id }): Path<EventPath>,
    Query(query): Query<EventQuery>,
) -> ApiResult<EventView> {
    let id = query.event_id(id);
    let view = viewer.view_event(&topic, id, &query).await?;
    Ok(JsonResponse::new(view))
}

/// List what became of a topic's events
///
/// The records of the delivery log, the newest first: one for each attempt, and for each change
/// without one.
#[utoipa::path(get, path = "/topics/{topic}/events", tag = "events",
    params(TopicPath,
        ("subscription" = Option<String>, Query, description = "Only this subscription, in any case"),
        RecordQuery),
    responses((status = 200, description = "One page of records", body = RecordPage),
        BadRequests, UnknownTopic, Problems))]
pub(crate) async fn list_events<P: Ports>(
    State(records): State<TopicRecords<P>>,
    State(events): State<EventLog<P>>,
    State(clock): State<RequestClock<P>>,
    Path(path): Path<TopicPath>,
    Query(query): Query<RecordQuery>,
) -> ApiResult<RecordPage> {
    let record = records.load_record(&path.topic).await?;
    let (filter, items) = read_query(&query, &path.topic, clock.now())?;
    let is_first = filter.after.is_none();
    let page = events
        .log_page(record.as_ref(), filter, items, None)
        .await?;
    if is_first && record.is_none() && is_empty(&page) {
        return Err(unknown_topic(&path.topic).into());
    }
    let records = page
        .records
        .into_iter()
        .map(RecordView::without_answer)
        .collect();
    Ok(JsonResponse::new(RecordPage { records, ..page }))
}
