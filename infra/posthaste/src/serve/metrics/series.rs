//! The series of the process: those of each topic in a recorder of their own, so that they can be
//! forgotten with it, and no more in all than [`SERIES_MAX`]. The exporter itself forgets nothing
//! by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Label, Metadata, Recorder, SharedString, Unit,
};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use parking_lot::Mutex;
use posthaste_deliver::UNANSWERED;

use super::exposition;
use super::totals::Totals;

/// Most series at once; a histogram is one. At about a kilobyte of text each that is a scrape of 20
/// MB.
pub const SERIES_MAX: usize = 20_000;

/// The label with the topic of a series.
const TOPIC: &str = "topic";

/// Metric: measurements without a place, because there were too many series.
const REFUSED: &str = "MetricSeriesRefusedCount";

/// Upper bounds of the histograms whose names end in `InMs`, in milliseconds: from a memory copy to
/// the longest attempt.
const MILLISECONDS_BUCKETS: [f64; 14] = [
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 5_000.0, 10_000.0, 30_000.0,
    60_000.0,
];

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
    counters: Handles<Counter>,
    gauges: Handles<Gauge>,
    histograms: Handles<Times>,
}

/// Some of the series, in a recorder of their own.
struct Part {
    recorder: PrometheusRecorder,
    /// True if something was measured since the series were shown last.
    is_touched: Arc<AtomicBool>,
}

/// The handles of all series of one kind: every delivery asks for several.
type Handles<T> = HashMap<Key, Handle<T>>;

struct Handle<T> {
    series: T,
    is_touched: Arc<AtomicBool>,
}

/// The two handles of a histogram.
#[derive(Clone)]
struct Times {
    series: Histogram,
    /// Adds to the sum over all labels, too, if there is one.
    summed: Histogram,
}

impl Series {
    /// An empty set for at most `series_max` series.
    pub fn new(series_max: usize) -> Result<Self, BuildError> {
        let state = State {
            others: Part::new()?,
            topics: BTreeMap::new(),
            counters: Handles::default(),
            gauges: Handles::default(),
            histograms: Handles::default(),
        };
        Ok(Self(Arc::new(Shared {
            series_max,
            totals: Arc::default(),
            state: Mutex::new(state),
        })))
    }

    /// Sums over all labels.
    pub fn totals(&self) -> Arc<Totals> {
        Arc::clone(&self.0.totals)
    }

    /// The text of all series. The series of a topic that `is_there` denies are shown a last time
    /// and then forgotten, because the events that a deletion ends are counted after it.
    pub fn render(&self, is_there: impl Fn(&str) -> bool) -> String {
        exposition::merge(self.to_show(is_there).iter().map(PrometheusHandle::render))
    }

    /// Forgets the series of deleted topics. The others are shown without the lock, because every
    /// measurement waits for it.
    fn to_show(&self, is_there: impl Fn(&str) -> bool) -> Vec<PrometheusHandle> {
        let mut state = self.0.state.lock();
        state.forget_topics(is_there);
        let show = |part: &Part| {
            part.is_touched.store(false, Ordering::Relaxed);
            part.recorder.handle()
        };
        std::iter::once(&state.others)
            .chain(state.topics.values())
            .map(show)
            .collect()
    }

    /// Keeps histograms small. Call it from time to time.
    pub fn run_upkeep(&self) {
        let state = self.0.state.lock();
        let parts = std::iter::once(&state.others).chain(state.topics.values());
        let handles: Vec<_> = parts.map(|part| part.recorder.handle()).collect();
        drop(state);
        handles.iter().for_each(PrometheusHandle::run_upkeep);
    }

    /// The handle of a series, which is registered where it belongs if it is new; `None` where
    /// there are too many.
    fn handle<T: Clone>(
        &self,
        key: &Key,
        kind: fn(&mut State) -> &mut Handles<T>,
        register: impl FnOnce(&PrometheusRecorder) -> T,
    ) -> Option<T> {
        let mut state = self.0.state.lock();
        if let Some(known) = kind(&mut state).get(key) {
            known.is_touched.store(true, Ordering::Relaxed);
            return Some(known.series.clone());
        }
        if state.count() >= self.0.series_max {
            let refused = Key::from_static_name(REFUSED);
            state
                .others
                .recorder
                .register_counter(&refused, &METADATA)
                .increment(1);
            return None;
        }
        let part = state.part(key)?;
        let (series, is_touched) = (register(&part.recorder), Arc::clone(&part.is_touched));
        is_touched.store(true, Ordering::Relaxed);
        let handle = Handle {
            series: series.clone(),
            is_touched,
        };
        kind(&mut state).insert(key.clone(), handle);
        Some(series)
    }
}

impl State {
    fn count(&self) -> usize {
        self.counters.len() + self.gauges.len() + self.histograms.len()
    }

    /// The part of a series. `None` if it cannot be made.
    fn part(&mut self, key: &Key) -> Option<&Part> {
        let Some(topic) = topic_of(key) else {
            return Some(&self.others);
        };
        if !self.topics.contains_key(&topic) {
            self.topics.insert(topic.clone(), Part::new().ok()?);
        }
        self.topics.get(&topic)
    }

    /// Forgets topics that `is_there` denies, if nothing was measured since they were shown.
    fn forget_topics(&mut self, is_there: impl Fn(&str) -> bool) {
        let before = self.topics.len();
        self.topics
            .retain(|topic, part| part.is_touched.load(Ordering::Relaxed) || is_there(topic));
        if self.topics.len() == before {
            return;
        }
        let topics = &self.topics;
        let is_kept = |key: &Key| topic_of(key).is_none_or(|topic| topics.contains_key(&topic));
        self.counters.retain(|key, _| is_kept(key));
        self.gauges.retain(|key, _| is_kept(key));
        self.histograms.retain(|key, _| is_kept(key));
    }
}

/// The topic of a series, in lower case.
fn topic_of(key: &Key) -> Option<String> {
    key.labels()
        .find(|label| label.key() == TOPIC)
        .map(Label::value)
        .map(str::to_ascii_lowercase)
}

/// Metadata that the exporter's interface needs and its code does not read.
const METADATA: Metadata<'static> =
    Metadata::new(module_path!(), metrics::Level::INFO, Some(module_path!()));

impl Part {
    fn new() -> Result<Self, BuildError> {
        let milliseconds = Matcher::Suffix("InMs".to_owned());
        let builder =
            PrometheusBuilder::new().set_buckets_for_metric(milliseconds, &MILLISECONDS_BUCKETS)?;
        Ok(Self {
            recorder: builder.build_recorder(),
            is_touched: Arc::default(),
        })
    }
}

/// Units follow from names (`InMs`), so descriptions are not kept.
impl Recorder for Series {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        let totals = &self.0.totals;
        let register = |recorder: &PrometheusRecorder| {
            totals.counter(key.name(), recorder.register_counter(key, metadata))
        };
        let counter = self.handle(key, |state| &mut state.counters, register);
        counter.unwrap_or_else(|| totals.counter(key.name(), Counter::noop()))
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        let register = |recorder: &PrometheusRecorder| recorder.register_gauge(key, metadata);
        self.handle(key, |state| &mut state.gauges, register)
            .unwrap_or_else(Gauge::noop)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        let times = |series: Histogram| {
            let summed = self.0.totals.histogram(key.name(), series.clone());
            Times { series, summed }
        };
        let register =
            |recorder: &PrometheusRecorder| times(recorder.register_histogram(key, metadata));
        let known = self.handle(key, |state| &mut state.histograms, register);
        let Times { series, summed } = known.unwrap_or_else(|| times(Histogram::noop()));
        // A request without an answer has no time of its answer.
        if metadata.target() == UNANSWERED {
            series
        } else {
            summed
        }
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
        text.lines()
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect()
    }

    #[test]
    fn series_of_a_topic_that_is_gone_are_forgotten_once_they_were_shown() {
        let series = Series::new(SERIES_MAX).unwrap();
        count(&series, "Orders");
        count(&series, "bills");
        metrics::with_local_recorder(&series, || metrics::gauge!("PressureTarpitInMs").set(1.0));
        assert_eq!(samples(&series.render(|_| false)).len(), 3);
        let text = series.render(|topic| topic == "bills");
        assert_eq!(
            samples(&text),
            [
                "PressureTarpitInMs 1",
                r#"PublishSuccessCount{topic="bills"} 1"#
            ]
        );
        // A topic that is made again begins at 0.
        count(&series, "orders");
        assert!(
            series
                .render(|_| true)
                .contains(r#"PublishSuccessCount{topic="orders"} 1"#)
        );
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
        assert!(
            text.contains(r#"PublishSuccessCount{topic="t0"} 11"#),
            "{text}"
        );
        // There is room again when topics are gone.
        series.render(|_| false);
        count(&series, "new");
        assert!(series.render(|_| true).contains(r#"topic="new""#));
    }
}
