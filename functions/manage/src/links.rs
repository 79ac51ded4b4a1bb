//! Unhealthy links and subscriptions, and subscriptions whose events are held, as operators see
//! them.

mod overview;
mod rows;

use axum::extract::State;
use posthaste_core::api::LinksView;
use posthaste_ports::Ports;

use self::overview::LinkOverview;
use crate::answer::{ApiResult, JsonResponse};
use crate::document::Problems;

/// Show links and subscriptions that are not well
///
/// One row for each link (scheme, host and port) and each subscription whose requests pause because
/// they failed, or that has just recovered, and for each subscription whose events are held because
/// it is paused or its endpoint has not consented. Links and subscriptions that are well are not
/// shown. `slow` has those that answer slowly, well or not.
#[utoipa::path(get, path = "/links", tag = "status",
    responses((status = 200, description = "The links and subscriptions", body = LinksView,
        example = json!({ "links": [
            { "link": "https://billing.example.com:443", "scope": "link", "state": "retry",
              "since": "2026-11-21T10:03:00.000Z", "failingSince": "2026-11-21T10:00:00.000Z", "failures": 13,
              "lastOutcome": "SocketError", "nextProbe": "2026-11-21T10:13:00.000Z", "heldObjects": 3 },
            { "link": "https://crm.example.com:443", "scope": "subscription", "topic": "orders",
              "subscription": "crm", "state": "paused", "since": "2026-11-21T09:00:00.000Z",
              "heldObjects": 1 },
        ] })), Problems))]
pub(crate) async fn links<P: Ports>(
    State(overview): State<LinkOverview<P>>,
) -> ApiResult<LinksView> {
    Ok(JsonResponse::new(overview.unhealthy_links().await?))
}
