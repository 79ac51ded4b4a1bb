//! The metrics of the process, as Prometheus text. Names are SPEC §9's, as the functions write them.

use std::sync::OnceLock;

use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

/// Upper bounds of the histograms whose names end in `InMs`, in milliseconds: from a memory copy to the longest
/// attempt.
const MILLISECONDS_BUCKETS: [f64; 14] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0];

/// There is one recorder in a process, whatever runs in it.
static RECORDER: OnceLock<PrometheusHandle> = OnceLock::new();

/// Installs the recorder, the first time, and answers the way to its text.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    if let Some(handle) = RECORDER.get() {
        return Ok(handle.clone());
    }
    let recorder = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("InMs".to_owned()), &MILLISECONDS_BUCKETS)?
        .build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_ok() {
        return Ok(RECORDER.get_or_init(|| handle).clone());
    }
    // Somebody else was first, in this process's tests for example: theirs is the one that counts.
    Ok(RECORDER.get().cloned().unwrap_or(handle))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_they_are() {
        let handle = install().unwrap();
        metrics::counter!("DeliverySuccessCount", "topic" => "orders").increment(3);
        metrics::histogram!("DestinationProcessingDurationInMs").record(3.0);
        let text = install().unwrap().render();
        assert!(text.contains("DeliverySuccessCount{topic=\"orders\"} 3"), "{text}");
        assert!(text.contains("DestinationProcessingDurationInMs_bucket{le=\"5\"} 1"), "{text}");
        handle.run_upkeep();
    }
}
