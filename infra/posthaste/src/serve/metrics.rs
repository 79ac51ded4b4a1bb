//! The metrics of the process, as Prometheus text. The functions name them.

mod exposition;
mod series;
mod totals;

use std::sync::OnceLock;

use metrics_exporter_prometheus::BuildError;
use posthaste_ports::ObjectStore;
use posthaste_services::topics::topic_names;

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

/// The text of all series. Series of topics that are no longer in the state store are forgotten;
/// while the store does not answer, none are.
pub async fn text(series: &Series, state: &impl ObjectStore) -> String {
    let topics = topic_names(state).await;
    if let Err(error) = &topics {
        tracing::warn!(
            error = error as &dyn std::error::Error,
            "topics not listed, no metrics forgotten"
        );
    }
    series.render(|topic| {
        topics
            .as_ref()
            .map_or(true, |topics| topics.contains(topic))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_they_are() {
        let series = install().unwrap();
        metrics::counter!("DeliverySuccessCount", "topic" => "orders").increment(3);
        metrics::histogram!("DestinationProcessingDurationInMs").record(3.0);
        let text = install().unwrap().render(|_| true);
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
