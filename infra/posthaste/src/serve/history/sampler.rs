//! A look at the server at the end of each step.

use std::error::Error;
use std::sync::Arc;

use futures_util::future::join3;
use parking_lot::Mutex;
use posthaste_console::history::{Counts, Gauges, Pressure, Reading, STEP, Waiting, count};
use posthaste_core::api::{PressureFreshness, PressureView};
use posthaste_core::circuit::Phase;
use posthaste_core::model::Timestamp;
use posthaste_core::pressure::PressureState;
use posthaste_core::stored::PRESSURE_KEY;
use posthaste_ports::{Clock, ObjectStore, QueueReceiver};
use posthaste_services::LinkHealth;

use super::ring::{Ring, number};
use crate::serve::metrics::{Totaled, Totals};

/// The sampler. A look takes one read of the pressure, one list of the parts of links and a read of each that
/// is not empty, and the counts of the queue, which the store has in memory.
#[derive(Debug)]
pub(super) struct Sampler<S, Q, C> {
    ring: Arc<Ring>,
    totals: Arc<Totals>,
    state: S,
    deliveries: Q,
    links: LinkHealth<S, C>,
    clock: C,
    last: Mutex<Totaled>,
}

impl<S: ObjectStore, Q: QueueReceiver, C: Clock> Sampler<S, Q, C> {
    /// A sampler of what is counted from now on.
    pub(super) fn new(
        ring: Arc<Ring>,
        totals: Arc<Totals>,
        (state, deliveries): (S, Q),
        links: LinkHealth<S, C>,
        clock: C,
    ) -> Self {
        let last = Mutex::new(totals.read());
        Self { ring, totals, state, deliveries, links, clock, last }
    }

    /// Keeps the step that ends about now.
    pub(super) async fn sample(&self) {
        let now = self.clock.now();
        let number = number(Timestamp::from_millis(now.as_millis().saturating_sub(half_step_ms())));
        self.ring.add_counts(number, &self.counted());
        let (waiting, down, pressure) = join3(self.waiting(), self.down(), self.pressure(now)).await;
        self.ring.set_gauges(number, Gauges { waiting, down, pressure });
    }

    /// What was counted since the last look.
    fn counted(&self) -> Counts {
        let totals = self.totals.read();
        let before = std::mem::replace(&mut *self.last.lock(), totals);
        totals.since(&before)
    }

    async fn waiting(&self) -> Option<Waiting> {
        let counts = self.deliveries.counts().await.map_err(|error| unread("the queue", &error)).ok()?;
        Some(Waiting { due: count(counts.visible), later: count(counts.delayed) })
    }

    async fn down(&self) -> Option<u32> {
        let shards = self.links.all().await.map_err(|error| unread("the links", &error)).ok()?;
        let conditions = shards.iter().flat_map(|(_, shard)| shard.conditions());
        let down = conditions.filter(|(_, condition)| condition.phase != Phase::Recovering).count();
        Some(count(down as u64))
    }

    async fn pressure(&self, now: Timestamp) -> Option<Pressure> {
        let read = self.state.get(PRESSURE_KEY).await.map_err(|error| unread("the pressure", &error)).ok()??;
        // A state that cannot be understood is logged by those who go by it.
        let view = PressureView::new(Some(&PressureState::parse(&read.bytes).ok()?), now);
        let is_current = view.freshness == PressureFreshness::Current;
        is_current.then(|| sampled(&view))
    }
}

fn sampled(view: &PressureView) -> Pressure {
    let tarpit_ms = u64::try_from(view.tarpit.0.as_millis()).unwrap_or(u64::MAX);
    let pressure = Pressure::new(view.level, count(tarpit_ms));
    view.resources.iter().fold(pressure, |pressure, it| {
        pressure.with(it.resource, Reading { value: count(it.reading), level: it.level })
    })
}

fn unread(what: &str, error: &(dyn Error + 'static)) {
    tracing::debug!(what, error, "a point of the console's charts is missing");
}

fn half_step_ms() -> u64 {
    u64::try_from((STEP / 2).as_millis()).unwrap_or_default()
}

