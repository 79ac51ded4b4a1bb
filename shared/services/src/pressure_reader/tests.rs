//! The reader over a store in memory and a clock that is set by hand.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use posthaste_core::pressure::{
    ByteUsage, PressureLevel, PressureSettings, Resource, ResourceReadings, evaluate_pressure,
};

use super::*;
use posthaste_ports::{ErrorKind, PutCondition};
use posthaste_testkit::memory::{MemoryStore, SetClock};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{CallFault, FaultPlan, Faulty, Recorded, RecordedCalls};

struct World {
    store: MemoryStore,
    clock: SetClock,
    calls: RecordedCalls,
    reader: PressureReader<Recorded<Faulty<MemoryStore>>, SetClock>,
}

impl World {
    fn with(plan: &FaultPlan) -> Self {
        let store = MemoryStore::default();
        let clock = SetClock::default();
        let calls = RecordedCalls::default();
        let decorated = Recorded::new(Faulty::new(store.clone(), "state", plan), "state", &calls);
        let reader = PressureReader::new(decorated, clock.clone(), PRESSURE_MAX_AGE);
        Self {
            store,
            clock,
            calls,
            reader,
        }
    }

    /// Writes the state of a monitor at this moment with so much memory used.
    async fn write(&self, memory_percent: u64) {
        let now = self.clock.now();
        let memory = Some(ByteUsage {
            used: memory_percent,
            total: 100,
        });
        let readings = ResourceReadings {
            memory,
            ..ResourceReadings::default()
        };
        let (state, _) = evaluate_pressure(
            &PressureState::normal(now),
            &readings,
            &PressureSettings::default(),
            now,
        );
        self.put(state.render()).await;
    }

    async fn put(&self, bytes: Vec<u8>) {
        self.store
            .put(PRESSURE_KEY, Bytes::from(bytes), PutCondition::Always)
            .await
            .unwrap();
    }

    async fn level(&self) -> Option<PressureLevel> {
        self.reader
            .state()
            .await
            .map(|state| state.effective_level())
    }

    fn reads(&self) -> usize {
        self.calls.count(PortOperation::Get) + self.calls.count(PortOperation::GetIfChanged)
    }
}

#[tokio::test]
async fn the_state_is_read_at_most_every_two_seconds() {
    let world = World::with(&FaultPlan::none());
    assert_eq!(world.level().await, None);
    world.write(95).await;
    world.clock.advance(Duration::from_millis(1999));
    assert_eq!((world.level().await, world.reads()), (None, 1));
    world.clock.advance(Duration::from_millis(1));
    assert_eq!(
        (world.level().await, world.reads()),
        (Some(PressureLevel::High), 2)
    );
    assert_eq!(
        (world.level().await, world.reads()),
        (Some(PressureLevel::High), 2)
    );
}

#[tokio::test]
async fn a_producer_is_told_what_the_state_says() {
    let world = World::with(&FaultPlan::none());
    world.write(95).await;
    let told = world.reader.admit(ProducerTier::Internal).await;
    let retry_after = posthaste_core::pressure::REFUSED_RETRY_AFTER;
    assert_eq!(
        told,
        AdmissionResult {
            admission: Admission::Refuse {
                retry_after,
                resource: Resource::SystemMemory
            },
            header: Some("high; resource=system-memory; retry-after=30".to_owned()),
            pressing: world
                .reader
                .state()
                .await
                .unwrap()
                .resource(Resource::SystemMemory)
                .cloned()
                .map(|resource| PressureCause {
                    resource,
                    subscription: None,
                }),
            dehydrate: true,
            base: Duration::ZERO,
            drain: Duration::ZERO,
        }
    );
}

#[tokio::test]
async fn a_store_that_fails_leaves_the_last_known_state_in_use() {
    let plan = FaultPlan::by(|effect| {
        (effect.number > 0).then_some(CallFault::Before(ErrorKind::TimedOut))
    });
    let world = World::with(&plan);
    world.write(95).await;
    for _ in 0..3 {
        assert_eq!(world.level().await, Some(PressureLevel::High));
        world.clock.advance(PRESSURE_MAX_AGE);
    }
    assert_eq!(plan.faults(), 2);
}

#[tokio::test]
async fn a_state_that_is_gone_or_garbage_counts_as_normal() {
    let world = World::with(&FaultPlan::none());
    for bytes in [Some(&b"null"[..]), None] {
        world.write(95).await;
        world.clock.advance(PRESSURE_MAX_AGE);
        assert_eq!(world.level().await, Some(PressureLevel::High));
        match bytes {
            Some(bytes) => world.put(bytes.to_vec()).await,
            None => world.store.delete(PRESSURE_KEY).await.unwrap(),
        }
        world.clock.advance(PRESSURE_MAX_AGE);
        let normal = AdmissionResult {
            admission: Admission::Accept,
            header: None,
            pressing: None,
            dehydrate: false,
            base: Duration::ZERO,
            drain: Duration::ZERO,
        };
        assert_eq!(world.reader.admit(ProducerTier::Bulk).await, normal);
    }
}

/// A read that hangs makes no caller wait, and dropping it lets the next caller read.
#[tokio::test]
async fn hanging_read_delays_nobody_and_dropping_it_frees_the_next() {
    let plan = FaultPlan::by(|effect| (effect.number == 1).then_some(CallFault::HangBefore));
    let world = World::with(&plan);
    world.write(95).await;
    assert_eq!(world.level().await, Some(PressureLevel::High));
    world.clock.advance(PRESSURE_MAX_AGE);
    world.write(10).await;
    {
        let mut hanging = pin!(world.level());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(hanging.as_mut().poll(&mut context), Poll::Pending);
        assert_eq!(
            (world.level().await, world.reads()),
            (Some(PressureLevel::High), 1)
        );
    }
    assert_eq!(
        (world.level().await, plan.effects()),
        (Some(PressureLevel::Normal), 3)
    );
}

#[tokio::test]
async fn before_the_first_read_has_ended_everyone_waits_for_it() {
    let plan = FaultPlan::by(|effect| (effect.number == 0).then_some(CallFault::HangBefore));
    let world = World::with(&plan);
    world.write(95).await;
    let mut context = Context::from_waker(Waker::noop());
    let mut second = {
        let mut first = pin!(world.level());
        assert_eq!(first.as_mut().poll(&mut context), Poll::Pending);
        let mut second = Box::pin(world.level());
        assert_eq!(second.as_mut().poll(&mut context), Poll::Pending);
        second
    };
    assert_eq!(
        second.as_mut().poll(&mut context),
        Poll::Ready(Some(PressureLevel::High))
    );
}

/// The wait of every acknowledgement stays when the state is forgotten, and nothing else does.
#[tokio::test]
async fn base_wait_alone_outlasts_the_monitor() {
    let world = World::with(&FaultPlan::none());
    let base = Duration::from_secs(2);
    let now = world.clock.now();
    let readings = ResourceReadings {
        memory: Some(ByteUsage {
            used: 95,
            total: 100,
        }),
        ..ResourceReadings::default()
    };
    let mut settings = PressureSettings::default();
    settings.tarpit.base = base;
    let (state, _) = evaluate_pressure(&PressureState::normal(now), &readings, &settings, now);
    world.put(state.render()).await;
    assert!(world.reader.admit(ProducerTier::Bulk).await.is_held_back());
    world.clock.advance(Duration::from_secs(901));
    let rest = AdmissionResult {
        admission: Admission::Delay(base),
        header: None,
        pressing: None,
        dehydrate: false,
        base,
        drain: Duration::ZERO,
    };
    assert_eq!(
        (
            world.reader.admit(ProducerTier::Bulk).await,
            world.level().await
        ),
        (rest.clone(), None)
    );
    assert!(!rest.is_held_back());
}
