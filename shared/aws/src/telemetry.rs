//! Telemetry of a Lambda program, all on standard output: log lines as JSON, and metrics in
//! CloudWatch's embedded metric format.

use std::io::{self, Write};
use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use posthaste_core::model::Timestamp;
use tracing::level_filters::LevelFilter;

mod copies;
mod emf;
mod log;
mod metrics_by;
mod pace;

pub use copies::{CopiedSeries, CopiedValue};
use emf::EmfRecorder;
pub use metrics_by::MetricsBy;

/// Settings of the log and the metrics.
#[derive(Debug, Clone)]
pub struct TelemetrySettings {
    /// The least important level that is logged.
    pub log_level: LevelFilter,
    /// The CloudWatch namespace of the metrics.
    pub metrics_namespace: String,
    /// The labels that become dimensions.
    pub metrics_by: MetricsBy,
}

impl Default for TelemetrySettings {
    fn default() -> Self {
        Self {
            log_level: LevelFilter::INFO,
            metrics_namespace: String::new(),
            metrics_by: MetricsBy::default(),
        }
    }
}

/// Sends what was measured somewhere else, too, at the end of each invocation.
type ExportFn = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

/// The process's only export, if there is one.
static EXPORT: OnceLock<ExportFn> = OnceLock::new();

/// Runs this export at the end of each invocation, which lasts as much longer. From now on the
/// written metrics are kept for [`take_copies`]. To be called once, after [`start`].
pub fn export_with(export: impl Fn() -> BoxFuture<'static, ()> + Send + Sync + 'static) {
    if let Some(recorder) = RECORDER.get() {
        recorder.keep_copies();
    }
    // A second one, in tests, changes nothing.
    let _ = EXPORT.set(Box::new(export));
}

/// The copies of the metrics that were written since the last call.
pub fn take_copies() -> Vec<CopiedSeries> {
    RECORDER
        .get()
        .map(EmfRecorder::take_copies)
        .unwrap_or_default()
}

/// Exports, where that is asked for.
pub(crate) async fn run_export() {
    if let Some(export) = EXPORT.get() {
        export().await;
    }
}

/// The process's only recorder.
static RECORDER: OnceLock<EmfRecorder> = OnceLock::new();

/// Starts the log and the metrics of this process. A second start, in tests, changes nothing.
pub fn start(settings: &TelemetrySettings) {
    log::start(settings.log_level);
    let recorder =
        RECORDER.get_or_init(|| EmfRecorder::new(&settings.metrics_namespace, settings.metrics_by));
    // An error means that there is a recorder already: this one, or a test's own.
    let _ = metrics::set_global_recorder(recorder);
}

/// Writes the metrics that an earlier invocation left, before one begins.
pub(crate) fn begin_invocation(now: Timestamp) {
    write_documents(|recorder| recorder.begin_invocation(now));
}

/// Writes metrics at the end of an invocation: all of them, or those that must not wait.
pub(crate) fn end_invocation(now: Timestamp) {
    write_documents(|recorder| recorder.end_invocation(now));
}

#[expect(clippy::disallowed_methods, reason = "Lambda reads metrics there")]
fn write_documents(lines: impl FnOnce(&EmfRecorder) -> Vec<u8>) {
    let documents = RECORDER.get().map(lines).unwrap_or_default();
    if documents.is_empty() {
        return;
    }
    // One write, so that no log line comes in between.
    if let Err(error) = io::stdout().lock().write_all(&documents) {
        tracing::error!(%error, "metrics not written");
    }
}
