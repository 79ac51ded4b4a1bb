use posthaste_core::health::TryResult;
use posthaste_core::model::Timestamp;
use posthaste_ports::{ErrorKind, PutCondition};
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{
    CallFault, FaultPlan, Faulty, ManualClock, PortOperation, Recorded, RecordedCalls,
};

use super::*;

const BILLING: &str = "orders.billing";
const FAILED: TryResult = TryResult::Failed {
    outcome: None,
    status: Some(401),
    is_last: true,
};

type Store = Faulty<Recorded<MemoryStore>>;

struct Kit {
    calls: RecordedCalls,
    store: MemoryStore,
    clock: ManualClock,
    arrivals: ArrivalTracker<Store, ManualClock>,
}

impl Kit {
    fn with(plan: &FaultPlan) -> Self {
        let calls = RecordedCalls::default();
        let store = MemoryStore::default();
        let clock = ManualClock::new(Timestamp::EPOCH);
        let recorded = Recorded::new(store.clone(), "state", &calls);
        let faulty = Faulty::new(recorded, "state", plan);
        Self {
            arrivals: ArrivalTracker::new(faulty, clock.clone()).with_counting(),
            calls,
            store,
            clock,
        }
    }

    fn note(&self, key: &str, result: TryResult) {
        let seen = SeenTry {
            key: "a",
            accepted_at: Timestamp::EPOCH,
            at: self.clock.now(),
            is_first: true,
            result,
        };
        self.arrivals.note_try(|| key.to_owned(), &seen);
    }

    async fn tries(&self) -> SubscriptionTries {
        let book = self.arrivals.stored_book().await.unwrap();
        book.subscription(BILLING).unwrap().tries.clone()
    }
}

#[tokio::test]
async fn healthy_deliveries_are_neither_kept_nor_written() {
    let kit = Kit::with(&FaultPlan::none());
    kit.arrivals.stored_book().await.unwrap();
    kit.calls.take();
    for _ in 0..1000 {
        kit.note(BILLING, TryResult::Arrived);
    }
    assert!(!kit.arrivals.is_watching() && !kit.arrivals.has_news());
    assert!(!kit.arrivals.write_gathered("run").await.unwrap());
    assert_eq!(kit.calls.all().len(), 0);
}

#[tokio::test]
async fn arrivals_count_where_something_fails_and_nowhere_else() {
    let kit = Kit::with(&FaultPlan::none());
    kit.arrivals.stored_book().await.unwrap();
    kit.note(BILLING, FAILED);
    kit.note(BILLING, TryResult::Arrived);
    kit.note("orders.crm", TryResult::Arrived);
    assert!(kit.arrivals.has_news());
    assert!(kit.arrivals.write_gathered("run").await.unwrap());
    assert!(!kit.arrivals.has_news());
    let book = kit.arrivals.stored_book().await.unwrap();
    assert_eq!(
        book.subscriptions().map(|(key, _)| key).collect::<Vec<_>>(),
        [BILLING]
    );
    kit.note(BILLING, TryResult::Arrived);
    kit.arrivals.write_gathered("another run").await.unwrap();
    let settings = posthaste_core::model::ArrivalSettings::default();
    let share = kit
        .tries()
        .await
        .measured_share(Timestamp::EPOCH, &settings);
    assert_eq!((share.arrived, share.failed), (2, 1));
}

/// The write succeeds, and its response is lost.
#[tokio::test]
async fn write_whose_answer_is_lost_is_repeated_and_counts_once() {
    let plan = FaultPlan::by(|effect| {
        let is_first = effect.operation == PortOperation::Put && effect.number < 2;
        is_first.then_some(CallFault::After(ErrorKind::TimedOut))
    });
    let kit = Kit::with(&plan);
    kit.note(BILLING, FAILED);
    assert!(kit.arrivals.write_gathered("run").await.is_err());
    kit.note(BILLING, FAILED);
    while kit.arrivals.write_gathered("another run").await.is_err() {}
    assert_eq!(kit.tries().await.in_row(), 2);
}

/// The time of the write is over before the book is written, or after it.
#[tokio::test]
async fn write_that_is_cut_off_is_repeated_and_counts_once() {
    for fault in [CallFault::HangBefore, CallFault::HangAfter] {
        let plan = FaultPlan::nth_of(0, fault, |effect| effect.operation == PortOperation::Put);
        let kit = Kit::with(&plan);
        kit.note(BILLING, FAILED);
        plan.kill(kit.arrivals.write_gathered("run")).await;
        assert!(kit.arrivals.has_news());
        kit.arrivals.stored_book().await.unwrap();
        assert!(kit.arrivals.has_news(), "whatever the book has");
        kit.note(BILLING, FAILED);
        kit.arrivals.write_gathered("another run").await.unwrap();
        assert_eq!(kit.tries().await.in_row(), 2);
        assert!(!kit.arrivals.has_news());
    }
}

/// The book cannot be written, and does not have the subscription yet.
#[tokio::test]
async fn arrivals_count_while_the_failure_before_is_not_written() {
    let arrival = SeenTry {
        key: "b",
        accepted_at: Timestamp::EPOCH,
        at: Timestamp::EPOCH,
        is_first: true,
        result: TryResult::Arrived,
    };
    for is_gathered in [false, true] {
        let plan = FaultPlan::nth_of(0, CallFault::HangBefore, |effect| {
            effect.operation == PortOperation::Put
        });
        let kit = Kit::with(&plan);
        kit.arrivals.stored_book().await.unwrap();
        kit.note(BILLING, FAILED);
        plan.kill(kit.arrivals.write_gathered("run")).await;
        if is_gathered {
            let mut tries = SubscriptionTries::default();
            tries.add_try(&arrival);
            kit.arrivals
                .gather_tries([(BILLING.to_owned(), tries)].into());
        } else {
            kit.arrivals.note_try(|| BILLING.to_owned(), &arrival);
        }
        kit.arrivals.write_gathered("another run").await.unwrap();
        assert_eq!(kit.tries().await.last_arrived_at(), Some(Timestamp::EPOCH));
    }
}

/// Tries that come during a write would be dropped as known under its name.
#[tokio::test]
async fn tries_noted_during_a_write_count_with_the_next_write() {
    let during = Arc::new(Mutex::new(None::<ArrivalTracker<Store, ManualClock>>));
    let noting = Arc::clone(&during);
    let plan = FaultPlan::by(move |effect| {
        let arrivals = (effect.operation == PortOperation::Put).then(|| noting.lock().take());
        let seen = SeenTry {
            key: "a",
            accepted_at: Timestamp::EPOCH,
            at: Timestamp::EPOCH,
            is_first: true,
            result: FAILED,
        };
        if let Some(arrivals) = arrivals.flatten() {
            arrivals.note_try(|| BILLING.to_owned(), &seen);
        }
        None
    });
    let kit = Kit::with(&plan);
    *during.lock() = Some(kit.arrivals.clone());
    kit.note(BILLING, FAILED);
    assert!(kit.arrivals.write_gathered("run").await.unwrap());
    assert_eq!(kit.tries().await.in_row(), 1);
    assert!(kit.arrivals.has_news());
    assert!(kit.arrivals.write_gathered("another run").await.unwrap());
    assert_eq!(kit.tries().await.in_row(), 2);
}

#[tokio::test]
async fn gathered_tries_are_seen_before_they_are_written() {
    let kit = Kit::with(&FaultPlan::none());
    kit.note(BILLING, FAILED);
    let book = kit.arrivals.current_book().await.unwrap();
    assert_eq!(book.subscription(BILLING).unwrap().tries.in_row(), 1);
    assert_eq!(kit.store.keys("health/"), [""; 0]);
}

#[tokio::test]
async fn tracker_that_does_not_count_notes_nothing() {
    let store = MemoryStore::default();
    let clock = ManualClock::new(Timestamp::EPOCH);
    let arrivals = ArrivalTracker::new(store, clock);
    let seen = SeenTry {
        key: "a",
        accepted_at: Timestamp::EPOCH,
        at: Timestamp::EPOCH,
        is_first: true,
        result: FAILED,
    };
    arrivals.note_try(|| unreachable!(), &seen);
    assert!(!arrivals.has_news());
}

#[tokio::test]
async fn book_is_read_again_once_it_is_old() {
    let kit = Kit::with(&FaultPlan::none());
    for (minute, reads) in [(0, 1), (0, 1), (1, 2), (1, 2)] {
        kit.clock
            .advance_to(Timestamp::EPOCH + minute * BOOK_MAX_AGE);
        kit.arrivals.refresh_if_older(BOOK_MAX_AGE).await.unwrap();
        assert_eq!(kit.calls.count(PortOperation::Get), reads, "{minute}");
    }
}

#[tokio::test]
async fn damaged_book_is_replaced_and_a_newer_one_is_not() {
    let kit = Kit::with(&FaultPlan::none());
    let put = async |text: &str| {
        let text = text.to_owned().into();
        kit.store
            .put(HEALTH, text, PutCondition::Always)
            .await
            .unwrap();
    };
    put("?").await;
    kit.note(BILLING, FAILED);
    assert!(kit.arrivals.write_gathered("run").await.unwrap());
    put(r#"{"v":2}"#).await;
    kit.note(BILLING, FAILED);
    assert!(kit.arrivals.write_gathered("another run").await.is_err());
    let object = kit.store.get(HEALTH).await.unwrap().unwrap();
    assert_eq!(object.bytes, r#"{"v":2}"#);
}
