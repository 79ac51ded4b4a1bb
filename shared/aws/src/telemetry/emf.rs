//! Metrics in CloudWatch's embedded metric format: log lines that CloudWatch reads metrics from.
//! The functions count through the `metrics` facade; no metric is sent anywhere else.
//! <https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format.html>
//!
//! The crate `metrics_cloudwatch_embedded` is not used: it keeps 100 values of a histogram between
//! flushes and drops the others, writes every gauge again with every flush, and remembers every
//! label that was ever seen.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit,
};
use parking_lot::Mutex;
use posthaste_core::model::Timestamp;
use posthaste_core::model::metric::STATUS_CLASS;

use super::copies::{COPIES_MAX, CopiedSeries, CopiedValue};
use super::metrics_by::{MetricsBy, is_watched};
use super::pace::{DrainPart, WritePace};

mod document;
pub(super) mod series;

use document::DocumentWriter;
use series::{EmfSeries, GaugeSamples, HistogramBuckets, MeasuredValues};

/// A recorder that keeps what is measured until it is drained.
#[derive(Debug)]
pub(super) struct EmfRecorder {
    namespace: String,
    by: MetricsBy,
    pace: Mutex<WritePace>,
    state: Mutex<EmfState>,
    /// Copies for a collector; `None` without one.
    copies: Mutex<Option<Vec<CopiedSeries>>>,
}

/// The metrics that were measured, by their labels and dimensions.
type MeasuredMetrics = BTreeMap<(Vec<Label>, MetricsBy), Vec<(KeyName, MeasuredValues)>>;

/// Series with values since the last drain, and series whose handle is still held.
#[derive(Debug, Default)]
struct EmfState {
    counters: HashMap<Key, Arc<AtomicU64>>,
    gauges: HashMap<Key, Arc<GaugeSamples>>,
    histograms: HashMap<Key, Arc<HistogramBuckets>>,
}

impl EmfRecorder {
    /// A recorder for metrics in `namespace`.
    pub(super) fn new(namespace: &str, by: MetricsBy) -> Self {
        Self {
            namespace: namespace.to_owned(),
            by,
            pace: Mutex::default(),
            state: Mutex::default(),
            copies: Mutex::default(),
        }
    }

    /// An invocation begins: the lines that are to be written before it.
    pub(super) fn begin_invocation(&self, now: Timestamp) -> Vec<u8> {
        let kept_at = self.pace.lock().begin_invocation(now);
        kept_at
            .map(|at| self.drain_lines(at, DrainPart::All))
            .unwrap_or_default()
    }

    /// An invocation ends: the lines that are to be written before its response.
    pub(super) fn end_invocation(&self, now: Timestamp) -> Vec<u8> {
        let part = self.pace.lock().end_invocation(now);
        self.drain_lines(now, part)
    }

    /// Takes the values since the last drain, as lines of JSON. Without values there is no line.
    ///
    /// There is a document for each set of labels and dimensions. Labels that are no dimensions are
    /// properties: they can be searched in the log, and CloudWatch adds up documents that differ in
    /// nothing else.
    fn drain_lines(&self, now: Timestamp, part: DrainPart) -> Vec<u8> {
        let mut documents = DocumentWriter::new(&self.namespace, now);
        for ((labels, by), mut metrics) in self.take_measured(part) {
            metrics.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.keep_copy(&labels, &metrics);
            documents.write_metrics(by, &labels, &metrics);
        }
        documents.into_lines()
    }

    /// Keeps copies from now on.
    pub(super) fn keep_copies(&self) {
        self.copies.lock().get_or_insert_default();
    }

    /// Takes the copies since the last time.
    pub(super) fn take_copies(&self) -> Vec<CopiedSeries> {
        let mut copies = self.copies.lock();
        copies.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn keep_copy(&self, labels: &[Label], metrics: &[(KeyName, MeasuredValues)]) {
        let mut kept = self.copies.lock();
        let Some(kept) = kept.as_mut() else {
            return;
        };
        let room = COPIES_MAX.saturating_sub(kept.len());
        let labels = labels.iter();
        let labels: Vec<_> = labels
            .map(|it| (it.key().to_owned(), it.value().to_owned()))
            .collect();
        let copied = metrics.iter().filter_map(|(name, measured)| {
            Some(CopiedSeries {
                name: name.as_str().to_owned(),
                labels: labels.clone(),
                value: CopiedValue::from_measured(measured)?,
            })
        });
        kept.extend(copied.take(room));
    }

    fn take_measured(&self, part: DrainPart) -> MeasuredMetrics {
        let mut measured = MeasuredMetrics::new();
        let mut state = self.state.lock();
        let is_all = part == DrainPart::All;
        take_series(
            &mut state.counters,
            |name| is_all || is_watched(name),
            self.by,
            &mut measured,
        );
        take_series(&mut state.gauges, |_| true, self.by, &mut measured);
        take_series(&mut state.histograms, |_| is_all, self.by, &mut measured);
        measured
    }
}

/// Takes the values of the series with these names, and forgets those without a handle: names and
/// labels that do not come back must not keep their memory.
fn take_series<S: EmfSeries>(
    series: &mut HashMap<Key, Arc<S>>,
    is_wanted: impl Fn(&str) -> bool,
    by: MetricsBy,
    measured: &mut MeasuredMetrics,
) {
    series.retain(|key, one| {
        if !is_wanted(key.name()) {
            return true;
        }
        // Asked before the values are taken: a holder may add to it until it is dropped.
        let is_held = Arc::strong_count(one) > 1;
        if let Some(values) = one.take_values() {
            let (name, labels) = key.clone().into_parts();
            let by = by.for_metric(name.as_str());
            measured
                .entry((labels, by))
                .or_default()
                .push((name, values));
        }
        is_held || one.is_needed()
    });
}

fn get_or_create<S: Default>(series: &mut HashMap<Key, Arc<S>>, key: &Key) -> Arc<S> {
    let key = billed_key(key);
    if let Some(one) = series.get(&*key) {
        return Arc::clone(one);
    }
    Arc::clone(series.entry(key.into_owned()).or_default())
}

/// A key without the label that only `serve` shows.
fn billed_key(key: &Key) -> Cow<'_, Key> {
    if key.labels().all(is_billed) {
        return Cow::Borrowed(key);
    }
    let labels = key.labels().filter(|label| is_billed(label));
    let labels: Vec<_> = labels.cloned().collect();
    Cow::Owned(Key::from_parts(key.name_shared(), labels))
}

fn is_billed(label: &Label) -> bool {
    label.key() != STATUS_CLASS
}

/// Units are in the table of metrics, so descriptions are not kept.
impl Recorder for EmfRecorder {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(get_or_create(&mut self.state.lock().counters, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(get_or_create(&mut self.state.lock().gauges, key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(get_or_create(&mut self.state.lock().histograms, key))
    }
}

#[cfg(test)]
mod tests;
