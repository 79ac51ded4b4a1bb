//! How the program is: pressure and health.

use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use axum::response::{IntoResponse, Response};
use posthaste_core::api::HealthView;
use posthaste_ports::{Clock, Entropy};

use crate::answer::{Failure, Shown, store_problem};
use crate::document::{Problems, StoreDown};
use crate::{Managed, Store};

/// The object the monitor writes.
const PRESSURE: &str = "pressure.json";

/// What is shown before the monitor has written anything.
const NORMAL: &str = r#"{"level":"Normal"}"#;

/// Show the pressure
///
/// What the monitor saw last: the level of each resource, and what producers are told because of it.
#[utoipa::path(get, path = "/pressure", tag = "status",
    responses((status = 200, description = "The state as the monitor wrote it", body = serde_json::Value), Problems))]
pub(crate) async fn pressure<S: Store, D: Store, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, C, E>,
) -> Result<Response, Failure> {
    let object = manage.state.get(PRESSURE).await.map_err(|error| store_problem(&error))?;
    let bytes = object.map_or_else(|| NORMAL.into(), |object| object.bytes);
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    Ok((headers, bytes).into_response())
}

/// Ask whether the program works
///
/// Needs no key. 200 only when the state store answers.
#[utoipa::path(get, path = "/health", tag = "status", security(()),
    responses((status = 200, description = "It works", body = HealthView),
        StoreDown))]
pub(crate) async fn health<S: Store, D: Store, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, C, E>,
) -> Result<Shown<HealthView>, Failure> {
    // Any read will do; this object is small.
    manage.state.get(PRESSURE).await.map_err(|error| store_problem(&error))?;
    Ok(Shown::new(HealthView { status: "ok".to_owned() }))
}
