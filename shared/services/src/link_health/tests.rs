//! The book over a store in memory: its requests, its behaviour when they fail, and many workers
//! that race.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::circuit::{RequestFailure, TargetPhase};
use posthaste_core::model::OutcomeName;

use super::*;
use posthaste_ports::{ErrorKind, ListPage, PutCondition, StoredObject};
use posthaste_testkit::memory::{MemoryStore, SetClock};
use posthaste_testkit::{CallFault, FaultPlan, Faulty, Recorded, RecordedCalls};

const BUSY: RequestFailure = RequestFailure {
    outcome: OutcomeName::Busy,
    status: Some(503),
};

fn target(text: &str) -> DeliveryTarget {
    DeliveryTarget::parse(text).unwrap()
}

fn link() -> DeliveryTarget {
    target("https://a.example:443")
}

fn failing() -> Observation {
    Observation::Failing {
        failures: 10,
        last: BUSY,
        began: Timestamp::EPOCH,
    }
}

fn probe_failed(by: &str) -> Observation {
    Observation::ProbeFailed {
        by: by.to_owned(),
        last: BUSY,
    }
}

/// A store whose calls let others go first, each a different number of times.
#[derive(Debug, Clone, Default)]
struct Slow {
    store: MemoryStore,
    calls: Arc<AtomicU32>,
}

impl Slow {
    async fn wait(&self) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        for _ in 0..(call.wrapping_mul(2_654_435_761) >> 29) {
            tokio::task::yield_now().await;
        }
    }
}

impl ObjectStore for Slow {
    async fn get(&self, key: &str) -> Result<Option<StoredObject>, PortError> {
        self.wait().await;
        self.store.get(key).await
    }

    async fn get_if_changed(
        &self,
        key: &str,
        known: &ETag,
    ) -> Result<RevalidatedObject, PortError> {
        self.wait().await;
        self.store.get_if_changed(key, known).await
    }

    async fn put(
        &self,
        key: &str,
        bytes: Bytes,
        condition: PutCondition,
    ) -> Result<ETag, PortError> {
        self.wait().await;
        let put = self.store.put(key, bytes, condition).await;
        self.wait().await;
        put
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        self.store.delete(key).await
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        max: usize,
    ) -> Result<ListPage, PortError> {
        self.store.list(prefix, after, max).await
    }
}

/// Workers with caches of their own over one store.
fn workers(count: usize, store: &Slow, clock: &SetClock) -> Vec<LinkHealth<Slow, SetClock>> {
    let worker = |_| LinkHealth::new(store.clone(), clock.clone(), HealthSettings::default());
    (0..count).map(worker).collect()
}

async fn conditions(book: &LinkHealth<Slow, SetClock>) -> Vec<(String, TargetPhase, u32)> {
    let all = book.read_all().await.unwrap();
    all.iter()
        .flat_map(|(_, shard)| shard.conditions())
        .map(|(target, it)| (target.to_string(), it.phase, it.hold))
        .collect()
}

#[tokio::test]
async fn healthy_target_causes_no_store_reads() {
    let calls = RecordedCalls::default();
    let clock = SetClock::default();
    let store = Recorded::new(MemoryStore::default(), "state", &calls);
    let book = LinkHealth::new(store, clock.clone(), HealthSettings::default());
    for _ in 0..100 {
        assert_eq!(book.decide(&link(), false).await, CircuitDecision::Open);
        assert_eq!(
            book.observe(&[(link(), Observation::Succeeded)])
                .await
                .unwrap(),
            []
        );
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!(calls.all().len(), 0);
    book.decide(&link(), true).await;
    book.decide(&link(), true).await;
    assert_eq!(calls.all().len(), 1);
}

#[tokio::test]
async fn a_pause_is_written_once_for_all_that_were_under_way() {
    let calls = RecordedCalls::default();
    let clock = SetClock::default();
    let store = Recorded::new(MemoryStore::default(), "state", &calls);
    let book = LinkHealth::new(store, clock.clone(), HealthSettings::default());
    let mine = target("https://a.example:443 orders.billing");
    let asked = |secs| {
        let until = clock.now() + Duration::from_secs(secs);
        Observation::Asked(RequestedPause {
            until,
            last: BUSY,
            began: clock.now(),
            probe: None,
        })
    };
    let changed = async |seen| book.observe(&[(mine.clone(), seen)]).await.unwrap().len();
    assert_eq!(changed(asked(60)).await, 1);
    let written = calls.all().len();
    for known in [asked(60), asked(30), Observation::Succeeded] {
        assert_eq!(changed(known).await, 0);
    }
    assert_eq!(calls.all().len(), written);
    // The latest end wins.
    assert_eq!(changed(asked(90)).await, 1);
    assert_eq!(calls.all().len(), written + 1);
}

#[tokio::test]
async fn unreadable_state_counts_as_healthy() {
    let clock = SetClock::default();
    let store = MemoryStore::default();
    let sound = LinkHealth::new(store.clone(), clock.clone(), HealthSettings::default());
    sound.observe(&[(link(), failing())]).await.unwrap();
    let plan = FaultPlan::by(|_| Some(CallFault::Before(ErrorKind::Other)));
    let faulty = Faulty::new(store, "state", &plan);
    let blind = LinkHealth::new(faulty, clock.clone(), HealthSettings::default());
    assert_eq!(blind.decide(&link(), true).await, CircuitDecision::Open);
    assert!(blind.observe(&[(link(), failing())]).await.is_err());
    assert!(blind.claim_probe(&link(), "me").await.is_err());
    assert_ne!(sound.decide(&link(), true).await, CircuitDecision::Open);
}

/// Objects that cannot be understood count as healthy, and are replaced unless newer.
#[tokio::test]
async fn malformed_object_is_replaced_and_a_newer_one_kept() {
    let check = |text: &'static str, is_written: bool| async move {
        let clock = SetClock::default();
        let store = MemoryStore::default();
        let key = layout::link_shard_key(shard_index(link().link()));
        store
            .put(
                &key,
                Bytes::from_static(text.as_bytes()),
                PutCondition::Always,
            )
            .await
            .unwrap();
        let book = LinkHealth::new(store.clone(), clock, HealthSettings::default());
        assert_eq!(book.decide(&link(), true).await, CircuitDecision::Open);
        let _ = book.observe(&[(link(), failing())]).await;
        let left = store.get(&key).await.unwrap().unwrap().bytes;
        assert_eq!(left != text.as_bytes(), is_written, "{text}");
    };
    check("not JSON", true).await;
    check(r#"{"v":99,"targets":{}}"#, false).await;
}

#[tokio::test]
async fn racing_workers_lose_no_transition_and_one_probes() {
    for count in [2, 10] {
        let store = Slow::default();
        let clock = SetClock::default();
        let workers = workers(count, &store, &clock);
        // Every worker sees the link fail, and a subscription of its own.
        let own = |index: usize| target(&format!("https://a.example:443 orders.s{index}"));
        let seen: Vec<_> = (0..count)
            .map(|index| [(link(), failing()), (own(index), failing())])
            .collect();
        let noted = join_all(
            workers
                .iter()
                .zip(&seen)
                .map(|(worker, seen)| worker.observe(seen)),
        )
        .await;
        let changed: Vec<_> = noted.into_iter().flat_map(Result::unwrap).collect();
        assert_eq!(
            changed.iter().filter(|target| **target == link()).count(),
            1,
            "told once"
        );
        assert_eq!(conditions(&workers[0]).await.len(), count + 1);
        for (expected_phase, expected_hold) in [
            (TargetPhase::Glitch, 2),
            (TargetPhase::Glitch, 3),
            (TargetPhase::Retry, 1),
            (TargetPhase::Retry, 2),
        ] {
            clock.advance(Duration::from_mins(16));
            let names: Vec<_> = (0..count).map(|index| index.to_string()).collect();
            let mine = own(0);
            let claims = workers
                .iter()
                .zip(&names)
                .map(|(worker, name)| worker.claim_probe(&mine, name));
            let claimed = join_all(claims).await;
            let winners: Vec<_> = (0..count)
                .filter(|index| claimed[*index].as_ref().unwrap().is_some())
                .collect();
            assert_eq!(winners.len(), 1, "{count} workers");
            // Every worker reports a failed probe, also those that have none; only the winner's
            // counts.
            let failed = names
                .iter()
                .map(|name| vec![(link(), probe_failed(name)), (own(0), probe_failed(name))]);
            let failed: Vec<_> = failed.collect();
            let noted = join_all(
                workers
                    .iter()
                    .zip(&failed)
                    .map(|(worker, seen)| worker.observe(seen)),
            )
            .await;
            assert_eq!(
                noted.into_iter().map(|it| it.unwrap().len()).sum::<usize>(),
                2
            );
            let found = conditions(&workers[count - 1]).await;
            for name in [link().to_string(), own(0).to_string()] {
                assert!(
                    found.contains(&(name, expected_phase, expected_hold)),
                    "{found:?}"
                );
            }
        }
        // One success brings the link back for all workers, even while others still report
        // failures.
        let succeeded = [
            (link(), Observation::Succeeded),
            (own(0), Observation::Succeeded),
        ];
        let late = [(link(), failing())];
        let (first, second) =
            tokio::join!(workers[0].observe(&succeeded), workers[1].observe(&late));
        first.unwrap();
        second.unwrap();
        clock.advance(LINKS_MAX_AGE);
        let mine = own(0);
        let gates = join_all(workers.iter().map(|worker| worker.decide(&mine, true))).await;
        assert!(
            gates
                .iter()
                .all(|gate| matches!(gate, CircuitDecision::Ramp { .. })),
            "{gates:?}"
        );
    }
}

#[tokio::test]
async fn worker_learns_within_seconds_that_a_hold_has_ended() {
    let store = Slow::default();
    let clock = SetClock::default();
    let both = workers(2, &store, &clock);
    both[0].observe(&[(link(), failing())]).await.unwrap();
    assert_ne!(both[1].decide(&link(), true).await, CircuitDecision::Open);
    both[0]
        .observe(&[(link(), Observation::Forced)])
        .await
        .unwrap();
    clock.advance(LINKS_MAX_AGE);
    assert!(matches!(
        both[1].decide(&link(), false).await,
        CircuitDecision::Ramp { .. }
    ));
}

#[tokio::test]
async fn failed_read_does_not_lose_the_result_of_a_probe() {
    let clock = SetClock::default();
    let store = MemoryStore::default();
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), |_| true);
    plan.switch(false);
    let book = LinkHealth::new(
        Faulty::new(store, "state", &plan),
        clock.clone(),
        HealthSettings::default(),
    );
    book.observe(&[(link(), failing())]).await.unwrap();
    clock.advance(Duration::from_mins(1));
    assert!(book.claim_probe(&link(), "me").await.unwrap().is_some());
    clock.advance(LINKS_MAX_AGE);
    plan.switch(true);
    assert_eq!(book.decide(&link(), true).await, CircuitDecision::Open);
    plan.switch(false);
    book.observe(&[(link(), probe_failed("me"))]).await.unwrap();
    assert_eq!(book.condition(&link()).unwrap().hold, 2);
}

#[tokio::test]
async fn all_parts_are_listed_and_the_empty_ones_left_out() {
    let store = Slow::default();
    let clock = SetClock::default();
    let book = workers(1, &store, &clock).remove(0);
    assert!(book.read_all().await.unwrap().is_empty());
    for host in ["a", "b", "c", "d"] {
        book.observe(&[(target(&format!("https://{host}.example:443")), failing())])
            .await
            .unwrap();
    }
    assert_eq!(conditions(&book).await.len(), 4);
}

fn asked_to_wait(now: Timestamp, secs: u64) -> Observation {
    Observation::Asked(RequestedPause {
        until: now + Duration::from_secs(secs),
        last: BUSY,
        began: now,
        probe: None,
    })
}

#[tokio::test]
async fn start_knows_what_was_stored_by_one_bounded_read() {
    let calls = RecordedCalls::default();
    let clock = SetClock::default();
    let store = MemoryStore::default();
    let before = LinkHealth::new(store.clone(), clock.clone(), HealthSettings::default());
    let paused = target("https://a.example:443 orders.billing");
    let seen = [(paused.clone(), asked_to_wait(clock.now(), 60))];
    before.observe(&seen).await.unwrap();
    let store = Recorded::new(store, "state", &calls);
    let book = LinkHealth::new(store, clock.clone(), HealthSettings::default());
    assert!(!book.is_start_known());
    join_all((0..5).map(|_| book.read_start_once())).await;
    for _ in 0..100 {
        book.read_start_once().await;
        let gate = book.decide(&paused, false).await;
        assert!(matches!(gate, CircuitDecision::Delay { .. }), "{gate:?}");
    }
    assert!(book.is_start_known());
    // The list, and the one part that there is.
    assert_eq!(calls.all().len(), 2);
}

#[tokio::test]
async fn start_that_cannot_read_tries_again_every_three_seconds() {
    let calls = RecordedCalls::default();
    let clock = SetClock::default();
    let plan = FaultPlan::by(|_| Some(CallFault::After(ErrorKind::Other)));
    let store = Recorded::new(MemoryStore::default(), "state", &calls);
    let faulty = Faulty::new(store, "state", &plan);
    let book = LinkHealth::new(faulty, clock.clone(), HealthSettings::default());
    for _ in 0..7 {
        book.read_start_once().await;
        assert_eq!(book.decide(&link(), false).await, CircuitDecision::Open);
        clock.advance(Duration::from_secs(1));
    }
    assert_eq!((book.is_start_known(), calls.all().len()), (false, 3));
    plan.switch(false);
    clock.advance(Duration::from_secs(3));
    book.read_start_once().await;
    assert!(book.is_start_known());
}
