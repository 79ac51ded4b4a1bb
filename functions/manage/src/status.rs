//! Pressure and health of the installation.

use axum::extract::State;
use posthaste_core::api::{HealthView, PressureView};
use posthaste_ports::Ports;

use crate::answer::{ApiResult, JsonResponse};
use crate::document::{Problems, StoreDown};
use crate::pressure_reader::PressureReader;

/// Show the pressure
///
/// Shows the last state of the monitor: the level of each resource, and the waits and refusals that
/// producers get now. An old state (`freshness`) has less effect than it says.
#[utoipa::path(get, path = "/pressure", tag = "status",
    responses((status = 200, description = "The pressure", body = PressureView), Problems))]
pub(crate) async fn pressure<P: Ports>(
    State(pressure): State<PressureReader<P>>,
) -> ApiResult<PressureView> {
    Ok(JsonResponse::new(pressure.current_view().await?))
}

/// Ask whether the program works
///
/// Needs no key. 200 only when the state store answers.
#[utoipa::path(get, path = "/health", tag = "status", security(()),
    responses((status = 200, description = "The program works", body = HealthView), StoreDown))]
pub(crate) async fn health<P: Ports>(
    State(pressure): State<PressureReader<P>>,
) -> ApiResult<HealthView> {
    // Any read will do; this object is small.
    pressure.load_object().await?;
    Ok(JsonResponse::new(HealthView {
        status: "ok".to_owned(),
    }))
}
