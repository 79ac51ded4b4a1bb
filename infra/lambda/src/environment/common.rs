//! What every function is told.

use posthaste_aws::telemetry::{MetricsBy, TelemetrySettings};
use tracing::level_filters::LevelFilter;

use super::{LOG_LEVEL, METRICS_BY, METRICS_NAMESPACE, STATE_BUCKET, Variables, kinds};

/// The namespace of metrics where none is set.
const METRICS_NAMESPACE_DEFAULT: &str = "posthaste";

/// What every function is told.
#[derive(Debug, Clone)]
pub struct CommonEnvironment {
    /// The state bucket.
    pub state_bucket: String,
    /// What is logged, and how metrics are named.
    pub telemetry: TelemetrySettings,
}

impl CommonEnvironment {
    pub(super) fn read(variables: &mut Variables<'_>) -> Self {
        let namespace = variables.optional(METRICS_NAMESPACE, &kinds::NAMESPACE);
        Self {
            state_bucket: variables.required(STATE_BUCKET, &kinds::BUCKET),
            telemetry: TelemetrySettings {
                log_level: variables.optional(LOG_LEVEL, &kinds::LOG_LEVEL).unwrap_or(LevelFilter::INFO),
                metrics_namespace: namespace.unwrap_or_else(|| METRICS_NAMESPACE_DEFAULT.to_owned()),
                metrics_by: variables.optional(METRICS_BY, &kinds::METRICS_BY).unwrap_or(MetricsBy::Stack),
            },
        }
    }
}
