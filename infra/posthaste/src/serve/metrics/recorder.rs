//! The recorder of metrics, with our buckets.

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusRecorder};

/// Upper bounds of the histograms whose names end in `InMs`, in milliseconds: from a memory copy to the
/// longest attempt.
const MILLISECONDS_BUCKETS: [f64; 14] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0];

/// A recorder with these buckets.
pub(super) fn recorder() -> Result<PrometheusRecorder, BuildError> {
    let builder = PrometheusBuilder::new();
    Ok(builder
        .set_buckets_for_metric(Matcher::Suffix("InMs".to_owned()), &MILLISECONDS_BUCKETS)?
        .build_recorder())
}
