//! The reliever over a registry on a clock that is set by hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::TopicName;
use posthaste_core::pressure::{
    LevelThresholds, PressureLevel, PressureMeasure, RELIEF_EVERY, Resource, ResourceState,
};
use posthaste_core::stored::PRESSURE_KEY;

use super::*;
use crate::{PressureReader, TopicRegistry};
use posthaste_ports::{ObjectStore, PutCondition};
use posthaste_testkit::memory::{MemoryStore, SetClock};

const RECORD: &str = include_str!("../../../core/src/stored/fixtures/topic-v1.json");
const TOPIC: EvictedAmount = EvictedAmount {
    entries: 1,
    bytes: "topics/orders.json".len() + RECORD.len(),
};

/// A cache of seven names, and how often it was asked to forget them.
#[derive(Clone, Default)]
struct Names(Arc<AtomicUsize>);

impl EvictableCache for Names {
    fn trim(&self) -> EvictedAmount {
        EvictedAmount {
            entries: 2,
            bytes: 10,
        }
    }

    fn flush_dns(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed);
        7
    }
}

struct World {
    clock: SetClock,
    store: MemoryStore,
    registry: TopicRegistry<MemoryStore, SetClock>,
    names: Names,
}

impl World {
    async fn new() -> Self {
        let clock = SetClock::default();
        let store = MemoryStore::default();
        store
            .put(
                "topics/orders.json",
                Bytes::from(RECORD),
                PutCondition::Always,
            )
            .await
            .unwrap();
        let registry = TopicRegistry::new(store.clone(), clock.clone(), Duration::ZERO);
        Self {
            clock,
            store,
            registry,
            names: Names::default(),
        }
    }

    fn reliever(&self) -> MemoryReliever<SetClock> {
        let reliever = MemoryReliever::new(self.clock.clone(), || None);
        reliever
            .with_cache("topics", self.registry.clone())
            .with_cache("names", self.names.clone())
    }

    /// A state in which the submission queue asks for these.
    fn state(&self, measures: &[PressureMeasure]) -> PressureState {
        let at = self.clock.now();
        let mut state = PressureState::normal(at);
        state.resources = vec![ResourceState {
            resource: Resource::SubmissionQueue,
            level: PressureLevel::Medium,
            since: at,
            reading: 5000,
            read_at: at,
            thresholds: LevelThresholds::new(2000, 4000, 10_000),
            acts: true,
            watched_only: false,
            tarpits: false,
            polls: 2,
            history_depth: None,
            in_flight: false,
            refused_from: None,
            measures: measures.iter().copied().collect::<BTreeSet<_>>(),
        }];
        state
    }

    async fn look(&self) -> bool {
        self.registry
            .topic(&TopicName::parse("orders").unwrap())
            .await
            .unwrap()
            .is_some()
    }
}

#[tokio::test]
async fn relief_covers_all_caches_at_once_and_repeats_after_a_rest() {
    let world = World::new().await;
    let reliever = world.reliever();
    let relieve = |measures: &[PressureMeasure]| {
        reliever.relieve(reliever.take_due_relief(&world.state(measures)))
    };
    let trim = [PressureMeasure::TrimCaches];
    let both = [PressureMeasure::TrimCaches, PressureMeasure::FlushDns];
    let trimmed = |topics: usize| {
        Some(EvictedAmount {
            entries: topics + 2,
            bytes: topics * TOPIC.bytes + 10,
        })
    };
    assert!(world.look().await);
    for measures in [
        &[][..],
        &[PressureMeasure::Dehydrate, PressureMeasure::Alarm],
    ] {
        assert_eq!(relieve(measures), ReliefResult::default());
    }
    assert_eq!(
        relieve(&trim),
        ReliefResult {
            trimmed: trimmed(1),
            names: None
        }
    );
    assert!(world.look().await);
    assert_eq!(
        relieve(&both),
        ReliefResult {
            trimmed: None,
            names: Some(7)
        }
    );
    world
        .clock
        .advance(RELIEF_EVERY.saturating_sub(Duration::from_millis(1)));
    assert_eq!(relieve(&both), ReliefResult::default());
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(
        relieve(&both),
        ReliefResult {
            trimmed: trimmed(1),
            names: Some(7)
        }
    );
    assert_eq!(world.names.0.load(Ordering::Relaxed), 2);
}

/// A reader with a reliever relieves its process, where no monitor runs in it.
#[tokio::test]
async fn reader_of_the_pressure_relieves_its_process() {
    let world = World::new().await;
    let reader = PressureReader::new(world.store.clone(), world.clock.clone(), Duration::ZERO);
    let plain = reader.clone();
    let relieving = reader.with_reliever(world.reliever());
    let asked = async |measures: &[PressureMeasure]| {
        let state = world.state(measures).render();
        world
            .store
            .put(PRESSURE_KEY, Bytes::from(state), PutCondition::Always)
            .await
            .unwrap();
        assert!(world.look().await);
        plain.state().await.unwrap();
        relieving.clone().state().await.unwrap();
        // What is left to forget.
        world.registry.trim()
    };
    assert_eq!(asked(&[]).await, TOPIC);
    assert_eq!(
        asked(&[PressureMeasure::TrimCaches]).await,
        EvictedAmount::default()
    );
    // Clones rest together.
    assert_eq!(asked(&[PressureMeasure::TrimCaches]).await, TOPIC);
    world.clock.advance(RELIEF_EVERY);
    assert_eq!(
        asked(&[PressureMeasure::TrimCaches]).await,
        EvictedAmount::default()
    );
}

#[tokio::test]
async fn a_state_that_is_forgotten_asks_for_nothing() {
    let world = World::new().await;
    let reader = PressureReader::new(world.store.clone(), world.clock.clone(), Duration::ZERO);
    let relieving = reader.with_reliever(world.reliever());
    let state = world.state(&[PressureMeasure::TrimCaches]).render();
    world
        .store
        .put(PRESSURE_KEY, Bytes::from(state), PutCondition::Always)
        .await
        .unwrap();
    assert!(world.look().await);
    world.clock.advance(Duration::from_mins(16));
    assert_eq!(relieving.state().await, None);
    assert_eq!(world.registry.trim(), TOPIC);
}
