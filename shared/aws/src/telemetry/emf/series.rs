//! Series: the values of one metric with one set of labels between two drains.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{GaugeFn, HistogramFn};
use parking_lot::Mutex;

#[derive(Debug, PartialEq)]
pub(super) enum Measured {
    /// Number of occurrences.
    Count(u64),
    /// Each value in order; at least one, all finite.
    Values(Vec<f64>),
}

/// A series that can be emptied.
pub(super) trait Series {
    /// Takes the values since the last time; `None` if there are none.
    fn take(&self) -> Option<Measured>;
}

/// The values of a histogram, or those that a gauge was set to: between two samples of a monitor lies a
/// minute's peak, which the last value alone would hide. Bounded by what one invocation does.
#[derive(Debug, Default)]
pub(super) struct Samples(Mutex<SamplesState>);

#[derive(Debug, Default)]
struct SamplesState {
    /// The value that a gauge's next step starts from. A gauge without a holder starts from zero again after
    /// a drain.
    last: f64,
    values: Vec<f64>,
}

impl Series for AtomicU64 {
    fn take(&self) -> Option<Measured> {
        match self.swap(0, Ordering::AcqRel) {
            0 => None,
            count => Some(Measured::Count(count)),
        }
    }
}

impl Series for Samples {
    fn take(&self) -> Option<Measured> {
        let values = mem::take(&mut self.0.lock().values);
        (!values.is_empty()).then_some(Measured::Values(values))
    }
}

impl Samples {
    fn push(&self, next: impl FnOnce(f64) -> f64) {
        let mut state = self.0.lock();
        let value = next(state.last);
        // JSON has no infinity, and CloudWatch refuses NaN.
        if value.is_finite() {
            state.last = value;
            state.values.push(value);
        }
    }
}

impl HistogramFn for Samples {
    fn record(&self, value: f64) {
        self.push(|_| value);
    }
}

impl GaugeFn for Samples {
    fn increment(&self, value: f64) {
        self.push(|last| last + value);
    }

    fn decrement(&self, value: f64) {
        self.push(|last| last - value);
    }

    fn set(&self, value: f64) {
        self.push(|_| value);
    }
}
