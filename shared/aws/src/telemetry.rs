//! What a Lambda program tells about itself, all on standard output: log lines as JSON, and metrics in CloudWatch's
//! embedded metric format.

use std::io::{self, Write};
use std::str::FromStr;
use std::sync::OnceLock;

use posthaste_core::model::time::Timestamp;
use tracing::level_filters::LevelFilter;

mod emf;
mod log;

use emf::Emf;

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

impl MetricsBy {
    /// Whether a label of this name becomes a dimension. All but the two do, such as `reason`: their values are few.
    pub(crate) fn keeps(self, label: &str) -> bool {
        match label {
            "topic" => self != Self::Stack,
            "subscription" => self == Self::Subscription,
            _ => true,
        }
    }
}

/// There is one recorder in a process, whatever runs in it.
static RECORDER: OnceLock<Emf> = OnceLock::new();

/// Starts the log and the metrics of this process. A second start, in tests, changes nothing.
pub fn start(settings: &TelemetrySettings) {
    log::start(settings.log_level);
    let recorder = RECORDER.get_or_init(|| Emf::new(&settings.metrics_namespace, settings.metrics_by));
    // An error means that there is a recorder already: this one, or that of somebody who measures in another way.
    let _ = metrics::set_global_recorder(recorder);
}

/// Writes what was measured since the last flush.
pub(crate) fn flush(now: Timestamp) {
    let Some(recorder) = RECORDER.get() else { return };
    let documents = recorder.drain(now);
    if documents.is_empty() {
        return;
    }
    // One write, so that nothing of the log comes in between.
    if let Err(error) = io::stdout().lock().write_all(&documents) {
        tracing::error!(%error, "metrics not written");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_cost_a_metric_each_are_dimensions_only_on_demand() {
        let kept = |by: MetricsBy| ["topic", "subscription", "reason"].map(|label| by.keeps(label));
        assert_eq!(kept(MetricsBy::Stack), [false, false, true]);
        assert_eq!(kept(MetricsBy::Topic), [true, false, true]);
        assert_eq!(kept(MetricsBy::Subscription), [true, true, true]);
    }

    #[test]
    fn a_setting_is_one_of_three_words() {
        assert_eq!("stack".parse(), Ok(MetricsBy::Stack));
        assert_eq!("topic".parse(), Ok(MetricsBy::Topic));
        assert_eq!("subscription".parse(), Ok(MetricsBy::Subscription));
        for text in ["", "Topic", "all"] {
            assert_eq!(text.parse::<MetricsBy>(), Err(MetricsByError), "{text}");
        }
    }
}
