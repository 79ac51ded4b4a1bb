//! The metrics of the process, as Prometheus text. The functions name them.

mod exposition;
mod owner;
mod page;
mod series;
mod totals;

use std::sync::OnceLock;

use metrics_exporter_prometheus::BuildError;

pub use page::{PageError, Pages};
pub use series::{SERIES_MAX, Series};
pub use totals::{Totaled, Totals};

/// One recorder per process, whatever runs in it.
static SERIES: OnceLock<Series> = OnceLock::new();

/// Installs the recorder, the first time, and returns its series.
pub fn install() -> Result<Series, BuildError> {
    if let Some(series) = SERIES.get() {
        return Ok(series.clone());
    }
    let series = Series::new(SERIES_MAX)?;
    if metrics::set_global_recorder(series.clone()).is_ok() {
        return Ok(SERIES.get_or_init(|| series).clone());
    }
    // Another recorder was first, such as that of another test. Only the first one gets
    // measurements.
    Ok(SERIES.get().cloned().unwrap_or(series))
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusHandle;

    use super::*;

    #[test]
    fn names_are_kept_as_they_are() {
        let series = install().unwrap();
        metrics::counter!("DeliverySuccessCount", "topic" => "orders").increment(3);
        metrics::histogram!("DestinationProcessingDurationInMs").record(3.0);
        let shown = install().unwrap().to_show();
        let text: String = shown.iter().map(PrometheusHandle::render).collect();
        assert!(
            text.contains("DeliverySuccessCount{topic=\"orders\"} 3"),
            "{text}"
        );
        assert!(
            text.contains("DestinationProcessingDurationInMs_bucket{le=\"5\"} 1"),
            "{text}"
        );
        series.run_upkeep();
    }
}
