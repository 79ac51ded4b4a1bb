//! Pressure and health of the installation.

use std::error::Error;

use axum::extract::State;
use posthaste_core::api::{HealthView, PressureView};
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ObjectStore, Ports};

use crate::answer::{ApiResult, JsonResponse};
use crate::document::{Problems, StoreDown};
use crate::manage::ManageState;

/// Show the pressure
///
/// Shows the last state of the monitor: the level of each resource, and the waits and refusals that
/// producers get now. An old state (`freshness`) has less effect than it says.
#[utoipa::path(get, path = "/pressure", tag = "status",
    responses((status = 200, description = "The pressure", body = PressureView), Problems))]
pub(crate) async fn pressure<P: Ports>(State(manage): ManageState<P>) -> ApiResult<PressureView> {
    let object = manage.state.get(PRESSURE_KEY).await?;
    let state = object
        .map(|object| PressureState::parse(&object.bytes))
        .transpose();
    Ok(JsonResponse::new(match state {
        Ok(state) => PressureView::new(state.as_ref(), manage.clock.now()),
        Err(error) => {
            tracing::error!(
                error = &error as &dyn Error,
                "the pressure state cannot be used, it counts as normal"
            );
            PressureView::unreadable()
        }
    }))
}

/// Ask whether the program works
///
/// Needs no key. 200 only when the state store answers.
#[utoipa::path(get, path = "/health", tag = "status", security(()),
    responses((status = 200, description = "The program works", body = HealthView), StoreDown))]
pub(crate) async fn health<P: Ports>(State(manage): ManageState<P>) -> ApiResult<HealthView> {
    // Any read will do; this object is small.
    manage.state.get(PRESSURE_KEY).await?;
    Ok(JsonResponse::new(HealthView {
        status: "ok".to_owned(),
    }))
}
