//! The attempts of one subscription, with the answers of its endpoint.

use axum::Extension;
use axum::extract::State;
use posthaste_core::api::events::{ListTime, RecordPage, RecordQuery};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::delivery_log::{RecordFilter, RecordKind};
use posthaste_ports::{Clock, Ports};

use crate::answer::{ApiResult, JsonResponse, unknown_topic};
use crate::document::{BadRequests, Problems, UnknownSubscription};
use crate::event_log::{EventLog, is_empty, read_query};
use crate::extract::{Path, Query, SubscriptionPath};
use crate::request_clock::RequestClock;
use crate::topic_records::TopicRecords;

/// List a subscription's attempts
///
/// The newest first, with the first bytes of each answer. The subscription, or its topic, may have
/// been deleted: its attempts stay. Where there is neither a subscription nor any attempt of it,
/// the answer is 404.
#[utoipa::path(get, path = "/topics/{topic}/subscriptions/{name}/attempts", tag = "events",
    params(SubscriptionPath, RecordQuery),
    responses((status = 200, description = "One page of attempts", body = RecordPage),
        BadRequests, UnknownSubscription, Problems))]
pub(crate) async fn list_attempts<P: Ports>(
    State(records): State<TopicRecords<P>>,
    State(events): State<EventLog<P>>,
    State(clock): State<RequestClock<P>>,
    Path(path): Path<SubscriptionPath>,
    Query(query): Query<RecordQuery>,
    time: Option<Extension<ListTime>>,
) -> ApiResult<RecordPage> {
    if query.subscription.is_some() {
        return Err(named_twice().into());
    }
    let record = records.load_record(&path.topic).await?;
    let (filter, items) = read_query(&query, &path.topic, clock.now())?;
    let filter = RecordFilter {
        subscription: Some(path.name.folded()),
        kind: Some(RecordKind::Attempt),
        ..filter
    };
    let is_first = filter.after.is_none();
    let page = events
        .log_page(
            record.as_ref(),
            filter,
            items,
            time.map(|Extension(time)| time),
        )
        .await?;
    if is_first && is_empty(&page) {
        path.find_in(&record.ok_or_else(|| unknown_topic(&path.topic))?)?;
    }
    Ok(JsonResponse::new(page))
}

fn named_twice() -> ApiProblem {
    let detail = "the path names the subscription";
    ApiProblem::new(ProblemKind::BadRequest)
        .member("subscription")
        .detail(detail)
}
