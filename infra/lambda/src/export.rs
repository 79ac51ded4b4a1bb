//! Traces and metrics for a collector, at the end of each invocation: between invocations an
//! instance is frozen, and it may never run again.

use posthaste_aws::AwsClients;
use posthaste_core::trace::collector::ExportSettings;
use posthaste_services::EventTraces;

#[cfg(feature = "otlp")]
mod otlp;

/// Starts the export, if a collector is given. A program without the feature logs that it does not
/// export.
pub(crate) fn start(settings: Option<&ExportSettings>, clients: &AwsClients) {
    let Some(settings) = settings else {
        return;
    };
    #[cfg(feature = "otlp")]
    otlp::start(settings, clients);
    #[cfg(not(feature = "otlp"))]
    {
        let _ = (settings, clients);
        tracing::warn!(
            "no traces and metrics are exported, because this program was built without the feature otlp"
        );
    }
}

/// The traces of events.
pub(crate) fn traces() -> EventTraces {
    #[cfg(feature = "otlp")]
    return otlp::traces();
    #[cfg(not(feature = "otlp"))]
    EventTraces::default()
}
