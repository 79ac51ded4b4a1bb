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
pub use form::Form;
pub use page::{PageError, Pages};
pub use series::Series;
pub use standing::Standing;
pub use totals::{Totaled, Totals};

/// One recorder per process, whatever runs in it.
static SERIES: OnceLock<Series> = OnceLock::new();

/// Installs the recorder, the first time, and returns its series. A process that runs several
/// servers, as tests do, has those of the first.
pub fn install(by: SeriesBy) -> Series {
    if let Some(series) = SERIES.get() {
        return series.clone();
    }
    let series = Series::new(by);
    if metrics::set_global_recorder(series.clone()).is_ok() {
        return SERIES.get_or_init(|| series).clone();
    }
    // Another recorder was first, such as that of another test. Only the first one gets
    // measurements.
    SERIES.get().cloned().unwrap_or(series)
}
