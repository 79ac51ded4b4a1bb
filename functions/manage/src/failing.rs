//! Subscriptions that fail now: one list of all subscriptions whose events do not arrive, for
//! operators in an outage.

mod known;
mod overview;
mod rows;

use axum::extract::State;
use posthaste_core::api::{FailingState, FailingView};
use posthaste_ports::Ports;
use serde::Deserialize;

use self::overview::FailingOverview;
use self::rows::RowFilter;
use crate::answer::{ApiResult, JsonResponse};
use crate::document::{BadRequests, Problems};
use crate::extract::Query;
use crate::paging::{PageRequest, bad_cursor};

/// The query of what fails.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct FailingQuery {
    /// Only rows whose link, topic or subscription has this text in its name, in any case. Then all
    /// rows of a link are shown.
    name: Option<String>,
    /// Only rows in this state.
    state: Option<FailingState>,
    /// Most items on the page. 100 when left out.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// Where the page begins, as the page before gave it.
    cursor: Option<String>,
}

/// Show what fails now
///
/// One row for each subscription whose events do not arrive: since when, the last failure, the
/// share of the last hour's tries that arrived, what waits, and the next attempt. Subscriptions that
/// are stopped while events wait or are missed come last. Parts that cannot be read within two
/// seconds are named in `leftOut`.
#[utoipa::path(get, path = "/failing", tag = "status", params(FailingQuery),
    responses((status = 200, description = "One page of what fails", body = FailingView,
        example = json!({ "failing": [
            { "scope": "subscription", "link": "https://billing.example.com:443", "topic": "orders",
              "subscription": "billing", "state": "down", "since": "2026-11-21T10:00:00.000Z",
              "lastFailureAt": "2026-11-21T10:11:58.000Z", "lastOutcome": "Busy", "lastHttpStatusCode": 503,
              "hour": { "arrived": 12, "tried": 240, "from": "2026-11-21T10:00:00.000Z" },
              "waiting": { "count": 418, "parked": 0, "held": 418,
                           "oldestAcceptedAt": "2026-11-21T10:00:00.000Z" },
              "nextAttemptAt": "2026-11-21T10:13:00.000Z" },
        ], "total": 1, "recovering": 0, "stopped": 0, "countedAt": "2026-11-21T10:12:00.000Z" })),
        BadRequests, Problems))]
pub(crate) async fn failing<P: Ports>(
    State(overview): State<FailingOverview<P>>,
    Query(query): Query<FailingQuery>,
) -> ApiResult<FailingView> {
    let page = PageRequest::parse(query.limit, query.cursor.as_deref())?;
    if page
        .after
        .as_deref()
        .is_some_and(|after| !rows::is_place(after))
    {
        return Err(bad_cursor().into());
    }
    let filter = RowFilter::new(query.name.as_deref(), query.state);
    Ok(JsonResponse::new(overview.show_page(&filter, page).await?))
}
