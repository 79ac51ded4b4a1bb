//! Test events: one real attempt at a subscription's endpoint, and its result as the answer.
//! The event is not queued, retried or dead-lettered.

mod sender;

use axum::extract::{Request, State};
use posthaste_core::api::TestAttempt;
use posthaste_ports::Ports;

use self::sender::TestSender;
use crate::answer::{ApiResult, JsonResponse};
use crate::audit::RequestCaller;
use crate::document::{BadRequests, Problems, UnknownSubscription, WrongStates};
use crate::extract::{Path, SubscriptionPath, read_body};

/// Send a test event
///
/// Makes one real attempt at once, with the subscription's own headers and signature, whatever its
/// state and its filter; but an endpoint that must consent (`endpoint.validation`) must have done
/// so. The body is an event in the schema that the subscription receives, or an array of one;
/// without a body, a sample of the type `dev.posthaste.test` is sent. The endpoint has the
/// subscription's timeout, at most 20 seconds. The event is not retried and not dead-lettered.
#[utoipa::path(post, path = "/topics/{topic}/subscriptions/{name}/test", tag = "subscriptions",
    params(SubscriptionPath),
    request_body(content = Option<serde_json::Value>, content_type = "application/json"),
    responses((status = 200, description = "The attempt, whether it succeeded or not", body = TestAttempt),
        BadRequests, UnknownSubscription, WrongStates, Problems))]
pub(crate) async fn test_event<P: Ports>(
    State(sender): State<TestSender<P>>,
    RequestCaller(caller): RequestCaller,
    Path(path): Path<SubscriptionPath>,
    request: Request,
) -> ApiResult<TestAttempt> {
    let body = read_body(request).await?;
    let attempt = sender.send_test(caller, &path, &body).await?;
    Ok(JsonResponse::new(attempt))
}
