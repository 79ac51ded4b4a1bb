//! The series that are measured. Some topics or subscriptions have series of their own, which are
//! forgotten with them. All others share those of [`OTHER`]: so there is a bound, and a sum over
//! all series is right.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use parking_lot::Mutex;
use posthaste_core::model::TopicName;
use posthaste_core::model::metric::{self, METRICS, MetricRow, MetricSource, SUBSCRIPTION, TOPIC};
use posthaste_deliver::UNANSWERED;

use super::by::{OTHER, SeriesBy};
use super::exposition::MetricLine;
use super::owner::SeriesOwner;
use super::sample::{MeasuredSeries, SampleId, SeriesValue};
use super::totals::MetricTotals;

/// Most topics that have series of their own without a setting: with two histograms and some
/// counters each, at about 4 KB of text, the page stays below 1 MB.
pub(super) const TOPICS_MAX: usize = 200;

/// Topics that keep series of their own once there were more.
pub(super) const TOPICS_KEPT: usize = 100;

/// Most series where a setting asks for those of every topic or subscription; a histogram is one.
/// At about a kilobyte of text each that is a scrape of 20 MB.
pub(super) const SERIES_MAX: usize = 20_000;

/// Most keys whose series is remembered, with some 200 bytes each. Looking a series up takes about
/// a microsecond.
const KNOWN_MAX: usize = 50_000;

/// Clean-ups in a row without a measurement after which an owner that is gone is forgotten also
/// where nobody asked for its series. A clean-up comes every five seconds.
const IDLE_UPKEEPS_MIN: u32 = 12;

/// All series of the process; clones share them.
#[derive(Clone)]
pub struct MetricSeries(Arc<SharedSeries>);

struct SharedSeries {
    by: SeriesBy,
    totals: Arc<MetricTotals>,
    state: Mutex<SeriesState>,
}

struct SeriesState {
    by: SeriesBy,
    /// Most topics that have series of their own, where that is the bound.
    topics_max: usize,
    /// The owners that have series of their own.
    places: BTreeMap<SeriesOwner, OwnerPlace>,
    /// The number of owners that have come.
    arrivals: u64,
    samples: BTreeMap<SampleId, MeasuredSeries>,
    /// The series of keys as they are measured: every delivery asks for several.
    known: HashMap<Key, KnownSeries>,
}

/// The place of an owner among those that have series of their own.
struct OwnerPlace {
    arrival: u64,
    touched: Arc<TouchMarks>,
    /// Clean-ups since the last measurement.
    idle_upkeeps: u32,
}

#[derive(Clone)]
struct KnownSeries {
    instrument: SeriesInstrument,
    touched: Option<Arc<TouchMarks>>,
}

/// The instrument that measures.
#[derive(Clone)]
enum SeriesInstrument {
    Counter(Counter),
    Gauge(Gauge),
    Histogram {
        series: Histogram,
        /// Adds to the sum over all labels, too, if there is one.
        summed: Histogram,
    },
}

/// Whether something was measured.
#[derive(Debug, Default)]
struct TouchMarks {
    /// Since the series were shown last.
    since_shown: AtomicBool,
    /// Since the last clean-up.
    since_upkeep: AtomicBool,
}

impl TouchMarks {
    fn touch(&self) {
        self.since_shown.store(true, Ordering::Relaxed);
        self.since_upkeep.store(true, Ordering::Relaxed);
    }
}

impl MetricSeries {
    /// An empty set. What has no labels is shown from the start, as 0.
    pub fn new(by: SeriesBy) -> Self {
        let mut state = SeriesState {
            by,
            topics_max: TOPICS_MAX,
            places: BTreeMap::new(),
            arrivals: 0,
            samples: BTreeMap::new(),
            known: HashMap::new(),
        };
        for (place, metric) in METRICS.iter().enumerate() {
            let has_labels = metric.labels.iter().any(|label| by.keeps_label(label));
            if is_measured(metric) && !has_labels {
                state.series_value(place, Vec::new(), None);
            }
        }
        Self(Arc::new(SharedSeries {
            by,
            totals: Arc::default(),
            state: Mutex::new(state),
        }))
    }

    /// The detail in which they are told apart.
    pub(super) fn series_by(&self) -> SeriesBy {
        self.0.by
    }

    /// Sums over all labels.
    pub fn totals(&self) -> Arc<MetricTotals> {
        Arc::clone(&self.0.totals)
    }

    /// Gives topics places before they are measured, in this order. So the same topics have series
    /// of their own after each start.
    pub(super) fn expect_topics(&self, topics: impl IntoIterator<Item = TopicName>) {
        let mut state = self.0.state.lock();
        for topic in topics {
            state.marks_for(&SeriesOwner::for_topic(&topic));
        }
    }

    /// The owners that have series of their own.
    pub(super) fn owners(&self) -> Vec<SeriesOwner> {
        self.owners_that(|_| true)
    }

    /// The owners of which nothing was measured since their series were shown. If they are gone,
    /// they can be forgotten: the events that a deletion ends are counted after it, and are shown
    /// a last time.
    pub(super) fn shown_owners(&self) -> Vec<SeriesOwner> {
        self.owners_that(|place| !place.touched.since_shown.load(Ordering::Relaxed))
    }

    /// The owners of which nothing was measured for a minute, once half of the room is taken:
    /// without them there is room for others, also where nobody asks for metrics.
    pub(super) fn idle_owners(&self) -> Vec<SeriesOwner> {
        if !self.0.state.lock().is_half_full() {
            return Vec::new();
        }
        self.owners_that(|place| place.idle_upkeeps >= IDLE_UPKEEPS_MIN)
    }

    fn owners_that(&self, is_wanted: impl Fn(&OwnerPlace) -> bool) -> Vec<SeriesOwner> {
        let state = self.0.state.lock();
        let wanted = state.places.iter().filter(|(_, place)| is_wanted(place));
        wanted.map(|(owner, _)| owner.clone()).collect()
    }

    /// Forgets the series of owners that are gone.
    pub(super) fn forget_owners(&self, gone: &BTreeSet<SeriesOwner>) {
        if !gone.is_empty() {
            self.0.state.lock().forget_owners(gone);
        }
    }

    /// The samples of all series, in the order of the page. From now on they are shown.
    pub(super) fn lines_for_page(&self) -> Vec<MetricLine> {
        let state = self.0.state.lock();
        for place in state.places.values() {
            place.touched.since_shown.store(false, Ordering::Relaxed);
        }
        drop(state);
        self.read_lines()
    }

    /// The same for one who does not show them.
    pub(super) fn read_lines(&self) -> Vec<MetricLine> {
        let state = self.0.state.lock();
        let lines = state.samples.iter().map(|(id, sample)| MetricLine {
            place: id.metric,
            labels: Arc::clone(&sample.labels),
            value: sample.read(),
        });
        lines.collect()
    }

    /// Notes who was not measured for long. Call it every five seconds.
    pub(super) fn count_upkeep(&self) {
        let mut state = self.0.state.lock();
        state.places.values_mut().for_each(OwnerPlace::count_upkeep);
    }

    /// The instrument of a key; `None` if the table has no such metric, or `serve` does not measure
    /// it.
    fn instrument_for(&self, key: &Key) -> Option<SeriesInstrument> {
        let mut state = self.0.state.lock();
        if let Some(known) = state.known.get(key) {
            if let Some(touched) = &known.touched {
                touched.touch();
            }
            return Some(known.instrument.clone());
        }
        state.learn_key(key, &self.0.totals)
    }
}

fn is_measured(metric: &MetricRow) -> bool {
    metric.exposed.is_some() && metric.source == MetricSource::Measured
}

impl SeriesState {
    fn learn_key(&mut self, key: &Key, totals: &Arc<MetricTotals>) -> Option<SeriesInstrument> {
        let place =
            metric::metric_index(key.name()).filter(|place| is_measured(&METRICS[*place]))?;
        let named = SeriesOwner::from_labels(key, self.by);
        let touched = named.as_ref().and_then(|owner| self.marks_for(owner));
        if let Some(touched) = &touched {
            touched.touch();
        }
        let owner = named.clone().filter(|_| touched.is_some());
        let is_other = named.is_some() && owner.is_none();
        let labels = series_labels(&METRICS[place], key, self.by, is_other);
        let instrument = match self.series_value(place, labels, owner) {
            SeriesValue::Counter(counter) => SeriesInstrument::Counter(
                totals.summed_counter(key.name(), Counter::from_arc(counter)),
            ),
            SeriesValue::Gauge(gauge) => SeriesInstrument::Gauge(Gauge::from_arc(gauge)),
            SeriesValue::Histogram(distribution) => {
                let series = Histogram::from_arc(distribution);
                let summed = totals.summed_histogram(key.name(), series.clone());
                SeriesInstrument::Histogram { series, summed }
            }
        };
        if self.known.len() >= KNOWN_MAX {
            self.known.clear();
        }
        let known = KnownSeries {
            instrument: instrument.clone(),
            touched,
        };
        self.known.insert(key.clone(), known);
        Some(instrument)
    }

    /// The series with these labels, which is made where it is new.
    fn series_value(
        &mut self,
        metric: usize,
        labels: Vec<(String, String)>,
        owner: Option<SeriesOwner>,
    ) -> SeriesValue {
        let id = SampleId { metric, labels };
        if let Some(sample) = self.samples.get(&id) {
            return sample.value.clone();
        }
        let sample = MeasuredSeries::new(&id, owner);
        let value = sample.value.clone();
        self.samples.insert(id, sample);
        value
    }

    /// The notes of an owner that has series of its own, or gets them now; `None` if there is no
    /// room.
    fn marks_for(&mut self, owner: &SeriesOwner) -> Option<Arc<TouchMarks>> {
        if let Some(place) = self.places.get(owner) {
            return Some(Arc::clone(&place.touched));
        }
        if !self.has_room() {
            return None;
        }
        let touched = Arc::<TouchMarks>::default();
        let place = OwnerPlace {
            arrival: self.arrivals,
            touched: Arc::clone(&touched),
            idle_upkeeps: 0,
        };
        self.arrivals += 1;
        self.places.insert(owner.clone(), place);
        Some(touched)
    }

    /// Whether one more owner may have series of its own. Without a setting, the first topic that
    /// finds no room takes the places of many. From then on places are free only when topics are
    /// deleted, so that the others stay.
    fn has_room(&mut self) -> bool {
        match self.by {
            SeriesBy::Total => false,
            SeriesBy::Topic | SeriesBy::Subscription => self.samples.len() < SERIES_MAX,
            SeriesBy::FewTopics => {
                let has_room = self.places.len() < self.topics_max;
                if !has_room && self.topics_max > TOPICS_KEPT {
                    self.topics_max = TOPICS_KEPT;
                    self.fold_into_other();
                }
                has_room
            }
        }
    }

    /// Takes the series of all but the first topics, and adds them to those of [`OTHER`].
    fn fold_into_other(&mut self) {
        let mut arrivals: Vec<_> = self.places.values().map(|place| place.arrival).collect();
        arrivals.sort_unstable();
        let end = arrivals.get(self.topics_max).copied();
        self.places
            .retain(|_, place| end.is_none_or(|end| place.arrival < end));
        let places = &self.places;
        let (samples, taken): (BTreeMap<_, _>, BTreeMap<_, _>) = std::mem::take(&mut self.samples)
            .into_iter()
            .partition(|(_, sample)| {
                let owner = sample.owner.as_ref();
                owner.is_none_or(|owner| places.contains_key(owner))
            });
        self.samples = samples;
        self.known.clear();
        for (mut id, sample) in taken {
            for (label, value) in &mut id.labels {
                if [TOPIC, SUBSCRIPTION].contains(&label.as_str()) {
                    OTHER.clone_into(value);
                }
            }
            let other = self.samples.entry(id.clone());
            let other = other.or_insert_with(|| MeasuredSeries::new(&id, None));
            other.folded.push(sample.value);
            other.folded.extend(sample.folded);
        }
    }

    fn forget_owners(&mut self, gone: &BTreeSet<SeriesOwner>) {
        self.places.retain(|owner, _| !gone.contains(owner));
        self.samples.retain(|_, sample| {
            let owner = sample.owner.as_ref();
            owner.is_none_or(|owner| !gone.contains(owner))
        });
        self.known.clear();
    }

    fn is_half_full(&self) -> bool {
        match self.by {
            SeriesBy::Total => false,
            SeriesBy::FewTopics => self.places.len() >= self.topics_max / 2,
            SeriesBy::Topic | SeriesBy::Subscription => self.samples.len() >= SERIES_MAX / 2,
        }
    }
}

/// The labels of a series: topic and subscription first, as far as they are shown.
fn series_labels(
    metric: &MetricRow,
    key: &Key,
    by: SeriesBy,
    is_other: bool,
) -> Vec<(String, String)> {
    let shown = metric.labels.iter().filter(|label| by.keeps_label(label));
    let measured = shown.filter_map(|name| {
        let label = key.labels().find(|label| label.key() == *name)?;
        let is_owner = [TOPIC, SUBSCRIPTION].contains(name);
        let value = if is_owner && is_other {
            OTHER
        } else {
            label.value()
        };
        Some(((*name).to_owned(), value.to_owned()))
    });
    let fixed = metric.fixed.into_iter();
    let fixed = fixed.map(|(name, value)| (name.to_owned(), value.to_owned()));
    measured.chain(fixed).collect()
}

impl OwnerPlace {
    fn count_upkeep(&mut self) {
        let was_touched = self.touched.since_upkeep.swap(false, Ordering::Relaxed);
        self.idle_upkeeps = if was_touched {
            0
        } else {
            self.idle_upkeeps.saturating_add(1)
        };
    }
}

/// Descriptions and units are in the table of metrics.
impl Recorder for MetricSeries {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        match self.instrument_for(key) {
            Some(SeriesInstrument::Counter(counter)) => counter,
            _ => Counter::noop(),
        }
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        match self.instrument_for(key) {
            Some(SeriesInstrument::Gauge(gauge)) => gauge,
            _ => Gauge::noop(),
        }
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        match self.instrument_for(key) {
            // A request without an answer has no time of its answer.
            Some(SeriesInstrument::Histogram { series, .. }) if metadata.target() == UNANSWERED => {
                series
            }
            Some(SeriesInstrument::Histogram { summed, .. }) => summed,
            _ => Histogram::noop(),
        }
    }
}

#[cfg(test)]
mod tests;
