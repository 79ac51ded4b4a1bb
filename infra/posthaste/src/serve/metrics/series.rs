//! The series of the process: those of each topic and of each subscription in a recorder of their
//! own, so that they can be forgotten with it, and no more in all than [`SERIES_MAX`]. The exporter
//! itself forgets nothing by name.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use parking_lot::Mutex;
use posthaste_deliver::UNANSWERED;

use super::owner::Owner;
use super::totals::Totals;

/// Most series at once; a histogram is one. At about a kilobyte of text each that is a scrape of 20
/// MB.
pub const SERIES_MAX: usize = 20_000;

/// Clean-ups in a row without a measurement after which an owner that is gone is forgotten also
/// where nobody asked for its series. A clean-up comes every five seconds.
const IDLE_UPKEEPS_MIN: u32 = 12;

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
    /// Series of no owner.
    others: Part,
    owned: BTreeMap<Owner, Part>,
    counters: Handles<Counter>,
    gauges: Handles<Gauge>,
    histograms: Handles<Times>,
}

/// Some of the series, in a recorder of their own.
struct Part {
    recorder: PrometheusRecorder,
    touched: Arc<Touched>,
    /// Clean-ups since the last measurement.
    idle_upkeeps: u32,
}

/// Whether something was measured.
#[derive(Debug, Default)]
struct Touched {
    /// Since the series were shown last.
    since_shown: AtomicBool,
    /// Since the last clean-up.
    since_upkeep: AtomicBool,
}

impl Touched {
    fn touch(&self) {
        self.since_shown.store(true, Ordering::Relaxed);
        self.since_upkeep.store(true, Ordering::Relaxed);
    }
}

/// The handles of all series of one kind: every delivery asks for several.
type Handles<T> = HashMap<Key, Handle<T>>;

struct Handle<T> {
    series: T,
    touched: Arc<Touched>,
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
            owned: BTreeMap::new(),
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

    /// The owners of which nothing was measured since their series were shown. If they are gone,
    /// they can be forgotten: the events that a deletion ends are counted after it, and are shown
    /// a last time.
    pub(super) fn shown_owners(&self) -> Vec<Owner> {
        self.owners(|part| !part.touched.since_shown.load(Ordering::Relaxed))
    }

    /// The owners of which nothing was measured for a minute, once half of all series are taken:
    /// without them there is room for others, also where nobody asks for metrics.
    pub(super) fn idle_owners(&self) -> Vec<Owner> {
        if self.0.state.lock().count() < self.0.series_max / 2 {
            return Vec::new();
        }
        self.owners(|part| part.idle_upkeeps >= IDLE_UPKEEPS_MIN)
    }

    fn owners(&self, is_wanted: impl Fn(&Part) -> bool) -> Vec<Owner> {
        let state = self.0.state.lock();
        let wanted = state.owned.iter().filter(|(_, part)| is_wanted(part));
        wanted.map(|(owner, _)| owner.clone()).collect()
    }

    /// Forgets the series of owners that are gone.
    pub(super) fn forget(&self, gone: &BTreeSet<Owner>) {
        if !gone.is_empty() {
            self.0.state.lock().forget(gone);
        }
    }

    /// All series, to be shown without the lock, because every measurement waits for it.
    pub(super) fn to_show(&self) -> Vec<PrometheusHandle> {
        let state = self.0.state.lock();
        let show = |part: &Part| {
            part.touched.since_shown.store(false, Ordering::Relaxed);
            part.recorder.handle()
        };
        state.parts().map(show).collect()
    }

    /// Keeps histograms small. Call it every five seconds. Blocks.
    pub fn run_upkeep(&self) {
        let mut state = self.0.state.lock();
        state.owned.values_mut().for_each(Part::count_upkeep);
        let handles: Vec<_> = state.parts().map(|part| part.recorder.handle()).collect();
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
            known.touched.touch();
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
        let (series, touched) = (register(&part.recorder), Arc::clone(&part.touched));
        touched.touch();
        let handle = Handle {
            series: series.clone(),
            touched,
        };
        kind(&mut state).insert(key.clone(), handle);
        Some(series)
    }
}

impl State {
    fn count(&self) -> usize {
        self.counters.len() + self.gauges.len() + self.histograms.len()
    }

    fn parts(&self) -> impl Iterator<Item = &Part> {
        std::iter::once(&self.others).chain(self.owned.values())
    }

    /// The part of a series. `None` if it cannot be made.
    fn part(&mut self, key: &Key) -> Option<&Part> {
        let Some(owner) = Owner::of(key) else {
            return Some(&self.others);
        };
        if !self.owned.contains_key(&owner) {
            self.owned.insert(owner.clone(), Part::new().ok()?);
        }
        self.owned.get(&owner)
    }

    fn forget(&mut self, gone: &BTreeSet<Owner>) {
        self.owned.retain(|owner, _| !gone.contains(owner));
        let owned = &self.owned;
        let is_kept = |key: &Key| Owner::of(key).is_none_or(|owner| owned.contains_key(&owner));
        self.counters.retain(|key, _| is_kept(key));
        self.gauges.retain(|key, _| is_kept(key));
        self.histograms.retain(|key, _| is_kept(key));
    }
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
            touched: Arc::default(),
            idle_upkeeps: 0,
        })
    }

    fn count_upkeep(&mut self) {
        let was_touched = self.touched.since_upkeep.swap(false, Ordering::Relaxed);
        self.idle_upkeeps = if was_touched {
            0
        } else {
            self.idle_upkeeps.saturating_add(1)
        };
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
