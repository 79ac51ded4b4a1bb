//! An installation under test: its processes over the queues and stores that outlive them, and the
//! time that passes. Everything is done by one thread, in an order that its seed decides.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::task::{Context, Poll, Wake as Woken, Waker};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use http::Request as HttpRequest;
use posthaste_core::attempt::redelivery_backoff::redelivery_backoff;
use posthaste_core::lane::DeliveryLane;
use posthaste_core::model::{LetterPlace, Timestamp};
use posthaste_core::stored::{RecoveryMark, layout};
use posthaste_ports::{
    BatchResponse, Clock, QueueName, QueueReceiver, ReceiveRequest, ReceivedMessage,
};
use posthaste_services::LeftWork;
use posthaste_services::catch_panic::{CaughtPanic, catch_panic};
use posthaste_simulation::start;
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{Adversary, ManualClock, Mood};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{spawn_blocking, unconstrained, yield_now};

use crate::course::{Place, Setting, Wrong};
use crate::endpoint::Endpoints;
use crate::history::{Cause, Mishap};
use crate::idle::{IdleWatch, WentFrom};
use crate::queue::SimulatedQueue;
use crate::trouble::Trouble;
use crate::wiring::{Functions, MONITOR_PERIOD, Shared, label};

/// The time of an invocation, as in template.yaml.
const DELIVER_TIMEOUT: Duration = Duration::from_mins(2);
const OTHERS_TIMEOUT: Duration = Duration::from_mins(1);

/// The visibility timeout as a multiple of the function's.
const VISIBILITY_PER_TIMEOUT: u32 = 6;

/// Invocations of deliver at once in one process.
const INVOCATIONS_MAX: usize = 8;

/// Messages of one invocation of deliver, and of the others.
const DELIVER_BATCH: usize = 10;
const OTHERS_BATCH: usize = 1000;

/// The time between two batches of records: each becomes a file.
const RECORDS_WINDOW: Duration = Duration::from_secs(5);

/// The time between two runs of record that merge files of the log and look whether the numbers of
/// what waits are right.
const MERGE_PERIOD: Duration = Duration::from_mins(10);

/// The rest after a receive that brought nothing although something was visible.
const RECEIVE_REST: Duration = Duration::from_secs(1);

/// The period of wake.
const MINUTE: Duration = Duration::from_mins(1);

/// The longest that a client waits.
const CLIENT_PATIENCE: Duration = Duration::from_mins(3);

/// Turns of work that was left by those who waited for it.
const TURNS: usize = 40;

/// The beginning of what has a version, and what is put before a version to make a newer one of it.
const VERSION: &[u8] = br#"{"v":"#;
const NEWER: &[u8] = b"90";

/// Steps of one pass, after which something counts as stuck: a day of minutes has a few thousand.
const STEPS_MAX: u32 = 2_000_000;

type Task = Pin<Box<dyn Future<Output = Done>>>;

/// The end of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Done {
    Deliver(usize),
    DeadLetters,
    Redrive,
    Record,
    Wake,
    Other,
}

/// Says whether a task has become ready.
#[derive(Debug, Default)]
struct Flag(AtomicBool);

impl Woken for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A process, which runs until it ends, or is killed.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether one function runs"
)]
struct Process {
    functions: Functions,
    tasks: FuturesUnordered<Task>,
    /// Invocations of each worker.
    delivering: Vec<usize>,
    dead_letters_run: bool,
    redrive_runs: bool,
    /// The invocation of record, with records or by its schedule. It leaves work to another thread, so
    /// it is polled by itself, when nothing else moves.
    recording: Option<Task>,
    wake_runs: bool,
    is_ending: bool,
    /// Dropped last: what it runs dies with it.
    runtime: Runtime,
}

impl Process {
    fn is_idle(&self) -> bool {
        self.tasks.is_empty() && self.recording.is_none()
    }
}

/// The installation.
pub(crate) struct Installation {
    shared: Shared,
    trouble: Trouble,
    process: Option<Process>,
    /// The number of processes so far.
    processes: u64,
    /// Whether what waits is of versions that the processes do not know.
    is_former: bool,
    /// The minute in which wake ran last, by the clock's `monotonic`.
    minute: u64,
    /// The time at which monitor looks next.
    look_at: Duration,
    /// The time from which record merges next.
    merge_at: Duration,
    /// The times from which the queues are looked at again.
    rests: [(QueueName, Duration); 5],
    /// The processes that were killed.
    kills: u64,
    mishaps: Vec<Mishap>,
    probes: Vec<LetterPlace>,
    idle: IdleWatch,
    flag: Arc<Flag>,
    record_flag: Arc<Flag>,
    notes: Vec<String>,
}

/// The end of a client's request.
#[derive(Debug, Clone, Copy)]
enum Waiting<T> {
    /// No answer yet.
    Waits,
    Answered(T),
    /// The client has gone away.
    Gone,
}

impl Installation {
    /// One without topics.
    pub(crate) fn new(setting: Setting) -> Self {
        let clock = ManualClock::new(start());
        let store = || MemoryStore::with_clock(clock.clone());
        let trouble = Trouble::new();
        let shared = Shared {
            setting,
            endpoints: Endpoints::new(clock.clone(), &setting, &trouble),
            queue: SimulatedQueue::new(setting.place, clock.clone()),
            state: store(),
            bucket: store(),
            log: store(),
            mood: Mood::new(setting.seed, &setting.tricks()),
            clock,
        };
        let mut installation = Self {
            shared,
            trouble,
            process: None,
            processes: 0,
            is_former: false,
            minute: 0,
            look_at: Duration::ZERO,
            merge_at: MERGE_PERIOD,
            rests: QUEUES.map(|name| (name, Duration::ZERO)),
            kills: 0,
            mishaps: Vec::new(),
            probes: Vec::new(),
            idle: IdleWatch::default(),
            flag: Arc::default(),
            record_flag: Arc::default(),
            notes: Vec::new(),
        };
        installation.start();
        installation
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.clock.now()
    }

    pub(crate) fn monotonic(&self) -> Duration {
        self.shared.clock.monotonic()
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Takes out the notes of what went wrong since the last time.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        self.note_mishaps();
        std::mem::take(&mut self.notes)
    }

    /// Takes out the mishaps since the last time.
    pub(crate) fn take_mishaps(&mut self) -> Vec<Mishap> {
        self.note_mishaps();
        std::mem::take(&mut self.mishaps)
    }

    /// The letters that were sent to find out whether their endpoint is well.
    pub(crate) fn probes(&self) -> &[LetterPlace] {
        &self.probes
    }

    /// The subscriptions that went while something waited for them.
    pub(crate) fn went_from(&self) -> &[WentFrom] {
        self.idle.went()
    }

    /// Notes the letters that wake has sent as probes. Their mark knows them for a day and a half.
    fn note_probes(&mut self) {
        for (_, bytes) in self.shared.state.objects_under(layout::RECOVERY) {
            let probes = RecoveryMark::parse(&bytes).map(|mark| mark.probes);
            for probe in probes.into_iter().flatten() {
                if !self.probes.contains(&probe.letter) {
                    self.probes.push(probe.letter);
                }
            }
        }
    }

    /// Notes what went wrong at this moment.
    fn note_mishaps(&mut self) {
        let at = self.monotonic();
        for fault in self.trouble.take_happened() {
            let wrong = fault.wrong;
            let operation = fault.operation;
            let port = fault.port;
            let key = &fault.key;
            let note = format!("{at:?} {wrong:?}: {operation:?} of {port} {key}");
            self.notes.push(note);
            self.mishaps.push(Mishap {
                at,
                cause: match wrong {
                    Wrong::Panics | Wrong::ClientPanics => Cause::Panicked,
                    _ => Cause::Fault,
                },
                port: fault.port,
                key: fault.key,
            });
        }
        let plays = self.shared.mood.take_plays();
        let told = plays.iter();
        let told = told.map(|it| format!("{at:?} {:?}: {} {}", it.trick, it.port, it.key));
        self.notes.extend(told);
        self.mishaps.extend(plays.into_iter().map(|play| Mishap {
            at,
            cause: Cause::Trick(play.trick),
            port: play.port,
            key: play.key,
        }));
    }

    fn note(&mut self, cause: Cause) {
        self.note_mishaps();
        self.mishaps.push(Mishap::new(self.monotonic(), cause));
    }

    /// The clock moves, and what went wrong before is noted with the time before.
    fn advance(&mut self, length: Duration) {
        self.note_mishaps();
        self.idle
            .look(&self.shared.state, self.shared.clock.monotonic());
        self.shared.clock.advance(length);
    }

    /// The clock of the machine is set back.
    pub(crate) fn set_back(&mut self, length: Duration) {
        self.note(Cause::SetBack);
        self.shared.clock.set_back(length);
    }

    /// A call goes wrong, so many calls from now.
    pub(crate) fn arm(&self, calls: u16, wrong: Wrong) {
        self.trouble.arm(calls, wrong);
    }

    /// Nothing goes wrong of itself any more.
    pub(crate) fn calm(&self) {
        self.trouble.disarm();
        self.shared.mood.switch(false);
    }

    /// A process begins.
    pub(crate) fn start(&mut self) {
        self.processes += 1;
        self.shared.queue.forget_receivers();
        // One thread for what blocks: when it has done something new, it has done all before it.
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .build();
        let runtime = runtime.expect("a runtime");
        let functions = self.shared.functions(self.processes, &self.trouble.plan());
        let process = Process {
            delivering: vec![0; functions.workers.len()],
            functions,
            tasks: FuturesUnordered::new(),
            dead_letters_run: false,
            redrive_runs: false,
            recording: None,
            wake_runs: false,
            is_ending: false,
            runtime,
        };
        self.process = Some(process);
        self.minute = self.monotonic().as_secs() / 60;
        if self.shared.setting.place == Place::Serve {
            self.begin_serving();
        }
    }

    /// The work of a process that has its stores to itself.
    fn begin_serving(&mut self) {
        let left = LeftWork::From(self.now());
        self.begin_wake(left);
        self.begin_finish(left);
        let process = self.process();
        for worker in &process.functions.workers {
            let worker = Arc::clone(worker);
            process.tasks.push(Box::pin(async move {
                worker.hear_late_answers().await;
                Done::Other
            }));
        }
    }

    fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a process")
    }

    /// The process dies, with what it has under way.
    pub(crate) fn kill(&mut self) {
        self.kills += 1;
        self.note(Cause::Killed);
        self.shared.queue.kill();
        self.process = None;
    }

    /// Time passes in which nothing runs.
    pub(crate) fn pass_without_process(&mut self, length: Duration) {
        self.advance(length);
    }

    /// The process ends in order, and another one begins.
    pub(crate) fn restart(&mut self) {
        self.end();
        self.start();
    }

    /// The program is replaced, in order: by a former one, which does not know the versions of what
    /// waits, or by the one that does.
    pub(crate) fn become_former(&mut self, is_former: bool) {
        if self.is_former == is_former {
            return;
        }
        self.is_former = is_former;
        self.end();
        let changed = if is_former { newer } else { known };
        for name in [
            QueueName::Deliveries,
            QueueName::SlowDeliveries,
            QueueName::DeadLetters,
            QueueName::Redrive,
        ] {
            self.shared.queue.named(name).change_bodies(changed);
        }
        let state = &self.shared.state;
        for prefix in [layout::PARKED, layout::HELD, layout::REPLAYS] {
            for (key, bytes) in state.objects_under(prefix) {
                if let Some(bytes) = changed(&bytes) {
                    state.write_at(&key, bytes, self.shared.clock.now());
                }
            }
        }
        self.start();
    }

    /// The process ends in order.
    fn end(&mut self) {
        self.note(Cause::Restarted);
        let process = self.process();
        process.is_ending = true;
        for worker in &process.functions.workers {
            worker.stop();
        }
        process.functions.wake.stop();
        let end = self.monotonic() + CLIENT_PATIENCE;
        self.work();
        while self.monotonic() < end && !self.process().is_idle() {
            self.move_on(end);
            self.work();
        }
        // What is not done by then is cut, as after a grace period.
        self.note(Cause::Restarted);
        self.shared.queue.kill();
        self.process = None;
    }

    /// Time passes, and everything runs that is due.
    pub(crate) fn pass(&mut self, length: Duration) {
        let end = self.monotonic() + length;
        let mut steps = 0;
        self.work();
        while self.monotonic() < end {
            self.move_on(end);
            self.work();
            steps += 1;
            assert!(steps < STEPS_MAX, "time does not pass");
        }
    }

    /// Moves the clock to the next moment at which something is due.
    fn move_on(&mut self, end: Duration) {
        let clock = self.shared.clock.clone();
        let now = clock.monotonic();
        let sleeper = clock.next_due().map(|due| now + due.since(clock.now()));
        let minute = MINUTE * u32::try_from(self.minute + 1).unwrap_or(u32::MAX);
        let queues = self.rests.into_iter().filter_map(|(name, rest)| {
            let queue = self.shared.queue.named(name);
            let visible = if queue.visible() > 0 && self.has_room(name) {
                Some(now)
            } else {
                queue.next_visible()
            };
            Some(visible?.max(rest))
        });
        let look = self.shared.setting.has_pressure.then_some(self.look_at);
        let merge = self.merge_at;
        let all = sleeper
            .into_iter()
            .chain(queues)
            .chain(look)
            .chain([minute, merge, end]);
        let later = all.filter(|time| *time > now);
        let next = later.min().unwrap_or(now + Duration::from_millis(1));
        self.advance(next.saturating_sub(now));
    }

    fn has_room(&self, name: QueueName) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        match name {
            QueueName::Deliveries => self.free_worker(process, DeliveryLane::Quick).is_some(),
            QueueName::SlowDeliveries => self.free_worker(process, DeliveryLane::Slow).is_some(),
            QueueName::DeadLetters => !process.dead_letters_run,
            QueueName::Redrive => !process.redrive_runs,
            QueueName::Records => process.recording.is_none(),
        }
    }

    /// The worker for a lane that has the fewest invocations, if it may have one more. On AWS half
    /// of them are for each lane.
    fn free_worker(&self, process: &Process, lane: DeliveryLane) -> Option<usize> {
        let half = process.delivering.len() / 2;
        let (range, most) = match (self.shared.setting.place, lane) {
            (Place::Serve, _) => (0..process.delivering.len(), INVOCATIONS_MAX),
            (Place::Aws, DeliveryLane::Quick) => (0..half, 1),
            (Place::Aws, DeliveryLane::Slow) => (half..process.delivering.len(), 1),
        };
        let least = range.min_by_key(|worker| process.delivering[*worker])?;
        (process.delivering[least] < most).then_some(least)
    }

    /// Does all that can be done without time.
    fn work(&mut self) {
        loop {
            self.settle();
            if self.trouble.takes_kill() {
                self.kill();
                self.start();
                continue;
            }
            if self.process.as_ref().is_none_or(|it| it.is_ending) || !self.begin() {
                return;
            }
        }
    }

    /// Lets the tasks go on as far as they do without time.
    fn settle(&mut self) {
        let flag = Arc::clone(&self.flag);
        let record_flag = Arc::clone(&self.record_flag);
        let Some(process) = &mut self.process else {
            return;
        };
        let Process {
            tasks,
            delivering,
            dead_letters_run,
            redrive_runs,
            recording,
            wake_runs,
            runtime,
            ..
        } = process;
        let handle = runtime.handle().clone();
        runtime.block_on(unconstrained(async {
            loop {
                flag.0.store(false, Ordering::Relaxed);
                for done in poll_all(tasks, &flag).await {
                    match done {
                        Done::Deliver(worker) => delivering[worker] -= 1,
                        Done::DeadLetters => *dead_letters_run = false,
                        Done::Redrive => *redrive_runs = false,
                        Done::Wake => *wake_runs = false,
                        Done::Record | Done::Other => {}
                    }
                }
                let is_recording =
                    recording.is_some() && poll_record(recording, &record_flag).await;
                // What clients have left goes on as tasks of the runtime.
                let turns = if handle.metrics().num_alive_tasks() > 0 {
                    TURNS
                } else {
                    1
                };
                for _ in 0..turns {
                    yield_now().await;
                }
                if !is_recording && !flag.0.load(Ordering::Relaxed) {
                    return;
                }
            }
        }));
    }

    /// Begins what there is to do. False if that is nothing.
    fn begin(&mut self) -> bool {
        let minute = self.monotonic().as_secs() / 60;
        let mut has_begun = false;
        if minute > self.minute {
            self.minute = minute;
            self.note_probes();
            self.begin_wake(LeftWork::Old);
            if self.shared.setting.place == Place::Serve {
                self.begin_finish(LeftWork::Old);
            }
            has_begun = true;
        }
        if self.shared.setting.has_pressure && self.monotonic() >= self.look_at {
            self.look_at = self.monotonic() + MONITOR_PERIOD;
            self.begin_look();
            has_begun = true;
        }
        if self.monotonic() >= self.merge_at && self.process().recording.is_none() {
            self.merge_at = self.monotonic() + MERGE_PERIOD;
            self.begin_merge();
            has_begun = true;
        }
        for place in 0..self.rests.len() {
            let (name, rest) = self.rests[place];
            let is_due = self.monotonic() >= rest && self.has_room(name);
            if !is_due || self.shared.queue.named(name).visible() == 0 {
                continue;
            }
            let batch = self.receive(name);
            if batch.is_empty() {
                self.rests[place].1 = self.monotonic() + RECEIVE_REST;
                continue;
            }
            if name == QueueName::Records {
                self.rests[place].1 = self.monotonic() + RECORDS_WINDOW;
            }
            self.invoke(name, batch);
            has_begun = true;
        }
        has_begun
    }

    fn begin_wake(&mut self, left: LeftWork) {
        let process = self.process();
        if process.wake_runs {
            return;
        }
        process.wake_runs = true;
        let wake = Arc::clone(&process.functions.wake);
        process.tasks.push(Box::pin(async move {
            // A run that fails or panics is made again in the next minute.
            drop(catch_panic(wake.run_over(left)).await);
            Done::Wake
        }));
    }

    fn begin_look(&mut self) {
        let process = self.process();
        let Some(monitor) = process.functions.monitor.clone() else {
            return;
        };
        process.tasks.push(Box::pin(async move {
            // A look that fails or panics is followed by the next one.
            let mut monitor = monitor.lock().await;
            drop(catch_panic(monitor.poll_once()).await);
            Done::Other
        }));
    }

    fn begin_merge(&mut self) {
        let process = self.process();
        let record = Arc::clone(&process.functions.record);
        self.record_flag.0.store(true, Ordering::Relaxed);
        self.process().recording = Some(Box::pin(async move {
            // A run that fails or panics is made again ten minutes later.
            drop(catch_panic(record.merge()).await);
            Done::Record
        }));
    }

    fn begin_finish(&mut self, left: LeftWork) {
        let process = self.process();
        let manage = Arc::clone(&process.functions.manage);
        process.tasks.push(Box::pin(async move {
            // A run that panics is made again.
            let _ = catch_panic(manage.finish_left(left)).await;
            Done::Other
        }));
    }

    fn source(&self, name: QueueName) -> Adversary<SimulatedQueue> {
        Adversary::new(
            self.shared.queue.named(name),
            label(name),
            &self.shared.mood,
        )
    }

    fn receive(&mut self, name: QueueName) -> Vec<ReceivedMessage> {
        let is_deliver = matches!(name, QueueName::Deliveries | QueueName::SlowDeliveries);
        let max = if is_deliver {
            DELIVER_BATCH
        } else {
            OTHERS_BATCH
        };
        let source = self.source(name);
        let runtime = &self.process().runtime;
        let mut batch = Vec::new();
        while batch.len() < max {
            let request = ReceiveRequest {
                max: DELIVER_BATCH,
                visibility: timeout(name) * VISIBILITY_PER_TIMEOUT,
                wait: Duration::ZERO,
            };
            let received = runtime
                .block_on(source.receive(request))
                .unwrap_or_default();
            if received.is_empty() {
                break;
            }
            batch.extend(received);
        }
        batch
    }

    fn invoke(&mut self, name: QueueName, batch: Vec<ReceivedMessage>) {
        let source = self.source(name);
        let clock = self.shared.clock.clone();
        let place = self.shared.setting.place;
        let deadline = clock.monotonic() + timeout(name);
        let lane = match name {
            QueueName::SlowDeliveries => DeliveryLane::Slow,
            _ => DeliveryLane::Quick,
        };
        let worker = self
            .process
            .as_ref()
            .and_then(|it| self.free_worker(it, lane));
        let received = batch
            .iter()
            .map(|it| (it.clone(), it.receive_count))
            .collect::<Vec<_>>();
        let process = self.process();
        let functions = &process.functions;
        // A batch of which a function panics is left to its visibility timeout.
        let settle = async move |response: Result<BatchResponse, CaughtPanic>| {
            if let Ok(response) = response {
                settle(&source, received, response, timeout(name)).await;
            }
        };
        let task: Task = match name {
            QueueName::Deliveries | QueueName::SlowDeliveries => {
                let Some(worker) = worker else { return };
                process.delivering[worker] += 1;
                let deliver = Arc::clone(&functions.workers[worker]);
                Box::pin(async move {
                    let work = Box::pin(catch_panic(deliver.handle_in(lane, batch, deadline)));
                    let response = match place {
                        Place::Serve => work.await,
                        Place::Aws => {
                            match select(work, Box::pin(deliver.hear_late_answers())).await {
                                Either::Left((response, _)) => response,
                                Either::Right(((), work)) => work.await,
                            }
                        }
                    };
                    settle(response).await;
                    Done::Deliver(worker)
                })
            }
            QueueName::DeadLetters => {
                process.dead_letters_run = true;
                let function = Arc::clone(&functions.dead_letters);
                Box::pin(async move {
                    settle(catch_panic(function.handle(batch, deadline)).await).await;
                    Done::DeadLetters
                })
            }
            QueueName::Redrive => {
                process.redrive_runs = true;
                let function = Arc::clone(&functions.redrive);
                Box::pin(async move {
                    settle(catch_panic(function.handle(batch, deadline)).await).await;
                    Done::Redrive
                })
            }
            QueueName::Records => {
                let function = Arc::clone(&functions.record);
                self.record_flag.0.store(true, Ordering::Relaxed);
                self.process().recording = Some(Box::pin(async move {
                    settle(catch_panic(function.handle(batch, deadline)).await).await;
                    Done::Record
                }));
                return;
            }
        };
        process.tasks.push(task);
    }

    /// Asks the API. `None` if there is no answer: the client has gone, or the process was killed.
    pub(crate) fn ask(
        &mut self,
        method: &'static str,
        path: &str,
        body: &Value,
        gone: u8,
    ) -> Option<(u16, Value)> {
        let api = self.process().functions.api();
        let path = path.to_owned();
        let body = body.clone();
        self.in_client(gone, async move { api.ask(method, &path, &body).await })
    }

    /// Publishes to a topic, and answers the status.
    pub(crate) fn publish(
        &mut self,
        topic: &'static str,
        request: HttpRequest<Body>,
        gone: u8,
    ) -> Option<u16> {
        let publish = Arc::clone(&self.process().functions.publish);
        self.in_client(gone, async move {
            match publish.publish(topic, request).await {
                Ok(_) => 200,
                Err(error) => error.problem().status.as_u16(),
            }
        })
    }

    /// Work of a client, which goes away after so many turns, if that is not 0.
    fn in_client<T: 'static>(
        &mut self,
        gone: u8,
        work: impl Future<Output = T> + 'static,
    ) -> Option<T> {
        let slot = Rc::new(RefCell::new(Waiting::Waits));
        let answer = Rc::clone(&slot);
        // The connection of a request that panics is closed.
        let mut work = Some(Box::pin(catch_panic(work)));
        let mut turns = u32::from(gone);
        let client = poll_fn(move |context: &mut Context<'_>| {
            let Some(under_way) = &mut work else {
                return Poll::Ready(Done::Other);
            };
            let polled = under_way.as_mut().poll(context);
            turns = turns.saturating_sub(1);
            let end = match polled {
                Poll::Ready(Ok(output)) => Waiting::Answered(output),
                Poll::Ready(Err(CaughtPanic)) => Waiting::Gone,
                Poll::Pending if gone > 0 && turns == 0 => Waiting::Gone,
                Poll::Pending => return Poll::Pending,
            };
            work = None;
            *answer.borrow_mut() = end;
            Poll::Ready(Done::Other)
        });
        self.process().tasks.push(Box::pin(client));
        let end = self.monotonic() + CLIENT_PATIENCE;
        let kills = self.kills;
        loop {
            self.work();
            match slot.replace(Waiting::Waits) {
                Waiting::Waits => {}
                Waiting::Answered(answer) => return Some(answer),
                Waiting::Gone => return None,
            }
            if self.kills > kills {
                return None;
            }
            assert!(self.monotonic() < end, "a client has no answer");
            self.move_on(end);
        }
    }

    /// The messages of all queues.
    pub(crate) fn queued(&self) -> usize {
        let lengths = QUEUES.map(|name| self.shared.queue.named(name).length());
        lengths.iter().sum()
    }
}

const QUEUES: [QueueName; 5] = [
    QueueName::Deliveries,
    QueueName::SlowDeliveries,
    QueueName::DeadLetters,
    QueueName::Redrive,
    QueueName::Records,
];

fn timeout(name: QueueName) -> Duration {
    match name {
        QueueName::Deliveries | QueueName::SlowDeliveries => DELIVER_TIMEOUT,
        QueueName::DeadLetters | QueueName::Redrive | QueueName::Records => OTHERS_TIMEOUT,
    }
}

/// Polls the tasks that are ready until none is, and gives those that have ended.
async fn poll_all(tasks: &mut FuturesUnordered<Task>, flag: &Arc<Flag>) -> Vec<Done> {
    let waker = Waker::from(Arc::clone(flag));
    poll_fn(|_| {
        let mut context = Context::from_waker(&waker);
        let mut ended = Vec::new();
        loop {
            flag.0.store(false, Ordering::Relaxed);
            match tasks.poll_next_unpin(&mut context) {
                Poll::Ready(Some(done)) => ended.push(done),
                Poll::Pending if flag.0.load(Ordering::Relaxed) => {}
                Poll::Ready(None) | Poll::Pending => return Poll::Ready(ended),
            }
        }
    })
    .await
}

/// Polls record if it is ready, and waits for what it leaves to another thread. False if it was not
/// ready.
async fn poll_record(recording: &mut Option<Task>, flag: &Arc<Flag>) -> bool {
    if !flag.0.swap(false, Ordering::Relaxed) {
        return false;
    }
    // The other thread begins what it is left with only after the poll: whether it was quicker would
    // decide how far record comes in one.
    let (open, gate) = channel::<()>();
    drop(spawn_blocking(move || gate.recv().is_ok()));
    let waker = Waker::from(Arc::clone(flag));
    let is_over = poll_fn(|_| {
        let mut context = Context::from_waker(&waker);
        let polled = recording
            .as_mut()
            .map(|task| task.as_mut().poll(&mut context));
        Poll::Ready(polled.is_none_or(|it| it.is_ready()))
    });
    if is_over.await {
        *recording = None;
    }
    drop(open);
    // The other thread does one thing after the other, so what was left to it is done then. Nothing
    // goes on here meanwhile: how far would depend on the time that the thread takes.
    let (done, is_done) = channel();
    drop(spawn_blocking(move || done.send(())));
    // It is told, or the runtime ends.
    let _ = is_done.recv();
    true
}

/// A message or object that waits, as of a version that is not known yet. `None` if it has none.
fn newer(bytes: &Bytes) -> Option<Bytes> {
    let version = bytes.strip_prefix(VERSION)?;
    Some([VERSION, NEWER, version].concat().into())
}

/// The reverse of that.
fn known(bytes: &Bytes) -> Option<Bytes> {
    let version = bytes.strip_prefix(VERSION)?.strip_prefix(NEWER)?;
    Some([VERSION, version].concat().into())
}

/// Settles a batch as a poller does.
async fn settle(
    source: &Adversary<SimulatedQueue>,
    received: Vec<(ReceivedMessage, u32)>,
    response: BatchResponse,
    timeout: Duration,
) {
    for (message, receive_count) in received {
        // What cannot be settled is left to its visibility timeout.
        if response.failures.contains(&message.id) {
            let rest = redelivery_backoff(receive_count, timeout * VISIBILITY_PER_TIMEOUT);
            drop(source.change_visibility(&message.receipt, rest).await);
        } else {
            drop(source.acknowledge(&message.receipt).await);
        }
    }
}
