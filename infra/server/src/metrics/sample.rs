//! A series and its values.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_core::model::metric::{METRICS, MetricKind};

use super::distribution::GrowingHistogram;
use super::exposition::{MetricValue, labels_text};
use super::owner::SeriesOwner;

/// A series, in the order of the page.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SampleId {
    /// The place of its metric in the table.
    pub(super) metric: usize,
    pub(super) labels: Vec<(String, String)>,
}

/// The values of a series.
pub(super) struct MeasuredSeries {
    /// The owner with which it is forgotten; `None` if it stays.
    pub(super) owner: Option<SeriesOwner>,
    /// The labels as they are written.
    pub(super) labels: Arc<str>,
    pub(super) value: SeriesValue,
    /// Series of topics that lost theirs. Whoever was just measuring still adds to them.
    pub(super) folded: Vec<SeriesValue>,
}

/// The value that a series measures.
#[derive(Clone)]
pub(super) enum SeriesValue {
    Counter(Arc<AtomicU64>),
    /// The bits of a number.
    Gauge(Arc<AtomicU64>),
    Histogram(Arc<GrowingHistogram>),
}

impl MeasuredSeries {
    pub(super) fn new(id: &SampleId, owner: Option<SeriesOwner>) -> Self {
        let labels = id.labels.iter();
        Self {
            owner,
            labels: labels_text(labels.map(|(name, value)| (name.as_str(), value.as_str()))),
            value: SeriesValue::new(METRICS[id.metric].kind),
            folded: Vec::new(),
        }
    }

    pub(super) fn read(&self) -> MetricValue {
        let mut value = self.value.read();
        for more in &self.folded {
            match (&mut value, more.read()) {
                (MetricValue::Count(sum), MetricValue::Count(more)) => *sum += more,
                (MetricValue::Times(sum), MetricValue::Times(more)) => sum.add(&more),
                // No gauge that is measured has a topic.
                _ => {}
            }
        }
        value
    }
}

impl SeriesValue {
    fn new(kind: MetricKind) -> Self {
        match kind {
            MetricKind::Counter => Self::Counter(Arc::default()),
            MetricKind::Gauge => Self::Gauge(Arc::default()),
            MetricKind::Histogram => Self::Histogram(Arc::default()),
        }
    }

    fn read(&self) -> MetricValue {
        match self {
            Self::Counter(count) => MetricValue::Count(count.load(Ordering::Relaxed)),
            Self::Gauge(bits) => MetricValue::Number(f64::from_bits(bits.load(Ordering::Relaxed))),
            Self::Histogram(distribution) => MetricValue::Times(distribution.read()),
        }
    }
}
