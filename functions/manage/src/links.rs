//! Links and subscriptions that are not well, and subscriptions whose events are held, as operators see them.

mod held;
mod rows;

use axum::extract::State;
use posthaste_core::api::LinksView;
use posthaste_core::circuit::Target;
use posthaste_core::stored::layout;
use posthaste_ports::Ports;

use self::rows::rows;
use crate::document::Problems;
use crate::error::ApiError;
use crate::manage::Managed;
use crate::response::JsonResponse;

/// Most rows that are shown: an answer of Lambda has room for ten times as many.
const SHOWN_MAX: usize = 1000;

/// Show links and subscriptions that are not well
///
/// One row for each link (scheme, host and port) and each subscription that is left alone for a while because it failed,
/// or that has just recovered, and for each subscription whose events are held because it is paused or its endpoint has not
/// consented. What is well is not shown.
#[utoipa::path(get, path = "/links", tag = "status",
    responses((status = 200, description = "The links and subscriptions", body = LinksView,
        example = json!({ "links": [
            { "link": "https://billing.example.com:443", "scope": "link", "state": "retry",
              "since": "2026-11-21T10:03:00.000Z", "failingSince": "2026-11-21T10:00:00.000Z", "failures": 13,
              "lastOutcome": "SocketError", "nextProbe": "2026-11-21T10:13:00.000Z", "heldObjects": 3 },
            { "link": "https://crm.example.com:443", "scope": "subscription", "topic": "orders",
              "subscription": "crm", "state": "paused", "since": "2026-11-21T09:00:00.000Z", "heldObjects": 1 },
        ] })), Problems))]
pub(crate) async fn links<P: Ports>(State(manage): Managed<P>) -> Result<JsonResponse<LinksView>, ApiError> {
    let shards = manage.links.all().await?;
    let failing: Vec<_> = shards.iter().flat_map(|(_, shard)| shard.conditions()).collect();
    let (mut held, is_whole) = manage.held().await?;
    // A subscription that fails has nothing held at first, and is shown under the name that was written.
    let own = failing.iter().filter_map(|(target, _)| own_folder(target)).take(SHOWN_MAX);
    for folder in own {
        held.entry(folder).or_default();
    }
    let mut links = rows(&failing, &manage.owners(held).await?);
    let truncated = !is_whole || links.len() > SHOWN_MAX;
    links.truncate(SHOWN_MAX);
    Ok(JsonResponse::new(LinksView { links, truncated }))
}

/// The folder of what is held for a target; `None` of a link.
fn own_folder(target: &Target) -> Option<String> {
    let Target::Subscription { topic, name, .. } = target else { return None };
    layout::held_folder(&layout::held_of(topic, name)).map(str::to_owned)
}
