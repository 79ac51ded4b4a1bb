//! The book over a store that changes under it, fails and is damaged.

use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{
    CallFault, FaultPlan, Faulty, ManualClock, PortOperation, Recorded, RecordedCalls,
};

use super::known::{COUNTS_UNREAD_MAX, READ_AGAIN_AFTER};
use super::*;

const ONE_MILLI: Duration = Duration::from_millis(1);

/// Two processes on one store, whose calls are counted.
struct World {
    memory: MemoryStore,
    store: Recorded<Faulty<MemoryStore>>,
    plan: FaultPlan,
    calls: RecordedCalls,
    clock: ManualClock,
    first: SessionBook,
    second: SessionBook,
}

impl World {
    /// A store on which these operations fail once the plan is switched on.
    fn with_fault(fault: CallFault, operations: &'static [PortOperation]) -> Self {
        let plan = FaultPlan::at(fault, |effect| operations.contains(&effect.operation));
        plan.switch(false);
        Self::with_plan(plan)
    }

    /// A store that fails by this plan.
    fn with_plan(plan: FaultPlan) -> Self {
        let memory = MemoryStore::default();
        let calls = RecordedCalls::default();
        let faulty = Faulty::new(memory.clone(), "state", &plan);
        Self {
            memory,
            store: Recorded::new(faulty, "state", &calls),
            plan,
            calls,
            clock: ManualClock::new(Timestamp::from_millis(1_700_000_000_000)),
            first: SessionBook::default(),
            second: SessionBook::default(),
        }
    }

    fn new() -> Self {
        Self::with_fault(CallFault::Before(ErrorKind::Other), &[])
    }

    fn session(&self, number: u8) -> OpenSession {
        OpenSession {
            id: SessionDigest::for_id(&[number]),
            key: "0a1b2c3d".to_owned(),
            began_at: self.clock.now(),
            ends_at: self.clock.now() + Duration::from_hours(12),
            address: None,
        }
    }

    async fn add(&self, book: &SessionBook, number: u8) -> Result<(), SessionListError> {
        let session = self.session(number);
        let added = book.add_session(&self.store, &self.clock, session).await;
        added.map(drop)
    }

    async fn end(&self, book: &SessionBook, number: u8) -> Result<usize, SessionListError> {
        let id = self.session(number).id;
        let ended = book.end_sessions(&self.store, &self.clock, |session| session.id == id);
        ended.await.map(|ended| ended.len())
    }

    async fn is_open(&self, book: &SessionBook, number: u8) -> Result<bool, SessionListError> {
        let id = self.session(number).id;
        book.is_open(&self.store, &self.clock, id).await
    }

    /// The reads since the last time.
    fn reads(&self) -> usize {
        let taken = self.calls.take();
        let reads = [PortOperation::Get, PortOperation::GetIfChanged];
        let reads = taken.iter().filter(|it| reads.contains(&it.operation));
        reads.count()
    }
}

#[tokio::test]
async fn session_ends_here_at_once_and_elsewhere_after_5_s() {
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    assert!(world.is_open(&world.second, 1).await.unwrap());
    assert_eq!(world.end(&world.first, 1).await.unwrap(), 1);
    assert!(!world.is_open(&world.first, 1).await.unwrap());
    assert!(!world.first.is_known_open(world.session(1).id));
    world
        .clock
        .advance(READ_AGAIN_AFTER.saturating_sub(ONE_MILLI));
    assert!(world.is_open(&world.second, 1).await.unwrap());
    world.clock.advance(ONE_MILLI);
    assert!(!world.is_open(&world.second, 1).await.unwrap());
    assert_eq!(world.end(&world.second, 1).await.unwrap(), 0);
}

#[tokio::test]
async fn list_is_read_once_in_5_s_and_dead_cookies_never() {
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    world.reads();
    for _ in 0..3 {
        assert!(world.is_open(&world.first, 1).await.unwrap());
    }
    assert_eq!(world.reads(), 0, "it wrote the list itself");
    world.clock.advance(READ_AGAIN_AFTER);
    for _ in 0..3 {
        assert!(world.is_open(&world.first, 1).await.unwrap());
    }
    assert_eq!(world.reads(), 1);
    for _ in 0..3 {
        assert!(!world.is_open(&world.first, 2).await.unwrap());
        world.clock.advance(READ_AGAIN_AFTER);
    }
    assert_eq!(world.reads(), 1, "an unknown one is read for once");
}

/// A session that began in another process is known without waiting.
#[tokio::test]
async fn session_of_another_process_is_open_at_once() {
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    assert!(world.is_open(&world.first, 1).await.unwrap());
    world.add(&world.second, 2).await.unwrap();
    assert!(world.is_open(&world.first, 2).await.unwrap());
    assert!(world.is_open(&world.second, 1).await.unwrap());
}

#[tokio::test]
async fn two_sign_ins_at_once_are_both_open() {
    let world = World::new();
    let both = tokio::join!(world.add(&world.first, 1), world.add(&world.second, 2));
    both.0.unwrap();
    both.1.unwrap();
    for number in [1, 2] {
        for book in [&world.first, &world.second] {
            assert!(world.is_open(book, number).await.unwrap(), "{number}");
        }
    }
}

#[tokio::test]
async fn known_sessions_count_for_a_minute_without_the_store() {
    let reads = &[PortOperation::Get, PortOperation::GetIfChanged];
    let world = World::with_fault(CallFault::Before(ErrorKind::TimedOut), reads);
    world.add(&world.first, 1).await.unwrap();
    world.plan.switch(true);
    world
        .clock
        .advance(COUNTS_UNREAD_MAX.saturating_sub(ONE_MILLI));
    assert!(world.is_open(&world.first, 1).await.unwrap());
    assert!(world.is_open(&world.first, 2).await.is_err(), "not known");
    assert!(world.is_open(&world.second, 1).await.is_err(), "not read");
    world.clock.advance(ONE_MILLI);
    assert!(world.is_open(&world.first, 1).await.is_err());
    world.plan.switch(false);
    assert!(world.is_open(&world.first, 1).await.unwrap());
    assert!(!world.is_open(&world.first, 2).await.unwrap());
}

/// The outcome of a write whose response was lost is found out by the next request.
#[tokio::test]
async fn lost_answer_of_an_end_makes_the_list_read_again() {
    let fault = CallFault::After(ErrorKind::TimedOut);
    let world = World::with_fault(fault, &[PortOperation::Put]);
    world.add(&world.first, 1).await.unwrap();
    world.plan.switch(true);
    assert!(world.end(&world.first, 1).await.is_err());
    assert!(!world.is_open(&world.first, 1).await.unwrap());
    assert!(world.add(&world.first, 2).await.is_err());
    assert!(world.is_open(&world.first, 2).await.unwrap());
}

#[tokio::test]
async fn failed_end_leaves_the_session_open() {
    let all = &[PortOperation::Get, PortOperation::Put];
    for at in all {
        let fault = CallFault::Before(ErrorKind::TimedOut);
        let world = World::with_fault(fault, std::slice::from_ref(at));
        world.add(&world.first, 1).await.unwrap();
        world.plan.switch(true);
        assert!(world.end(&world.first, 1).await.is_err());
        world.plan.switch(false);
        assert!(world.is_open(&world.first, 1).await.unwrap(), "{at:?}");
    }
}

#[tokio::test]
async fn unusable_list_is_empty_and_replaced() {
    for bad in ["", "{}", r#"{"v":1,"sessions":[1]}"#] {
        let world = World::new();
        world.add(&world.first, 1).await.unwrap();
        world.memory.write(CONSOLE_SESSIONS, bad);
        assert!(!world.is_open(&world.second, 1).await.unwrap(), "{bad}");
        world.add(&world.second, 2).await.unwrap();
        assert!(world.is_open(&world.first, 2).await.unwrap(), "{bad}");
    }
    let fault = CallFault::Before(ErrorKind::Damaged);
    let world = World::with_fault(fault, &[PortOperation::Get]);
    world.plan.switch(true);
    assert!(!world.is_open(&world.first, 1).await.unwrap());
    world.add(&world.first, 2).await.unwrap();
    assert!(world.first.is_known_open(world.session(2).id));
}

/// A list that could not be used once ends no session for good.
#[tokio::test]
async fn mended_list_has_its_sessions_again() {
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    let whole = world.memory.objects_under(CONSOLE_SESSIONS);
    world.memory.write(CONSOLE_SESSIONS, "{");
    world.clock.advance(READ_AGAIN_AFTER);
    for book in [&world.first, &world.second] {
        assert!(!world.is_open(book, 1).await.unwrap());
    }
    world.memory.write(CONSOLE_SESSIONS, whole[0].1.clone());
    world.clock.advance(READ_AGAIN_AFTER);
    for book in [&world.first, &world.second] {
        assert!(world.is_open(book, 1).await.unwrap());
    }
}

/// A list that a newer program wrote is neither empty nor overwritten.
#[tokio::test]
async fn list_of_a_newer_version_is_an_error_and_stays() {
    let newer = r#"{"v":2,"open":[]}"#;
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    world.memory.write(CONSOLE_SESSIONS, newer);
    let unread = world.is_open(&world.second, 1).await;
    assert!(matches!(
        unread,
        Err(UpdateError::Edit(FormatError::Newer(2)))
    ));
    let unwritten = world.add(&world.second, 2).await;
    assert!(matches!(unwritten, Err(UpdateError::Edit(_))));
    assert!(world.end(&world.first, 1).await.is_err());
    let left = world.memory.objects_under(CONSOLE_SESSIONS);
    assert_eq!(left[0].1, newer);
    assert!(world.is_open(&world.first, 1).await.unwrap(), "known");
    world.clock.advance(COUNTS_UNREAD_MAX);
    assert!(world.is_open(&world.first, 1).await.is_err());
}

/// One read that fails is made again; what it would have answered is not lost.
#[tokio::test]
async fn failed_read_is_made_once_more() {
    for operation in [PortOperation::GetIfChanged, PortOperation::Get] {
        let fault = CallFault::Before(ErrorKind::TimedOut);
        let plan = FaultPlan::nth_of(0, fault, move |effect| effect.operation == operation);
        plan.switch(false);
        let world = World::with_plan(plan);
        world.add(&world.first, 1).await.unwrap();
        world.clock.advance(COUNTS_UNREAD_MAX);
        world.plan.switch(true);
        assert!(world.is_open(&world.first, 1).await.unwrap());
        assert!(world.is_open(&world.second, 1).await.unwrap());
    }
    let fault = CallFault::Before(ErrorKind::TimedOut);
    let plan = FaultPlan::nth_of(0, fault, |effect| effect.operation == PortOperation::Get);
    let world = World::with_plan(plan);
    world.add(&world.first, 1).await.unwrap();
    assert!(world.first.is_known_open(world.session(1).id));
}

/// Each of both reads is given up after a time.
#[tokio::test]
async fn known_sessions_count_while_the_store_does_not_answer() {
    let reads = &[PortOperation::Get, PortOperation::GetIfChanged];
    let world = World::with_fault(CallFault::HangBefore, reads);
    world.add(&world.first, 1).await.unwrap();
    world.clock.advance(READ_AGAIN_AFTER);
    world.plan.switch(true);
    let began = world.clock.monotonic();
    let known = while_time_passes(&world.clock, world.is_open(&world.first, 1)).await;
    assert!(known.unwrap());
    assert_eq!(world.clock.monotonic(), began + READ_TIME_MAX * 2);
    let unknown = while_time_passes(&world.clock, world.is_open(&world.second, 1)).await;
    let Err(UpdateError::Read(error)) = unknown else {
        panic!("{unknown:?}");
    };
    assert_eq!(error.kind, ErrorKind::TimedOut);
}

/// The output of `work`, which waits for the clock.
async fn while_time_passes<T>(clock: &ManualClock, work: impl Future<Output = T>) -> T {
    let time = async {
        loop {
            tokio::task::yield_now().await;
            clock.advance_to_next();
        }
    };
    tokio::select! {
        biased;
        output = work => output,
        () = time => unreachable!("time does not end"),
    }
}

#[tokio::test]
async fn refused_session_is_over_in_this_process_alone() {
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    world.first.refuse_session(world.session(1).id);
    assert!(!world.is_open(&world.first, 1).await.unwrap());
    assert!(world.is_open(&world.second, 1).await.unwrap());
    assert_eq!(world.end(&world.first, 1).await.unwrap(), 1);
}

#[tokio::test]
async fn deleted_list_ends_every_session() {
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    world.memory.delete(CONSOLE_SESSIONS).await.unwrap();
    world.clock.advance(READ_AGAIN_AFTER);
    assert!(!world.is_open(&world.first, 1).await.unwrap());
}

/// A session whose time is over leaves the list with the next sign-in.
#[tokio::test]
async fn ended_time_takes_a_session_out_of_the_list() {
    let world = World::new();
    world.add(&world.first, 1).await.unwrap();
    world.clock.advance(Duration::from_hours(12));
    world.add(&world.first, 2).await.unwrap();
    let list = world.first.read_again(&world.store, &world.clock).await;
    assert_eq!(list.unwrap().sessions, [world.session(2)]);
}
