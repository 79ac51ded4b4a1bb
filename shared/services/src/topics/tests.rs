//! The registry over a store in memory, records that are broken in every way, and readers that come at once.

use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::sync::Semaphore;

use super::*;
use posthaste_ports::{ErrorKind, ListPage, PutCondition};
use posthaste_testkit::memory::{MemoryStore, SetClock};
use posthaste_testkit::recorded::Operation;
use posthaste_testkit::{Calls, Fault, Faulty, Plan, Recorded};

const MAX_AGE: Duration = Duration::from_secs(5);
const RECORD: &str = include_str!("../../../core/src/stored/fixtures/topic-v1.json");

/// A store whose reads wait for a permit, so that readers can be held where they are.
#[derive(Debug, Clone)]
struct Gated<S> {
    store: S,
    gate: Arc<Semaphore>,
}

impl<S> Gated<S> {
    async fn pass(&self) {
        self.gate.acquire().await.unwrap().forget();
    }
}

impl<S: ObjectStore> ObjectStore for Gated<S> {
    async fn get(&self, key: &str) -> Result<Option<Object>, PortError> {
        self.pass().await;
        self.store.get(key).await
    }

    async fn get_if_changed(&self, key: &str, known: &ETag) -> Result<Revalidated, PortError> {
        self.pass().await;
        self.store.get_if_changed(key, known).await
    }

    async fn put(&self, key: &str, bytes: Bytes, condition: PutCondition) -> Result<ETag, PortError> {
        self.store.put(key, bytes, condition).await
    }

    async fn delete(&self, key: &str) -> Result<(), PortError> {
        self.store.delete(key).await
    }

    async fn list(&self, prefix: &str, after: Option<&str>, max: usize) -> Result<ListPage, PortError> {
        self.store.list(prefix, after, max).await
    }
}

struct World {
    store: MemoryStore,
    clock: SetClock,
    calls: Calls,
    gate: Arc<Semaphore>,
    registry: Registry<Gated<Recorded<Faulty<MemoryStore>>>, SetClock>,
}

impl World {
    /// A world in which reads wait for permits.
    fn gated(plan: &Plan, max_age: Duration) -> Self {
        let (store, clock, calls) = (MemoryStore::default(), SetClock::default(), Calls::default());
        let decorated = Recorded::new(Faulty::new(store.clone(), "state", plan), "state", &calls);
        let gate = Arc::new(Semaphore::new(0));
        let gated = Gated { store: decorated, gate: Arc::clone(&gate) };
        let registry = Registry::new(gated, clock.clone(), max_age);
        Self { store, clock, calls, gate, registry }
    }

    fn with(plan: &Plan) -> Self {
        let world = Self::gated(plan, MAX_AGE);
        world.gate.add_permits(1000);
        world
    }

    async fn write(&self, bytes: impl Into<Bytes>) {
        self.store.put("topics/orders.json", bytes.into(), PutCondition::Always).await.unwrap();
    }

    /// How the topic is: `there`, `absent` or `unknown`.
    async fn look(&self) -> &'static str {
        match self.registry.topic(&TopicName::parse("Orders").unwrap()).await {
            Ok(Some(topic)) => {
                assert_eq!(topic.subscriptions.len(), 1);
                "there"
            }
            Ok(None) => "absent",
            Err(_) => "unknown",
        }
    }

    fn reads(&self) -> usize {
        self.calls.count(Operation::Get) + self.calls.count(Operation::GetIfChanged)
    }
}

fn waits<F: Future>(future: Pin<&mut F>) -> bool {
    future.poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

#[tokio::test]
async fn a_topic_is_read_once_in_an_interval_however_many_ask() {
    let world = World::with(&Plan::none());
    world.write(RECORD).await;
    for interval in 1..=3 {
        for _ in 0..100 {
            assert_eq!(world.look().await, "there");
        }
        assert_eq!(world.reads(), interval);
        world.clock.advance(MAX_AGE);
    }
    assert_eq!(world.calls.count(Operation::Get), 1);
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_asked_for_once_in_an_interval_too() {
    let world = World::with(&Plan::none());
    for _ in 0..100 {
        assert_eq!(world.look().await, "absent");
    }
    world.write(RECORD).await;
    assert_eq!((world.look().await, world.reads()), ("absent", 1));
    world.clock.advance(MAX_AGE);
    assert_eq!((world.look().await, world.reads()), ("there", 2));
}

#[tokio::test]
async fn many_that_ask_at_once_share_one_read() {
    let world = World::gated(&Plan::none(), MAX_AGE);
    world.write(RECORD).await;
    for round in 1..=2 {
        let mut lookups = pin!(join_all((0..16).map(|_| world.look())));
        assert!(waits(lookups.as_mut()));
        world.gate.add_permits(1);
        assert_eq!(lookups.await, ["there"; 16]);
        assert_eq!((world.reads(), world.registry.flights.count()), (round, 0));
        world.clock.advance(MAX_AGE);
    }
}

#[tokio::test]
async fn who_gives_up_leaves_the_read_to_the_next() {
    let world = World::gated(&Plan::none(), MAX_AGE);
    world.write(RECORD).await;
    {
        let mut first = Box::pin(world.look());
        let mut second = pin!(world.look());
        assert!(waits(first.as_mut()) && waits(second.as_mut()));
        drop(first);
        world.gate.add_permits(1);
        assert_eq!(second.await, "there");
    }
    world.clock.advance(MAX_AGE);
    assert!(waits(pin!(world.look())));
    assert_eq!((world.reads(), world.registry.flights.count()), (1, 0));
}

#[tokio::test]
async fn an_error_is_shared_by_those_who_wait_and_by_nobody_after() {
    let denied = Fault::Before(ErrorKind::Denied);
    let plan = Plan::by(move |effect| (effect.number == 0).then(|| denied.clone()));
    let world = World::gated(&plan, MAX_AGE);
    world.write(RECORD).await;
    let mut lookups = pin!(join_all((0..4).map(|_| world.look())));
    assert!(waits(lookups.as_mut()));
    world.gate.add_permits(2);
    assert_eq!(lookups.await, ["unknown"; 4]);
    assert_eq!((world.look().await, world.reads()), ("there", 2));
}

#[tokio::test]
async fn where_asking_is_cheap_everybody_asks() {
    let world = World::gated(&Plan::none(), Duration::ZERO);
    world.write(RECORD).await;
    world.gate.add_permits(16);
    assert_eq!(join_all((0..16).map(|_| world.look())).await, ["there"; 16]);
    assert_eq!(world.reads(), 16);
}

/// Everything that can be wrong with a record.
fn broken() -> Vec<Bytes> {
    let newer = RECORD.replace("\"v\":1", "\"v\":3");
    let unacceptable = RECORD.replace("https://", "gopher://");
    assert!(newer != RECORD && unacceptable != RECORD);
    let truncated = &RECORD[..RECORD.len() / 2];
    ["", truncated, &newer, &unacceptable, "null", "{}"].map(|text| Bytes::from(text.to_owned())).to_vec()
}

#[tokio::test]
async fn a_broken_record_leaves_the_last_known_good_one_in_use_until_it_is_mended() {
    for record in broken() {
        let world = World::with(&Plan::none());
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        world.write(record.clone()).await;
        for _ in 0..3 {
            world.clock.advance(MAX_AGE);
            assert_eq!(world.look().await, "there", "{record:?}");
        }
        let mended = RECORD.replace("Billing", "Accounting");
        world.write(mended).await;
        world.clock.advance(MAX_AGE);
        assert_eq!(world.look().await, "there", "{record:?}");
        let topic = world.registry.topic(&TopicName::parse("orders").unwrap()).await.unwrap().unwrap();
        assert!(topic.subscriptions.contains_key("accounting"));
    }
}

#[tokio::test]
async fn a_broken_record_that_was_never_good_is_unknown_and_never_absent() {
    for record in broken() {
        let world = World::with(&Plan::none());
        world.write(record.clone()).await;
        assert_eq!(world.look().await, "unknown", "{record:?}");
    }
}

#[tokio::test]
async fn a_store_that_refuses_or_fails_says_nothing_about_the_topic() {
    for kind in [ErrorKind::Denied, ErrorKind::TimedOut, ErrorKind::NotFound, ErrorKind::Other] {
        let fault = Fault::Before(kind);
        let plan = Plan::by(move |effect| (effect.number > 0).then(|| fault.clone()));
        let world = World::with(&plan);
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        world.clock.advance(MAX_AGE);
        assert_eq!((world.look().await, plan.faults()), ("there", 1), "{kind:?}");
        // What the store could not say again just now is kept: nobody else knows it.
        assert_eq!(world.registry.trim(), Evicted::default());
        world.clock.advance(MAX_AGE);
        assert_eq!((world.look().await, plan.faults()), ("there", 2), "{kind:?}");
    }
}

#[tokio::test]
async fn a_record_that_is_gone_is_a_topic_that_is_gone() {
    let world = World::with(&Plan::none());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    world.store.delete("topics/orders.json").await.unwrap();
    world.clock.advance(MAX_AGE);
    assert_eq!(world.look().await, "absent");
}

#[tokio::test]
async fn a_record_that_says_that_it_is_deleted_is_no_topic() {
    let world = World::with(&Plan::none());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    let record = TopicRecord::parse(RECORD.as_bytes()).unwrap().tombstone(world.clock.now());
    world.write(record.render()).await;
    world.clock.advance(MAX_AGE);
    assert_eq!(world.look().await, "absent");
}

#[tokio::test]
async fn what_is_known_counts_for_a_moment_only_if_it_was_read_after_it() {
    let world = World::with(&Plan::none());
    let name = TopicName::parse("orders").unwrap();
    let seen = async |moment| world.registry.topic_seen_after(&name, moment).await.unwrap().is_some();
    assert_eq!(world.look().await, "absent");
    let before = world.clock.now();
    world.clock.advance(Duration::from_secs(1));
    world.write(RECORD).await;
    // Young enough for everybody else.
    assert_eq!((world.look().await, world.reads()), ("absent", 1));
    assert!(seen(before).await);
    assert_eq!(world.reads(), 2);
    assert_eq!((world.look().await, world.reads()), ("there", 2));
    // What was read a moment after is not asked for again, as far as clocks can be trusted.
    world.clock.advance(Duration::from_secs(3));
    assert!(seen(Timestamp::from_millis(before.as_millis() - 1)).await);
    assert_eq!(world.reads(), 2);
    assert!(seen(before).await);
    assert_eq!(world.reads(), 3);
}

#[tokio::test]
async fn a_store_that_fails_says_nothing_of_any_moment_even_where_something_is_known() {
    for fault in [Fault::Before(ErrorKind::Denied), Fault::After(ErrorKind::TimedOut)] {
        let plan = Plan::by(move |effect| (effect.number > 0).then(|| fault.clone()));
        let world = World::with(&plan);
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        let name = TopicName::parse("orders").unwrap();
        let moment = world.clock.now();
        assert!(world.registry.topic_seen_after(&name, moment).await.is_err());
        // Nor does a later failure make the last known good record any younger.
        world.clock.advance(MAX_AGE);
        assert_eq!(world.look().await, "there");
        assert!(world.registry.topic_seen_after(&name, moment + MAX_AGE).await.is_err());
    }
    let world = World::with(&Plan::none());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    world.write("{").await;
    let name = TopicName::parse("orders").unwrap();
    assert!(world.registry.topic_seen_after(&name, world.clock.now()).await.is_err());
}

/// How much is freed when the topic is known by this record.
fn freed(record: &str) -> Evicted {
    Evicted { entries: 1, bytes: "topics/orders.json".len() + record.len() }
}

#[tokio::test]
async fn a_topic_that_was_forgotten_is_read_anew_and_what_it_held_is_counted() {
    let world = World::with(&Plan::none());
    assert_eq!(world.registry.trim(), Evicted::default());
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    assert_eq!((world.registry.trim(), world.registry.trim()), (freed(RECORD), Evicted::default()));
    assert_eq!((world.look().await, world.calls.count(Operation::Get)), ("there", 2));
    // The same after the store has said that nothing has changed.
    world.clock.advance(MAX_AGE);
    assert_eq!((world.look().await, world.calls.count(Operation::GetIfChanged)), ("there", 1));
    assert_eq!(world.registry.trim(), freed(RECORD));
    world.store.delete("topics/orders.json").await.unwrap();
    assert_eq!((world.look().await, world.registry.trim()), ("absent", freed("")));
}

#[tokio::test]
async fn the_last_known_good_record_of_a_broken_one_is_never_trimmed() {
    for record in broken() {
        let world = World::with(&Plan::none());
        world.write(RECORD).await;
        assert_eq!(world.look().await, "there");
        world.write(record.clone()).await;
        let name = TopicName::parse("orders").unwrap();
        // Whoever asked found it broken, also one who would not take what was known.
        assert!(world.registry.topic_seen_after(&name, world.clock.now()).await.is_err());
        for _ in 0..2 {
            assert_eq!(world.registry.trim(), Evicted::default(), "{record:?}");
            world.clock.advance(MAX_AGE);
            assert_eq!(world.look().await, "there", "{record:?}");
        }
        let mended = RECORD.replace("Billing", "Accounting");
        world.write(mended.clone()).await;
        world.clock.advance(MAX_AGE);
        assert_eq!((world.look().await, world.registry.trim()), ("there", freed(&mended)));
    }
}

#[tokio::test]
async fn a_topic_that_somebody_works_with_is_not_read_a_second_time_beside() {
    let world = World::with(&Plan::none());
    world.write(RECORD).await;
    let topic = world.registry.topic(&TopicName::parse("orders").unwrap()).await.unwrap();
    assert_eq!((world.registry.trim(), world.look().await, world.reads()), (Evicted::default(), "there", 1));
    drop(topic);
    assert_eq!(world.registry.trim(), freed(RECORD));
}

#[tokio::test]
async fn a_record_that_turns_out_broken_while_it_is_read_is_still_the_last_known_good_one() {
    let world = World::gated(&Plan::none(), Duration::ZERO);
    world.write(RECORD).await;
    world.gate.add_permits(1);
    assert_eq!(world.look().await, "there");
    world.write("{").await;
    let mut look = pin!(world.look());
    assert!(waits(look.as_mut()));
    assert_eq!(world.registry.trim(), Evicted::default());
    world.gate.add_permits(1);
    assert_eq!((look.await, world.registry.trim()), ("there", Evicted::default()));
}

/// The log of a thread.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn start(&self) -> tracing::subscriber::DefaultGuard {
        let log = self.clone();
        let lines = tracing_subscriber::fmt().without_time().with_ansi(false).with_target(false);
        tracing::subscriber::set_default(lines.with_writer(move || log.clone()).finish())
    }

    /// What was logged since the last time.
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock())).unwrap()
    }
}

#[tokio::test]
async fn a_topic_that_has_changed_is_logged_once_with_the_time_that_reading_it_took() {
    let (world, log) = (World::gated(&Plan::none(), MAX_AGE), Log::default());
    let _logging = log.start();
    let look = async |expected| {
        let mut look = pin!(join_all([world.look(), world.look()]));
        assert!(waits(look.as_mut()));
        world.clock.advance(Duration::from_millis(40));
        world.gate.add_permits(1);
        assert_eq!(look.await, [expected; 2]);
        world.clock.advance(MAX_AGE);
        log.take()
    };
    world.write(RECORD).await;
    assert_eq!(look("there").await, "", "what is read for the first time has not changed");
    assert_eq!(look("there").await, "");
    world.write(RECORD.replace("Billing", "Accounting")).await;
    let reset = |took_ms| {
        format!(" INFO routes reset, the topic has changed id=4005 topic=Orders took_ms={took_ms}\n")
    };
    assert_eq!(look("there").await, reset(40));
    assert_eq!(look("there").await, "");
    world.store.delete("topics/orders.json").await.unwrap();
    assert_eq!(look("absent").await, reset(40));
    assert_eq!(look("absent").await, "");
}

#[tokio::test]
async fn many_that_find_the_same_change_at_once_log_it_once() {
    let (world, log) = (World::gated(&Plan::none(), Duration::ZERO), Log::default());
    let _logging = log.start();
    world.gate.add_permits(1);
    world.write(RECORD).await;
    assert_eq!(world.look().await, "there");
    world.write(RECORD.replace("Billing", "Accounting")).await;
    let mut lookups = pin!(join_all((0..4).map(|_| world.look())));
    assert!(waits(lookups.as_mut()));
    world.gate.add_permits(4);
    assert_eq!(lookups.await, ["there"; 4]);
    assert_eq!((log.take().lines().count(), world.reads()), (1, 5));
}
