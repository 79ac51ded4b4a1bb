//! Memory pressure: after each poll of the monitor, caches are trimmed as the state asks.

use std::sync::Arc;

use posthaste_core::pressure::PressureState;
use posthaste_services::MemoryReliever;
use posthaste_system::SystemClock;
use tokio::task::spawn_blocking;

/// Trims the caches if the state asks for it.
pub(super) async fn trim_caches(
    reliever: &Arc<MemoryReliever<SystemClock>>,
    state: &PressureState,
) {
    let due = reliever.take_due_relief(state);
    if !due.is_any() {
        return;
    }
    let reliever = Arc::clone(reliever);
    // On a blocking thread: giving ten thousand topics back to the allocator takes a while.
    if let Err(error) = spawn_blocking(move || reliever.relieve(due)).await {
        tracing::error!(%error, "caches not trimmed, the next time is in half a minute");
    }
}
