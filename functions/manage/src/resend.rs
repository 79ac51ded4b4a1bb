//! One event that is sent again by its id, at once: a replay of one.

mod letter;
mod payload;
mod queue;
mod resender;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use posthaste_core::api::{ResendRequest, ResendView};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_ports::Ports;
use serde::Deserialize;

use self::resender::EventResender;
use crate::answer::{ApiError, JsonResponse};
use crate::audit::RequestCaller;
use crate::document::{BadRequests, NoEvent, Problems, WrongStates};
use crate::event_path::{EventIdQuery, event_path};
use crate::extract::{OptionalJsonBody, Path, Query, SubscriptionPath};

/// The path of an event towards a subscription.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DeliveryPath {
    /// The topic's name, in any case.
    #[param(value_type = String)]
    topic: TopicName,
    /// The subscription's name, in any case.
    #[param(value_type = String)]
    name: SubscriptionName,
    /// The event's id, percent-encoded. Any text where the query has the id.
    id: String,
}

/// Send an event again
///
/// Makes a new delivery of the event to this subscription, at once and whatever became of the
/// earlier ones, as long as the delivery log or a dead letter has its payload. It has a new key and
/// a new time to live, and keeps its `webhook-id`, or gets a new one with `newId`. A pause, the
/// state of the link and the rate limit hold for it as for any other. Two requests make two
/// deliveries. With `deadLetter`, that dead letter is sent. Under back pressure it waits as a replay
/// does: 503 with `Retry-After`, and nothing is sent.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/events/{id}/resend", tag = "events",
    params(DeliveryPath, EventIdQuery), request_body(content = Option<ResendRequest>),
    responses((status = 202, description = "The new delivery is queued", body = ResendView,
            headers(("Location" = String, description = "The path that shows what becomes of the event"))),
        BadRequests, NoEvent, WrongStates, Problems))]
pub(crate) async fn resend<P: Ports>(
    State(resender): State<EventResender<P>>,
    RequestCaller(caller): RequestCaller,
    Path(DeliveryPath { topic, name, id }): Path<DeliveryPath>,
    Query(query): Query<EventIdQuery>,
    OptionalJsonBody(request): OptionalJsonBody<ResendRequest>,
) -> Result<Response, ApiError> {
    let id = query.event_id(id);
    let path = SubscriptionPath { topic, name };
    let view = resender.resend_event(caller, &path, &id, &request).await?;
    let location = event_path(&path.topic, &id);
    Ok(JsonResponse::accepted(view, location).into_response())
}
