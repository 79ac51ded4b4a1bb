//! How the program is: pressure and health.

use std::error::Error;

use axum::extract::State;
use posthaste_core::api::{HealthView, PressureView};
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::pressure::PRESSURE_KEY;
use posthaste_ports::{Clock, Entropy};

use crate::answer::{Failure, Shown, store_problem};
use crate::document::{Problems, StoreDown};
use crate::{Managed, Store, Webhooks};

/// Show the pressure
///
/// What the monitor saw last: the level of each resource, and what producers really get because of it. Of a state that is
/// old (`freshness`) that is less than it says.
#[utoipa::path(get, path = "/pressure", tag = "status",
    responses((status = 200, description = "The pressure", body = PressureView), Problems))]
pub(crate) async fn pressure<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
) -> Result<Shown<PressureView>, Failure> {
    let object = manage.state.get(PRESSURE_KEY).await.map_err(|error| store_problem(&error))?;
    let state = object.map(|object| PressureState::parse(&object.bytes)).transpose();
    Ok(Shown::new(match state {
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
    responses((status = 200, description = "It works", body = HealthView),
        StoreDown))]
pub(crate) async fn health<S: Store, D: Store, W: Webhooks, C: Clock, E: Entropy>(
    State(manage): Managed<S, D, W, C, E>,
) -> Result<Shown<HealthView>, Failure> {
    // Any read will do; this object is small.
    manage.state.get(PRESSURE_KEY).await.map_err(|error| store_problem(&error))?;
    Ok(Shown::new(HealthView { status: "ok".to_owned() }))
}
