//! The drain rate where deliver and the monitor are processes of their own, which share nothing but
//! the state bucket.

use std::time::Duration;

use bytes::Bytes;
use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{
    DrainedMessages, PressureLevel, PressureSettings, PressureState, Resource,
};
use posthaste_core::stored::layout::drain_report_key;
use posthaste_core::stored::{DRAIN, PRESSURE_KEY};
use posthaste_local::{LocalQueue, StateStore};
use posthaste_monitor::{Monitor, MonitorPorts, MonitorSettings};
use posthaste_ports::{
    Clock, DrainSource, ErrorKind, LookTime, NoMachine, ObjectStore, PutCondition, QueueName,
};
use posthaste_services::{DRAIN_POST_TIMEOUT, DrainMeter, DrainPost, DrainReports, TopicRegistry};
use posthaste_simulation::{Answer, World, event, start};
use posthaste_testkit::recorded::PortOperation;
use posthaste_testkit::{
    CallFault, FaultPlan, Faulty, ManualClock, Recorded, RecordedCalls, SeededEntropy, TestPorts,
};
use serde_json::json;

const POLL: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_hours(24);

type Store = Faulty<Recorded<StateStore>>;

/// The state bucket of a world, with what was asked of it and what goes wrong.
struct Bucket {
    world: World,
    calls: RecordedCalls,
    plan: FaultPlan,
}

/// One process of deliver: its meter, and what it tells.
struct Process {
    meter: DrainMeter,
    post: DrainPost<Store, ManualClock>,
}

impl Bucket {
    fn new() -> Self {
        Self::with(FaultPlan::none())
    }

    fn with(plan: FaultPlan) -> Self {
        Self {
            world: World::new(),
            calls: RecordedCalls::default(),
            plan,
        }
    }

    fn clock(&self) -> ManualClock {
        self.world.clock.clone()
    }

    fn store(&self) -> Store {
        Faulty::new(
            Recorded::new(self.world.local.state_store(), "state", &self.calls),
            "state",
            &self.plan,
        )
    }

    fn process(&self, instance: &str) -> Process {
        self.process_by(self.clock(), instance)
    }

    fn process_by(&self, clock: ManualClock, instance: &str) -> Process {
        let meter = DrainMeter::default();
        Process {
            post: DrainPost::new(meter.clone(), self.store(), clock, instance),
            meter,
        }
    }

    /// An invocation of this length that settles so many messages, the first of which had been due
    /// for `waited_secs`.
    async fn invoke(&self, process: &Process, length_secs: u64, settled: u64, waited_secs: u64) {
        process
            .meter
            .note_received(Duration::from_secs(waited_secs), self.monotonic());
        self.world.clock.advance(Duration::from_secs(length_secs));
        process.meter.note_settled(settled);
        process.post.post_if_due().await;
    }

    fn monotonic(&self) -> Duration {
        self.world.clock.monotonic()
    }

    fn look_time(&self) -> LookTime {
        LookTime {
            now: self.monotonic(),
            elapsed: POLL,
        }
    }

    fn reports(&self) -> DrainReports<Store, ManualClock> {
        DrainReports::new(self.store(), self.clock())
    }

    /// The reports while a thousand messages are visible.
    async fn told(&self) -> Option<DrainedMessages> {
        let told = self
            .reports()
            .measure_drain(1000, self.look_time())
            .await
            .unwrap();
        told.map(|look| look.all)
    }

    async fn keys(&self) -> Vec<String> {
        let page = self
            .world
            .local
            .state_store()
            .list(DRAIN, None, 1000)
            .await
            .unwrap();
        page.objects.into_iter().map(|object| object.key).collect()
    }

    async fn write(&self, instance: &str, text: &'static str) {
        let key = drain_report_key(instance);
        let bytes = Bytes::from_static(text.as_bytes());
        self.world
            .local
            .state_store()
            .put(&key, bytes, PutCondition::Always)
            .await
            .unwrap();
    }

    fn asked(&self, operation: PortOperation) -> usize {
        self.calls.count(operation)
    }
}

fn drained(messages: u64, over_secs: u64, waited_secs: u64) -> DrainedMessages {
    let [over, waited_max] = [over_secs, waited_secs].map(Duration::from_secs);
    DrainedMessages {
        messages,
        over,
        waited_max,
    }
}

#[tokio::test]
async fn while_nothing_waits_nobody_writes_and_nobody_asks() {
    let bucket = Bucket::new();
    let process = bucket.process("a");
    for _ in 0..100 {
        bucket.invoke(&process, 1, 1000, 4).await;
    }
    assert_eq!(
        bucket
            .reports()
            .measure_drain(0, bucket.look_time())
            .await
            .unwrap(),
        None
    );
    assert_eq!(bucket.calls.all().len(), 0);
    assert_eq!(bucket.told().await, None);
    assert_eq!(
        (bucket.asked(PortOperation::List), bucket.calls.all().len()),
        (1, 1)
    );
}

/// A process reports the time since it received something, at most every ten seconds.
#[tokio::test]
async fn process_reports_its_drain_at_most_every_ten_seconds() {
    let bucket = Bucket::new();
    let process = bucket.process("a");
    bucket.world.clock.advance(Duration::from_hours(1));
    bucket.invoke(&process, 2, 100, 5).await;
    assert_eq!(
        (bucket.told().await, bucket.asked(PortOperation::Put)),
        (Some(drained(100, 2, 5)), 1)
    );
    // Five invocations of two seconds within the next ten: one report of all of them.
    for waited in [30, 31, 32, 33, 34] {
        bucket.invoke(&process, 2, 10, waited).await;
    }
    assert_eq!(
        (bucket.told().await, bucket.asked(PortOperation::Put)),
        (Some(drained(50, 10, 34)), 2)
    );
}

#[tokio::test]
async fn a_rest_between_two_backlogs_is_not_time_that_was_worked() {
    let bucket = Bucket::new();
    let process = bucket.process("a");
    bucket.invoke(&process, 2, 100, 60).await;
    // Too soon for a report, and then nothing comes for an hour.
    bucket.invoke(&process, 2, 100, 60).await;
    bucket.world.clock.advance(Duration::from_hours(1));
    bucket.invoke(&process, 2, 100, 0).await;
    assert_eq!(
        (bucket.told().await, bucket.asked(PortOperation::Put)),
        (None, 1)
    );
    bucket.invoke(&process, 2, 40, 20).await;
    assert_eq!(bucket.told().await, Some(drained(40, 2, 20)));
}

#[tokio::test]
async fn drain_reports_add_up_though_clocks_disagree() {
    let bucket = Bucket::new();
    let clocks = [Timestamp::EPOCH, start() + Duration::from_hours(5)].map(ManualClock::new);
    for (clock, (instance, waited)) in clocks.iter().zip([("a", 7), ("b", 50)]) {
        let process = bucket.process_by(clock.clone(), instance);
        process
            .meter
            .note_received(Duration::from_secs(waited), Duration::ZERO);
        process.meter.note_settled(200);
        clock.advance(Duration::from_secs(20));
        process.post.post_if_due().await;
    }
    // Each settled 10 a second.
    assert_eq!(bucket.told().await, Some(drained(400, 20, 50)));
}

#[tokio::test]
async fn an_ended_process_is_soon_ignored_and_later_removed() {
    let bucket = Bucket::new();
    let [brief, long] = ["brief", "long"].map(|instance| bucket.process(instance));
    long.meter
        .note_received(Duration::from_secs(9), Duration::ZERO);
    bucket.world.clock.advance(Duration::from_secs(50));
    bucket.invoke(&brief, 10, 100, 6).await;
    long.meter.note_settled(600);
    long.post.post_if_due().await;
    let mut told = Vec::new();
    for wait_secs in [30, 1, 89, 1, 479] {
        bucket.world.clock.advance(Duration::from_secs(wait_secs));
        told.push((bucket.told().await, bucket.keys().await.len()));
    }
    // 30 s after ten of work, and two minutes after a minute of it; the objects go after ten
    // minutes.
    let both = Some(drained(700, 35, 9));
    let only_long = Some(drained(600, 60, 9));
    assert_eq!(
        told,
        [
            (both, 2),
            (only_long, 2),
            (only_long, 2),
            (None, 2),
            (None, 2)
        ]
    );
    bucket.world.clock.advance(Duration::from_secs(1));
    assert_eq!((bucket.told().await, bucket.keys().await), (None, vec![]));
}

#[tokio::test]
async fn unreadable_report_is_passed_over_unless_it_is_the_only_one() {
    for text in ["", "{]", r#"{"v":4}"#] {
        let bucket = Bucket::new();
        bucket.write("other", text).await;
        assert_eq!(
            bucket
                .reports()
                .measure_drain(1, bucket.look_time())
                .await
                .unwrap_err()
                .kind,
            ErrorKind::Other,
            "{text}"
        );
        bucket.invoke(&bucket.process("a"), 10, 100, 6).await;
        // The other one counts as a process like those that are understood.
        assert_eq!(bucket.told().await, Some(drained(200, 10, 6)), "{text}");
    }
}

#[tokio::test]
async fn more_processes_than_are_looked_at_count_as_those_that_are() {
    let bucket = Bucket::new();
    for n in 0..256 {
        let process = bucket.process(&format!("{n:04}"));
        process
            .meter
            .note_received(Duration::from_mins(1), bucket.monotonic());
        process.meter.note_settled(10);
        process.post.post_if_due().await;
    }
    bucket.calls.take();
    assert_eq!(bucket.told().await.unwrap().messages, 2560);
    assert_eq!(
        (
            bucket.asked(PortOperation::List),
            bucket.asked(PortOperation::Get)
        ),
        (1, 128)
    );
}

#[tokio::test]
async fn a_bucket_that_does_not_answer_holds_no_invocation_up() {
    let bucket = Bucket::with(FaultPlan::by(|effect| {
        (effect.number == 0).then_some(CallFault::HangBefore)
    }));
    let process = bucket.process("a");
    process
        .meter
        .note_received(Duration::from_mins(1), Duration::ZERO);
    let wait = async {
        tokio::task::yield_now().await;
        bucket.world.clock.advance(DRAIN_POST_TIMEOUT);
    };
    tokio::join!(process.post.post_if_due(), wait);
    assert_eq!((bucket.plan.faults(), bucket.keys().await), (1, vec![]));
    bucket.invoke(&process, 10, 7, 8).await;
    assert_eq!(bucket.told().await, Some(drained(7, 10, 8)));
}

#[tokio::test]
async fn reports_that_cannot_be_had_are_an_error_and_not_a_slow_drain() {
    for failing in [PortOperation::List, PortOperation::Get] {
        let denied = CallFault::Before(ErrorKind::Denied);
        let bucket = Bucket::with(FaultPlan::by(move |effect| {
            (effect.operation == failing).then(|| denied.clone())
        }));
        bucket.invoke(&bucket.process("a"), 10, 100, 6).await;
        assert_eq!(
            bucket
                .reports()
                .measure_drain(1, bucket.look_time())
                .await
                .unwrap_err()
                .kind,
            ErrorKind::Denied
        );
    }
}

/// A monitor as Lambda starts it: it knows nothing of the one before.
fn monitor(bucket: &Bucket) -> impl AsyncFnMut() -> PressureState {
    let queue = |name| bucket.world.local.queue(name);
    let ports = MonitorPorts {
        deliveries: queue(QueueName::Deliveries),
        slow_lane: None,
        dead_letters: queue(QueueName::DeadLetters),
        state: bucket.store(),
        probe: NoMachine,
        clock: bucket.clock(),
        drain: bucket.reports(),
        registry: TopicRegistry::new(bucket.store(), bucket.clock(), Duration::ZERO),
        entropy: SeededEntropy::new(1),
    };
    let pressure = PressureSettings {
        interval: POLL,
        ..PressureSettings::default()
    };
    let settings = MonitorSettings {
        slow_places: 0,
        pressure,
        notices_topic: None,
    };
    let mut monitor =
        Monitor::<TestPorts<LocalQueue<ManualClock>, Store>, _, _>::new(ports, settings).unwrap();
    async move || monitor.poll_once().await.unwrap()
}

/// The drain time that a state shows, if it was read in this poll.
fn drain_secs(state: &PressureState) -> Option<u64> {
    let drain = state.resource(Resource::DrainTime)?;
    (drain.read_at == state.at).then_some(drain.reading)
}

async fn publish(world: &World, count: usize) {
    for n in 0..count {
        world.publish(&[event(&format!("e{n}"))], DAY).await;
    }
}

/// A monitor that is started anew for every poll reads the same as one that runs on.
#[tokio::test]
async fn restarted_monitor_reads_the_same_as_a_running_one() {
    let bucket = Bucket::new();
    publish(&bucket.world, 1000).await;
    let processes = ["a", "b"].map(|instance| bucket.process(instance));
    let mut runs_on = monitor(&bucket);
    let mut read = Vec::new();
    for _ in 0..8 {
        for process in &processes {
            process
                .meter
                .note_received(Duration::from_secs(20), bucket.monotonic());
            process.meter.note_settled(50);
        }
        bucket.world.clock.advance(POLL);
        for process in &processes {
            process.post.post_if_due().await;
        }
        let anew = drain_secs(&monitor(&bucket)().await);
        bucket
            .world
            .local
            .state_store()
            .delete(PRESSURE_KEY)
            .await
            .unwrap();
        read.push((anew, drain_secs(&runs_on().await)));
    }
    // A thousand messages at 10 a second.
    assert_eq!(read, [(Some(100), Some(100)); 8]);
}

/// Late receives of deliver slow producers though the monitor runs elsewhere.
#[tokio::test]
async fn late_receives_of_deliver_slow_producers_from_elsewhere() {
    let bucket = Bucket::new();
    let world = &bucket.world;
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(200)]);
    publish(world, 30).await;
    assert_eq!(
        monitor(&bucket)().await.effective_level(),
        PressureLevel::Normal
    );
    world.clock.advance(Duration::from_secs(70));
    world.deliver().await;
    let post = DrainPost::new(world.drain.clone(), bucket.store(), bucket.clock(), "a");
    post.post_if_due().await;
    // Ten were settled in no time, but they had waited for 70 s.
    let state = monitor(&bucket)().await;
    assert_eq!(
        (drain_secs(&state), state.effective_level()),
        (Some(70), PressureLevel::Medium)
    );
    assert!(state.tarpit_ms > 0);
    world.deliver_all().await;
    world.clock.advance(POLL);
    assert_eq!(
        monitor(&bucket)().await.effective_level(),
        PressureLevel::Normal
    );
}

#[tokio::test]
async fn topic_whose_backlog_is_gone_is_free_again() {
    let bucket = Bucket::new();
    let world = &bucket.world;
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(200)]);
    publish(world, 30).await;
    world.clock.advance(Duration::from_secs(70));
    world.deliver().await;
    let post = DrainPost::new(world.drain.clone(), bucket.store(), bucket.clock(), "a");
    post.post_if_due().await;
    let state = monitor(&bucket)().await;
    let drains: Vec<_> = state.topics.iter().map(|of| &of.drain_time).collect();
    assert_eq!(drains.len(), 1);
    assert_eq!(
        (drains[0].reading, drains[0].level),
        (70, PressureLevel::Medium)
    );
    world.deliver_all().await;
    for _ in 0..10 {
        world.clock.advance(POLL);
        monitor(&bucket)().await;
    }
    assert_eq!(monitor(&bucket)().await.topics, []);
}

/// A message that comes back because it failed here does not read as a slow drain.
#[tokio::test]
async fn message_that_failed_and_comes_back_is_no_slow_drain() {
    let bucket = Bucket::new();
    let world = &bucket.world;
    world.subscribe(json!({})).await;
    world.endpoint.answer([Answer::Status(200)]);
    publish(world, 1).await;
    // An invocation that died with its message in flight, which comes back after its visibility
    // timeout.
    assert_eq!(world.receive(QueueName::Deliveries).await.len(), 1);
    world.clock.advance(Duration::from_mins(6));
    world.deliver().await;
    assert_eq!(world.endpoint.take().len(), 1);
    let drained = world.drained().await;
    assert_eq!((drained.messages, drained.waited_max), (1, Duration::ZERO));
}

/// Missing reports mean that there is no backlog, as long as a process receives.
#[tokio::test]
async fn missing_reports_mean_no_backlog_while_a_process_receives() {
    let bucket = Bucket::new();
    publish(&bucket.world, 40).await;
    let process = bucket.process("a");
    bucket.invoke(&process, 10, 1, 61).await;
    // One in ten seconds: forty take 400 s.
    assert_eq!(
        monitor(&bucket)().await.effective_level(),
        PressureLevel::High
    );
    bucket.world.clock.advance(Duration::from_secs(31));
    // Nothing is received either: nothing is known, and the level stays.
    let state = monitor(&bucket)().await;
    assert_eq!(
        (drain_secs(&state), state.effective_level()),
        (None, PressureLevel::High)
    );
    // Somebody receives, and nothing of it is late.
    assert_eq!(bucket.world.receive(QueueName::Deliveries).await.len(), 10);
    bucket.world.clock.advance(POLL);
    let state = monitor(&bucket)().await;
    assert_eq!(
        (drain_secs(&state), state.effective_level()),
        (Some(0), PressureLevel::Normal)
    );
}

#[tokio::test]
async fn messages_in_flight_stand_for_the_disk() {
    let bucket = Bucket::new();
    publish(&bucket.world, 10).await;
    assert_eq!(bucket.world.receive(QueueName::Deliveries).await.len(), 10);
    let state = monitor(&bucket)().await;
    let watched: Vec<_> = state
        .resources
        .iter()
        .map(|resource| resource.resource)
        .collect();
    assert_eq!(
        watched,
        [
            Resource::SubmissionQueue,
            Resource::DatabaseDisk,
            Resource::DeadLetterBacklog,
            Resource::DrainTime
        ]
    );
    // Ten of 120,000.
    assert_eq!(state.resource(Resource::DatabaseDisk).unwrap().reading, 0);
}
