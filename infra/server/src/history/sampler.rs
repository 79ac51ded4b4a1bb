//! A look at the server at the end of each step.

use std::error::Error;
use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_console::history::{
    PressureGauge, ResourceReading, STEP, StepCounts, StepGauges, WaitingGauge, saturated_count,
};
use posthaste_core::api::{PressureFreshness, PressureView};
use posthaste_core::circuit::TargetPhase;
use posthaste_core::model::Timestamp;
use posthaste_core::model::time::whole_millis;
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ObjectStore, QueueReceiver};
use posthaste_services::{LinkHealth, WaitingEvents};

use super::ring::{StepRing, step_number};
use crate::metrics::{MetricTotals, TotalsSnapshot};

/// The sampler. A look takes one read of the pressure, one list of the parts of links and a read of
/// each that is not empty, and what waits, which the store has in memory.
#[derive(Debug)]
pub struct HistorySampler<S, Q, C> {
    ring: Arc<StepRing>,
    totals: Arc<MetricTotals>,
    ports: SampledPorts<S, Q, C>,
    last: Mutex<TotalsSnapshot>,
}

/// The ports that a look at the server reads.
#[derive(Debug)]
pub struct SampledPorts<S, Q, C> {
    /// The store of state objects.
    pub state: S,
    /// The queue of deliveries.
    pub deliveries: Q,
    /// The health of links.
    pub links: LinkHealth<S, C>,
    /// The clock.
    pub clock: C,
}

impl<S: ObjectStore, Q: QueueReceiver, C: Clock> HistorySampler<S, Q, C> {
    /// A sampler of what is counted from now on.
    pub fn new(
        ring: Arc<StepRing>,
        totals: Arc<MetricTotals>,
        ports: SampledPorts<S, Q, C>,
    ) -> Self {
        let last = Mutex::new(totals.read());
        Self {
            ring,
            totals,
            ports,
            last,
        }
    }

    /// Keeps the step that ends about now.
    pub async fn sample(&self) {
        let now = self.ports.clock.now();
        let number = step_number(Timestamp::from_millis(
            now.as_millis().saturating_sub(half_step_ms()),
        ));
        self.ring.add_counts(number, &self.counts_since_last());
        let (waiting, down, pressure) = tokio::join!(
            self.waiting_events(),
            self.links_down(),
            self.current_pressure(now)
        );
        self.ring.set_gauges(
            number,
            StepGauges {
                waiting,
                down,
                pressure,
            },
        );
    }

    /// The counts since the last look.
    fn counts_since_last(&self) -> StepCounts {
        let totals = self.totals.read();
        let before = std::mem::replace(&mut *self.last.lock(), totals);
        totals.added_since(&before)
    }

    async fn waiting_events(&self) -> Option<WaitingGauge> {
        let events = WaitingEvents {
            deliveries: &self.ports.deliveries,
            slow_deliveries: None,
            state: &self.ports.state,
            clock: &self.ports.clock,
            recorded_until: None,
        };
        let all = events
            .count_all()
            .await
            .map_err(|error| log_unread("what waits", &error))
            .ok()?;
        Some(WaitingGauge::from_count(&all.total()))
    }

    async fn links_down(&self) -> Option<u32> {
        let shards = self
            .ports
            .links
            .read_all()
            .await
            .map_err(|error| log_unread("the links", &error))
            .ok()?;
        let conditions = shards.iter().flat_map(|(_, shard)| shard.conditions());
        let down = conditions
            .filter(|(_, condition)| condition.phase != TargetPhase::Recovering)
            .count();
        Some(saturated_count(down as u64))
    }

    async fn current_pressure(&self, now: Timestamp) -> Option<PressureGauge> {
        let read = self
            .ports
            .state
            .get(PRESSURE_KEY)
            .await
            .map_err(|error| log_unread("the pressure", &error))
            .ok()??;
        // A state that cannot be understood is logged by those who go by it.
        let view = PressureView::new(Some(&PressureState::parse(&read.bytes).ok()?), now);
        let is_current = view.freshness == PressureFreshness::Current;
        is_current.then(|| sampled_pressure(&view))
    }
}

fn sampled_pressure(view: &PressureView) -> PressureGauge {
    let tarpit_ms = whole_millis(view.tarpit.0);
    let pressure = PressureGauge::new(view.level, saturated_count(tarpit_ms));
    view.resources.iter().fold(pressure, |pressure, it| {
        pressure.with_reading(
            it.resource,
            ResourceReading {
                value: saturated_count(it.reading),
                level: it.level,
            },
        )
    })
}

fn log_unread(what: &str, error: &(dyn Error + 'static)) {
    tracing::debug!(what, error, "a point of the console's charts is missing");
}

fn half_step_ms() -> u64 {
    u64::try_from((STEP / 2).as_millis()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::{MetricSeries, SeriesBy};
    use posthaste_console::history::{HistoryStep, InstallationHistory};
    use posthaste_core::circuit::HealthSettings;
    use posthaste_core::pressure::{PressureLevel, Resource};
    use posthaste_ports::QueueSender;
    use posthaste_testkit::ManualClock;
    use posthaste_testkit::memory::{MemoryQueue, MemoryStore, message};
    use serde_json::json;

    const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    struct World {
        series: MetricSeries,
        ring: Arc<StepRing>,
        state: MemoryStore,
        queue: MemoryQueue,
        clock: ManualClock,
        sampler: HistorySampler<MemoryStore, MemoryQueue, ManualClock>,
    }

    impl World {
        fn new() -> Self {
            let series = MetricSeries::new(SeriesBy::default());
            let ring = Arc::new(StepRing::default());
            let state = MemoryStore::default();
            let queue = MemoryQueue::default();
            let clock = ManualClock::new(START);
            let links = LinkHealth::new(state.clone(), clock.clone(), HealthSettings::default());
            let ports = SampledPorts {
                state: state.clone(),
                deliveries: queue.clone(),
                links,
                clock: clock.clone(),
            };
            let sampler = HistorySampler::new(Arc::clone(&ring), series.totals(), ports);
            Self {
                series,
                ring,
                state,
                queue,
                clock,
                sampler,
            }
        }

        fn deliver(&self, events: u64) {
            metrics::with_local_recorder(&self.series, || {
                metrics::counter!("DeliverySuccessCount", "topic" => "orders").increment(events);
            });
        }

        fn steps(&self) -> Vec<(u64, HistoryStep)> {
            let mut steps = Vec::new();
            self.ring
                .for_each_step(START..self.clock.now(), &mut |at, step| {
                    steps.push((at.since(START).as_secs(), *step));
                });
            steps
        }
    }

    #[tokio::test]
    async fn each_step_has_what_was_counted_in_it() {
        let world = World::new();
        for events in [3, 0, 4] {
            world.deliver(events);
            world.clock.advance(STEP);
            world.sampler.sample().await;
        }
        let counted = |(at, step): (u64, HistoryStep)| (at, step.counts.unwrap().delivered);
        let counted: Vec<_> = world.steps().into_iter().map(counted).collect();
        assert_eq!(counted, [(0, 3), (10, 0), (20, 4)]);
    }

    #[tokio::test]
    async fn a_step_has_how_things_stood_at_its_end() {
        let world = World::new();
        let sent = world
            .queue
            .send_batch(vec![message("one"), message("two")])
            .await
            .unwrap();
        assert!(sent.iter().all(Result::is_ok));
        let resource = json!({
            "resource": "drain-time", "level": "medium", "since": 0, "reading": 70, "readAt": 0,
            "thresholds": { "normal": 30, "medium": 60, "high": 300 }, "acts": true, "polls": 1,
            "refusedFrom": null,
        });
        let mut pressure = PressureState::normal(START + STEP);
        pressure.tarpit_ms = 15_000;
        pressure.resources = vec![serde_json::from_value(resource).unwrap()];
        world.state.write(PRESSURE_KEY, pressure.render());
        world.clock.advance(STEP);
        world.sampler.sample().await;
        let expected = PressureGauge::new(PressureLevel::Medium, 15_000).with_reading(
            Resource::DrainTime,
            ResourceReading {
                value: 70,
                level: PressureLevel::Medium,
            },
        );
        let gauges = StepGauges {
            waiting: Some(WaitingGauge {
                due: 2,
                ..WaitingGauge::default()
            }),
            down: Some(0),
            pressure: Some(expected),
        };
        assert_eq!(world.steps()[0].1.gauges, Some(gauges));
    }

    #[tokio::test]
    async fn a_state_that_no_monitor_writes_any_more_is_a_gap() {
        let world = World::new();
        world
            .state
            .write(PRESSURE_KEY, PressureState::normal(START).render());
        world.clock.advance(Duration::from_mins(3));
        world.sampler.sample().await;
        let gauges = world.steps()[0].1.gauges.unwrap();
        assert_eq!((gauges.pressure, gauges.down), (None, Some(0)));
    }
}
