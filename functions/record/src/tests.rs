//! The world of this crate's tests: its ports in memory, and what a test looks at.

mod busy;
mod ending;
mod faults;
mod handling;
mod health;
mod merging;
mod refused;
mod summarizing;
mod waiting;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::delivery_log::{
    AttemptOrigin, FileKey, FileName, LogHour, LogRecord, LogResult, RecordFilter, RecordKind,
    WaitTransition, record_id, render_records,
};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{LogFile, LogReader, RowGroups, SummaryStore, write_file};
use posthaste_ports::{Clock, MessageId, PortBundle, QueueName, ReceiptHandle, ReceivedMessage};
use posthaste_services::{ArrivalTracker, WaitingBook, WakeSignaller};
use posthaste_testkit::memory::{MemoryQueue, MemoryStore};
use posthaste_testkit::{FaultPlan, Faulty, ManualClock, MemoryEndpoint, SeededEntropy};

use crate::aside::AsideStore;
use crate::health::HealthPorts;
use crate::record::{LogRecorder, RecordPorts, RecordSettings};
use crate::waiting_ports::WaitingPorts;

type Store = Faulty<MemoryStore>;
pub(crate) type TestPorts = PortBundle<
    Faulty<MemoryQueue>,
    Store,
    Store,
    Store,
    MemoryEndpoint,
    ManualClock,
    SeededEntropy,
>;

/// The prefix of the hour that most records of the tests are of.
pub(crate) const HOUR: &str = "date=2026-03-07/hour=03/";

const MINUTE: Duration = Duration::from_mins(1);

/// The ports, and what a test looks at.
pub(crate) struct Kit {
    pub(crate) clock: ManualClock,
    pub(crate) log: MemoryStore,
    pub(crate) state: MemoryStore,
    pub(crate) queue: MemoryQueue,
    pub(crate) record: LogRecorder<TestPorts>,
    plan: FaultPlan,
    settings: RecordSettings,
    runs: u64,
}

impl Kit {
    /// A kit at ten past three, in which everything goes well.
    pub(crate) fn new() -> Self {
        Self::with(&FaultPlan::none())
    }

    /// The same, in which calls fail by a plan.
    pub(crate) fn with(plan: &FaultPlan) -> Self {
        Self::with_settings(plan, RecordSettings::default())
    }

    /// The same, with these settings.
    pub(crate) fn with_settings(plan: &FaultPlan, settings: RecordSettings) -> Self {
        let clock = ManualClock::new(at("2026-03-07T03:10:00Z"));
        let log = MemoryStore::like_s3(7);
        let state = MemoryStore::like_s3(7);
        let queue = MemoryQueue::default();
        let ports = wire(&clock, (&log, &state, &queue), plan, 1);
        Self {
            clock,
            log,
            state,
            queue,
            record: LogRecorder::new(ports, settings.clone()),
            plan: plan.clone(),
            settings,
            runs: 1,
        }
    }

    /// A kit at ten past three, whose files that cannot be read have a store of their own.
    pub(crate) fn with_aside(aside: &MemoryStore) -> Self {
        let mut kit = Self::new();
        let aside = Faulty::new(aside.clone(), "aside", &kit.plan);
        let ports = RecordPorts {
            aside: AsideStore::in_own_store(aside),
            ..kit.ports()
        };
        kit.record = LogRecorder::new(ports, kit.settings.clone());
        kit
    }

    /// The ports of a process over the kit's stores.
    fn ports(&self) -> RecordPorts<TestPorts> {
        let stores = (&self.log, &self.state, &self.queue);
        wire(&self.clock, stores, &self.plan, self.runs)
    }

    /// Another process over the same stores, as after a kill.
    pub(crate) fn start_again(&mut self) {
        self.runs += 1;
        self.record = LogRecorder::new(self.ports(), self.settings.clone());
    }

    /// Handles messages of these records, until all are settled.
    pub(crate) async fn handle(&self, id: &str, records: &[LogRecord]) {
        let mut batch: Vec<_> = render_records(records)
            .into_iter()
            .map(|body| message(id, body))
            .collect();
        for _ in 0..3 {
            let failures = self
                .record
                .handle(batch.clone(), self.deadline())
                .await
                .failures;
            batch.retain(|message| failures.contains(&message.id));
        }
        assert!(batch.is_empty(), "a message never settled");
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.clock.monotonic() + MINUTE
    }

    /// Writes a fresh file without the function.
    pub(crate) fn put_fresh(&self, minute: u8, records: &[LogRecord]) -> String {
        let hour = LogHour::containing(records[0].time);
        let id = records[0].record_id.clone();
        let key = FileKey {
            hour,
            name: FileName::Fresh { minute, id },
        }
        .render();
        self.log.write_at(
            &key,
            write_file(records, RowGroups::default()).unwrap(),
            self.clock.now(),
        );
        key
    }

    /// Goes to six past four, when the hour is closed.
    pub(crate) fn close_hour(&self) {
        self.clock.advance_to(at("2026-03-07T04:06:00Z"));
    }

    /// The keys of merged and of fresh files.
    pub(crate) fn files(&self) -> [usize; 2] {
        let keys = self.log.keys("date=");
        let merged = keys.iter().filter(|key| key.contains("/merged-")).count();
        [merged, keys.len() - merged]
    }

    /// The files, as a reader's listing has them.
    pub(crate) fn log_files(&self) -> Vec<LogFile> {
        let files = self.log.objects_under("date=").into_iter();
        files
            .filter_map(|(key, bytes)| LogFile::new(key, bytes.len() as u64))
            .collect()
    }

    /// The ids of all records, each once, as the log's reader finds them.
    pub(crate) async fn ids(&self) -> BTreeSet<String> {
        let files = self.log_files();
        let reader = LogReader::new(&self.log, 1 << 20);
        let page = reader
            .list_records(&files, &RecordFilter::default(), 100_000)
            .await
            .unwrap();
        assert!(page.damaged.is_empty(), "{:?}", page.damaged);
        let ids: BTreeSet<_> = page.records.iter().map(|it| it.record_id.clone()).collect();
        assert_eq!(
            ids.len(),
            page.records.len(),
            "a reader shows a record twice"
        );
        ids
    }
}

/// The ports of health, over this state bucket.
fn health(clock: &ManualClock, state: &MemoryStore, plan: &FaultPlan) -> HealthPorts<TestPorts> {
    let state = Faulty::new(state.clone(), "state", plan);
    HealthPorts {
        arrivals: ArrivalTracker::new(state.clone(), clock.clone()).with_counting(),
        wake: WakeSignaller::new(Arc::new(state), clock.clone()),
        delayed_after: Duration::from_hours(1),
    }
}

fn wire(
    clock: &ManualClock,
    (log, state, queue): (&MemoryStore, &MemoryStore, &MemoryQueue),
    plan: &FaultPlan,
    seed: u64,
) -> RecordPorts<TestPorts> {
    RecordPorts {
        records: Faulty::new(queue.sibling_queue(QueueName::Records), "records", plan),
        state: Faulty::new(state.clone(), "state", plan),
        log: Faulty::new(log.clone(), "log", plan),
        aside: AsideStore::in_log(Faulty::new(log.clone(), "aside", plan)),
        summaries: SummaryStore::in_log(Faulty::new(log.clone(), "summaries", plan)),
        health: Some(health(clock, state, plan)),
        waiting: Some(WaitingPorts {
            book: WaitingBook::new(Faulty::new(state.clone(), "state", plan), clock.clone()),
            deliveries: Some(Faulty::new(
                queue.sibling_queue(QueueName::Deliveries),
                "deliveries",
                plan,
            )),
            others: vec![Faulty::new(
                queue.sibling_queue(QueueName::Redrive),
                "redrive",
                plan,
            )],
        }),
        clock: clock.clone(),
        entropy: SeededEntropy::new(seed),
    }
}

pub(crate) fn at(text: &str) -> Timestamp {
    Timestamp::parse(text).unwrap()
}

pub(crate) fn message(id: &str, body: impl Into<Bytes>) -> ReceivedMessage {
    ReceivedMessage {
        id: MessageId(id.into()),
        receipt: ReceiptHandle(id.into()),
        body: body.into(),
        receive_count: 1,
        sent_at: Timestamp::EPOCH,
    }
}

/// A record of the event `n`.
pub(crate) fn record(n: u64, time: Timestamp) -> LogRecord {
    let key = format!("{n:08x}-0");
    LogRecord {
        record_id: record_id(
            &format!("message-{n}"),
            1,
            &key,
            1,
            RecordKind::Attempt,
            time,
        ),
        time,
        kind: RecordKind::Attempt,
        topic: "orders".to_owned(),
        subscription: format!("sub-{}", n % 7),
        webhook_id: Some(format!("msg_{key}")),
        event_id: Some(format!("event-{n}")),
        delivery_key: key,
        attempt: 1,
        origin: AttemptOrigin::First,
        result: LogResult::Delivered,
        wait: WaitTransition::None,
        status: Some(200),
        answer: Some(format!("answer to {n}")),
        accepted_at: time,
        expires_at: time + Duration::from_hours(24),
        ..LogRecord::default()
    }
}

/// Records of these events, a second apart, from three o'clock.
pub(crate) fn records(events: std::ops::Range<u64>) -> Vec<LogRecord> {
    let start = at("2026-03-07T03:00:00Z");
    events
        .map(|n| record(n, start + Duration::from_secs(n % 3_000)))
        .collect()
}

/// The ids of records.
pub(crate) fn ids_of(records: &[LogRecord]) -> BTreeSet<String> {
    records
        .iter()
        .map(|record| record.record_id.clone())
        .collect()
}
