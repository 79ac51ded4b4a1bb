//! What operators see of the pressure: log events with the documents' ids, and the `PressureLevel` gauges.

use posthaste_core::pressure::{
    DISK_CRITICALLY_LOW, MEMORY_CRITICALLY_LOW, PRESSURE_FELL, PRESSURE_ROSE, PressureState, Resource,
    ResourceState, Transition,
};

/// Logs what changed about one resource.
pub(crate) fn transition(change: Transition, state: &PressureState) {
    let Transition { resource, previous, current, .. } = change;
    let reading = state.resource(resource).map(|r| r.reading);
    for id in change.log_ids() {
        match id {
            PRESSURE_ROSE => tracing::error!(
                id, %resource, %previous, %current, reading,
                "resource pressure increased from {previous} to {current}"
            ),
            PRESSURE_FELL => tracing::info!(
                id, %resource, %previous, %current, reading,
                "resource pressure decreased from {previous} to {current}"
            ),
            DISK_CRITICALLY_LOW => tracing::error!(
                id, %resource, reading,
                "producers are refused because disk space is below the threshold; space must be freed"
            ),
            MEMORY_CRITICALLY_LOW => tracing::error!(
                id, %resource, reading,
                "producers are refused because more memory is used than the threshold allows"
            ),
            _ => {}
        }
    }
}

/// Sets the gauges of the resources that could be read: 0 Normal, 1 Medium, 2 High, as far as the level has
/// consequences. One that is never read here has none, because CloudWatch bills each.
pub(crate) fn levels(state: &PressureState) {
    for resource in Resource::ALL {
        if let Some(level) = state.resource(resource).map(ResourceState::effective_level) {
            metrics::gauge!("PressureLevel", "resource" => resource.as_str()).set(level.number());
        }
    }
}
