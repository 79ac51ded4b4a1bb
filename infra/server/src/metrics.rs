//! The metrics of the process, as text for Prometheus. The functions measure them, and the table in
//! `core` says what they are called.

mod by;
mod distribution;
mod exposition;
mod form;
mod owner;
mod page;
mod points;
mod sample;
mod series;
mod standing;
mod totals;

use std::sync::OnceLock;

pub use by::SeriesBy;
pub use form::PageFormat;
pub use page::{MetricsPages, PageError};
pub use series::MetricSeries;
pub use standing::LookedUpMetrics;
pub use totals::{MetricTotals, TotalsSnapshot};

/// One recorder per process, whatever runs in it.
static SERIES: OnceLock<MetricSeries> = OnceLock::new();

/// Installs the recorder, the first time, and returns its series. A process that runs several
/// servers, as tests do, has those of the first.
pub fn install_recorder(by: SeriesBy) -> MetricSeries {
    if let Some(series) = SERIES.get() {
        return series.clone();
    }
    let series = MetricSeries::new(by);
    if metrics::set_global_recorder(series.clone()).is_ok() {
        return SERIES.get_or_init(|| series).clone();
    }
    // Another recorder was first, such as that of another test. Only the first one gets
    // measurements.
    SERIES.get().cloned().unwrap_or(series)
}
