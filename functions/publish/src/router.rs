//! The function as HTTP: its two paths, and its outcomes as answers.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use axum::routing::post;
use axum::{Json, Router};
use http::{HeaderValue, Request, Response};
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::model::{API_EVENTS_PATH, EVENTS_PATH};
use posthaste_ports::Ports;

use crate::error::PublishError;
use crate::headers::PRESSURE_HEADER;
use crate::publish::Publish;

/// The function's routes. Another method on them is answered as a problem.
pub fn router<P: Ports>(publish: Arc<Publish<P>>) -> Router {
    routes(publish).method_not_allowed_fallback(method_not_allowed)
}

/// The function's routes, for a router that has other methods on the same paths and answers all
/// others. Success is 200 with the counts of events and subscriptions, whose body Event Grid's
/// clients ignore; everything else is a problem document (RFC 9457).
pub fn routes<P: Ports>(publish: Arc<Publish<P>>) -> Router {
    Router::new()
        .route(EVENTS_PATH, post(post_events::<P>))
        .route(API_EVENTS_PATH, post(post_events::<P>))
        .with_state(publish)
}

async fn post_events<P: Ports>(
    State(publish): State<Arc<Publish<P>>>,
    topic: Result<Path<String>, PathRejection>,
    request: Request<Body>,
) -> Response<Body> {
    // A path that is not UTF-8 names no topic, and neither does the empty name.
    let topic = topic.map(|Path(topic)| topic).unwrap_or_default();
    match publish.publish(&topic, request).await {
        Ok(published) => with_pressure(Json(published.answer).into_response(), published.pressure),
        Err(error) => {
            let response = error.problem().into_response().map(Body::from);
            match error {
                PublishError::Refused(away) | PublishError::Advised(away) => {
                    with_pressure(response, away.header)
                }
                _ => response,
            }
        }
    }
}

fn with_pressure(mut response: Response<Body>, pressure: Option<String>) -> Response<Body> {
    if let Some(value) = pressure.and_then(|text| HeaderValue::try_from(text).ok()) {
        response.headers_mut().insert(PRESSURE_HEADER, value);
    }
    response
}

async fn method_not_allowed() -> Response<Body> {
    let mut problem = ApiProblem::new(ProblemKind::MethodNotAllowed);
    problem.allow = Some("POST");
    problem.into_response().map(Body::from)
}
