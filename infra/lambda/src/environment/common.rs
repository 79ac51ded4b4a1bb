//! The environment that every function has.

use posthaste_aws::telemetry::TelemetrySettings;
use posthaste_settings::{Values, table};
use tracing::level_filters::LevelFilter;

use super::variables::Variables;

/// The environment that every function has.
#[derive(Debug, Clone)]
pub struct CommonEnvironment {
    /// The state bucket.
    pub state_bucket: String,
    /// Log level, and names of metrics.
    pub telemetry: TelemetrySettings,
}

impl CommonEnvironment {
    pub(super) fn read(variables: &mut Variables<'_>) -> Self {
        let metrics_namespace = variables.get(&table::METRICS_NAMESPACE).unwrap_or_default();
        let state_bucket = variables.get(&table::STATE_BUCKET).unwrap_or_default();
        let log_level = variables.get(&table::LOG_LEVEL).unwrap_or(LevelFilter::INFO);
        let metrics_by = variables.get(&table::METRICS_BY).and_then(|by| by.parse().ok()).unwrap_or_default();
        Self { state_bucket, telemetry: TelemetrySettings { log_level, metrics_namespace, metrics_by } }
    }
}
