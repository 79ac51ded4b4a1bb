//! The series of the process: those of each topic in a recorder of their own, so that they can be forgotten
//! with it, and no more in all than [`SERIES_MAX`]. The exporter itself forgets nothing by name.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use parking_lot::Mutex;

use super::exposition;
use super::totals::Totals;

/// Most series at once; a histogram is one. At about a kilobyte of text each that is a scrape of 20 MB.
pub const SERIES_MAX: usize = 20_000;

/// The label with the topic of a series.
const TOPIC: &str = "topic";

/// Metric: measurements without a place, because there were too many series.
const REFUSED: &str = "MetricSeriesRefusedCount";

/// Upper bounds of the histograms whose names end in `InMs`, in milliseconds: from a memory copy to the
/// longest attempt.
const MILLISECONDS_BUCKETS: [f64; 14] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 30_000.0, 60_000.0];

/// All series of the process; clones share them.
#[derive(Clone)]
pub struct Series(Arc<Shared>);

struct Shared {
    series_max: usize,
    totals: Arc<Totals>,
    state: Mutex<State>,
}

struct State {
    /// Series of no topic.
    others: Part,
    /// Series by topic, in lower case.
    topics: BTreeMap<String, Part>,
    count: usize,
}

/// Some of the series, in a recorder of their own.
struct Part {
    recorder: PrometheusRecorder,
    keys: HashSet<Key>,
    /// True if something was measured since the series were shown last.
    is_touched: bool,
}

impl Series {
    /// An empty set for at most `series_max` series.
    pub fn new(series_max: usize) -> Result<Self, BuildError> {
        let state = State { others: Part::new()?, topics: BTreeMap::new(), count: 0 };
        Ok(Self(Arc::new(Shared { series_max, totals: Arc::default(), state: Mutex::new(state) })))
    }

    /// Sums over all labels.
    pub fn totals(&self) -> Arc<Totals> {
        Arc::clone(&self.0.totals)
    }

    /// The text of all series. The series of a topic that `is_there` denies are shown a last time and then
    /// forgotten, because the events that a deletion ends are counted after it.
    pub fn render(&self, is_there: impl Fn(&str) -> bool) -> String {
        exposition::merge(self.to_show(is_there).iter().map(PrometheusHandle::render))
    }

    /// Forgets the series of deleted topics. The others are shown without the lock, because every measurement
    /// waits for it.
    fn to_show(&self, is_there: impl Fn(&str) -> bool) -> Vec<PrometheusHandle> {
        let mut state = self.0.state.lock();
        state.topics.retain(|topic, part| part.is_touched || is_there(topic));
        state.count =
            state.others.keys.len() + state.topics.values().map(|part| part.keys.len()).sum::<usize>();
        let State { others, topics, .. } = &mut *state;
        let parts = std::iter::once(others).chain(topics.values_mut());
        let show = |part: &mut Part| {
            part.is_touched = false;
            part.recorder.handle()
        };
        parts.map(show).collect()
    }

    /// Keeps histograms small. Call it from time to time.
    pub fn run_upkeep(&self) {
        let state = self.0.state.lock();
        let parts = std::iter::once(&state.others).chain(state.topics.values());
        let handles: Vec<_> = parts.map(|part| part.recorder.handle()).collect();
        drop(state);
        handles.iter().for_each(PrometheusHandle::run_upkeep);
    }

    /// Registers a series where it belongs; `None` where there are too many.
    fn register<T>(&self, key: &Key, register: impl FnOnce(&PrometheusRecorder) -> T) -> Option<T> {
        let topic = key.labels().find(|label| label.key() == TOPIC).map(metrics::Label::value);
        let topic = topic.map(str::to_ascii_lowercase);
        let mut state = self.0.state.lock();
        let State { others, topics, count } = &mut *state;
        let part = topic.as_ref().map_or(Some(&*others), |topic| topics.get(topic));
        if !part.is_some_and(|part| part.keys.contains(key)) {
            if *count >= self.0.series_max {
                others.recorder.register_counter(&Key::from_static_name(REFUSED), &METADATA).increment(1);
                return None;
            }
            *count += 1;
        }
        let part = match topic {
            None => others,
            Some(topic) => match topics.entry(topic) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(Part::new().ok()?),
            },
        };
        part.is_touched = true;
        if !part.keys.contains(key) {
            part.keys.insert(key.clone());
        }
        Some(register(&part.recorder))
    }
}

/// Metadata that the exporter's interface needs and its code does not read.
const METADATA: Metadata<'static> = Metadata::new(module_path!(), metrics::Level::INFO, Some(module_path!()));

impl Part {
    fn new() -> Result<Self, BuildError> {
        let milliseconds = Matcher::Suffix("InMs".to_owned());
        let builder = PrometheusBuilder::new().set_buckets_for_metric(milliseconds, &MILLISECONDS_BUCKETS)?;
        Ok(Self { recorder: builder.build_recorder(), keys: HashSet::new(), is_touched: false })
    }
}

/// Units follow from names (`InMs`), so descriptions are not kept.
impl Recorder for Series {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let counter = self.register(key, |recorder| recorder.register_counter(key, metadata));
        self.0.totals.counter(key.name(), counter.unwrap_or_else(Counter::noop))
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.register(key, |recorder| recorder.register_gauge(key, metadata)).unwrap_or_else(Gauge::noop)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        let histogram = self.register(key, |recorder| recorder.register_histogram(key, metadata));
        self.0.totals.histogram(key.name(), metadata, histogram.unwrap_or_else(Histogram::noop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(series: &Series, topic: &str) {
        metrics::with_local_recorder(series, || {
            metrics::counter!("PublishSuccessCount", "topic" => topic.to_owned()).increment(1);
        });
    }

    /// The samples without their headers.
    fn samples(text: &str) -> Vec<&str> {
        text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
    }

    #[test]
    fn series_of_a_topic_that_is_gone_are_forgotten_once_they_were_shown() {
        let series = Series::new(SERIES_MAX).unwrap();
        count(&series, "Orders");
        count(&series, "bills");
        metrics::with_local_recorder(&series, || metrics::gauge!("PressureTarpitInMs").set(1.0));
        assert_eq!(samples(&series.render(|_| false)).len(), 3);
        let text = series.render(|topic| topic == "bills");
        assert_eq!(samples(&text), ["PressureTarpitInMs 1", r#"PublishSuccessCount{topic="bills"} 1"#]);
        // A topic that is made again begins at 0.
        count(&series, "orders");
        assert!(series.render(|_| true).contains(r#"PublishSuccessCount{topic="orders"} 1"#));
    }

    #[test]
    fn there_are_no_more_series_than_the_bound_and_what_has_no_place_is_counted() {
        let series = Series::new(3).unwrap();
        for n in 0..10 {
            count(&series, &format!("t{n}"));
            count(&series, "t0");
        }
        let text = series.render(|_| true);
        let shown = samples(&text);
        assert_eq!(shown.len(), 4, "{shown:?}");
        assert!(text.contains("MetricSeriesRefusedCount 7"), "{text}");
        assert!(text.contains(r#"PublishSuccessCount{topic="t0"} 11"#), "{text}");
        // There is room again when topics are gone.
        series.render(|_| false);
        count(&series, "new");
        assert!(series.render(|_| true).contains(r#"topic="new""#));
    }
}
