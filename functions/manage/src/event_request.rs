//! The request of an attempt, made again.

mod maker;

use axum::extract::State;
use posthaste_core::api::EventRequestView;
use posthaste_core::api::events::EncodedId;
use posthaste_core::model::SubscriptionName;
use posthaste_ports::Ports;
use serde::Deserialize;

use self::maker::{AskedAttempt, EventRequestMaker};
use crate::answer::{ApiResult, JsonResponse};
use crate::document::{BadRequests, NoEvent, Problems};
use crate::event_path::EventPath;
use crate::extract::{Path, Query, SubscriptionPath};

/// The query of the request of an attempt.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventRequestQuery {
    /// The subscription's name, in any case.
    #[param(value_type = String)]
    subscription: SubscriptionName,
    /// The key of the delivery. When left out, the delivery that was accepted last.
    key: Option<String>,
    /// The number of the attempt, from 1. When left out, the last attempt.
    attempt: Option<u16>,
    /// The event's id, in place of that of the path: for every id that has other characters than
    /// ASCII letters, digits, `_`, `-` and `.`, which proxies may change in a path.
    id: Option<String>,
    /// The same in base64url: for an id that is too long for a URL in percent-encoding.
    #[param(value_type = Option<String>)]
    id64: Option<EncodedId>,
}

/// Show the request of an attempt, made again
///
/// The log keeps neither the headers nor the body of a request. They are made again from the
/// record, the event and the settings that the subscription has now, and nothing is sent. Secrets
/// are masked, and the signature is not shown. `settingsChangedAt` says that the settings were
/// written after the attempt. A batch is shown with this event alone (`isBatch`).
#[utoipa::path(get, path = "/topics/{topic}/events/{id}/request", tag = "events",
    params(EventPath, EventRequestQuery),
    responses((status = 200, description = "The request", body = EventRequestView),
        BadRequests, NoEvent, Problems))]
pub(crate) async fn show_event_request<P: Ports>(
    State(maker): State<EventRequestMaker<P>>,
    Path(EventPath { topic, id }): Path<EventPath>,
    Query(query): Query<EventRequestQuery>,
) -> ApiResult<EventRequestView> {
    let encoded = query.id64.map(|id| id.0);
    let asked = AskedAttempt {
        to: SubscriptionPath {
            topic,
            name: query.subscription,
        },
        id: encoded.or(query.id).unwrap_or(id),
        key: query.key,
        attempt: query.attempt,
    };
    Ok(JsonResponse::new(maker.make_request(&asked).await?))
}
