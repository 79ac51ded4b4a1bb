//! The time before the start, from the delivery log, so that a restart does not empty the charts.
//! Topics with `deliveryLog: off` are not in the log, so the charts leave them out until the start.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_console::history::{STEP, StepCounts};
use posthaste_core::delivery_log::{LogRecord, LogResult, RecordFilter, RecordKind};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{DeliveryLog, LogError};
use posthaste_ports::{Clock, ObjectStore};

use super::ring::{STEPS_MAX, StepRing, step_number};

/// Most records that are read, the newest first.
const RECORDS_MAX: usize = 100_000;

/// Longest time for reading them. A page that begins just before its end is still read.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Records that are in memory at once.
const PAGE_RECORDS: usize = 5_000;

/// Fills the ring from the log.
#[derive(Debug, Clone)]
pub(super) struct HistoryBackfill<S, C> {
    pub(super) ring: Arc<StepRing>,
    pub(super) log: DeliveryLog<S>,
    /// The time after which every record has come into the log.
    pub(super) delay: Duration,
    pub(super) clock: C,
}

impl<S: ObjectStore, C: Clock> HistoryBackfill<S, C> {
    /// Fills the day before `start`, as far as the bounds allow. The newest comes first. Before the
    /// first record of a log that begins in this day nothing is known.
    pub(super) async fn run(&self, start: Timestamp) {
        // The last records of the process before this one are still on their way.
        self.clock.sleep(self.delay).await;
        if let Err(error) = self.fill_ring(start).await {
            let error = &error as &dyn Error;
            tracing::warn!(
                error,
                "the console's charts begin now: the delivery log could not be read"
            );
        }
    }

    async fn fill_ring(&self, start: Timestamp) -> Result<(), LogError> {
        let until = self.clock.monotonic() + TIME_MAX;
        let Some(begins) = self.log.begins_at().await? else {
            return Ok(());
        };
        let day_ms = STEP.as_secs() * 1_000 * STEPS_MAX as u64;
        let from = Timestamp::from_millis(start.as_millis().saturating_sub(day_ms));
        let mut filter = RecordFilter {
            from: Some(from),
            to: Some(start),
            without_payload: true,
            ..RecordFilter::default()
        };
        let mut tally = StepTally::new(start);
        let mut records = 0;
        while records < RECORDS_MAX && self.clock.monotonic() < until {
            let page = self
                .log
                .list_records(&filter, PAGE_RECORDS, || self.clock.monotonic() < until)
                .await?;
            records += page.records.len();
            page.records
                .iter()
                .for_each(|record| tally.note_record(record));
            let Some(next) = page.next else {
                let first = if begins < from {
                    Some(from)
                } else {
                    tally.oldest
                };
                if let Some(first) = first {
                    tally.put_steps(&self.ring, step_number(first));
                }
                return Ok(());
            };
            tally.put_steps(&self.ring, step_number(next.time) + 1);
            filter.after = Some(next);
        }
        Ok(())
    }
}

/// Steps that are not in the ring yet.
struct StepTally {
    steps: BTreeMap<u64, StepCounts>,
    /// The step above the next one that goes into the ring.
    end: u64,
    /// The last request. Events of a batch have one, and their records lie side by side.
    request: Option<(Timestamp, String)>,
    /// The time of the oldest record so far.
    oldest: Option<Timestamp>,
}

impl StepTally {
    fn new(start: Timestamp) -> Self {
        Self {
            steps: BTreeMap::new(),
            end: step_number(start) + 1,
            request: None,
            oldest: None,
        }
    }

    fn note_record(&mut self, record: &LogRecord) {
        self.oldest = Some(record.time);
        let counts = self.steps.entry(step_number(record.time)).or_default();
        if record.result == LogResult::Dropped {
            counts.unkept = counts.unkept.saturating_add(1);
        }
        match (record.kind, record.result) {
            (RecordKind::Attempt, LogResult::Delivered) => {
                counts.delivered = counts.delivered.saturating_add(1);
            }
            (RecordKind::Attempt, _) => counts.failed = counts.failed.saturating_add(1),
            (RecordKind::DeadLettered, _) => {
                counts.dead_lettered = counts.dead_lettered.saturating_add(1);
            }
            _ => return,
        }
        let request = record.webhook_id.clone().map(|id| (record.time, id));
        let is_new = request.is_none() || request != self.request;
        // A request without a status was not answered.
        if let Some(duration_ms) = record.status.and(record.duration_ms).filter(|_| is_new) {
            counts.answers.record_duration(duration_ms.into());
        }
        self.request = request;
    }

    /// Puts the steps from this one on into the ring, also those in which nothing happened: they
    /// are known.
    fn put_steps(&mut self, ring: &StepRing, first: u64) {
        for number in (first..self.end).rev() {
            ring.add_counts(number, &self.steps.remove(&number).unwrap_or_default());
        }
        self.end = self.end.min(first);
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::tests::known;
    use super::*;
    use posthaste_console::history::{HistoryStep, InstallationHistory};
    use posthaste_core::delivery_log::{FileKey, FileName, LogHour};
    use posthaste_delivery_log::{RowGroups, write_file};
    use posthaste_testkit::ManualClock;
    use posthaste_testkit::memory::MemoryStore;

    /// 2023-11-14 22:13:20 UTC.
    const START_SECS: u64 = 1_700_000_000;
    const START: Timestamp = Timestamp::from_millis(START_SECS * 1_000);

    fn record(secs_before: u64, n: usize, kind: RecordKind, result: LogResult) -> LogRecord {
        LogRecord {
            record_id: format!("{n:032x}"),
            time: Timestamp::from_millis((START_SECS - secs_before) * 1_000),
            kind,
            result,
            topic: "orders".to_owned(),
            subscription: "billing".to_owned(),
            delivery_key: format!("{n}-0"),
            webhook_id: Some(format!("msg_{n}")),
            duration_ms: Some(20),
            status: Some(200),
            ..LogRecord::default()
        }
    }

    /// The ring after a start, with these records in the log.
    async fn filled(records: &[LogRecord]) -> Arc<StepRing> {
        let store = MemoryStore::default();
        let hours: std::collections::BTreeSet<_> = records
            .iter()
            .map(|it| LogHour::containing(it.time))
            .collect();
        for hour in hours {
            let of_hour: Vec<_> = records
                .iter()
                .filter(|it| LogHour::containing(it.time) == hour)
                .cloned()
                .collect();
            let key = FileKey {
                hour,
                name: FileName::Fresh {
                    minute: 0,
                    id: "a".to_owned(),
                },
            }
            .render();
            store.write(&key, write_file(&of_hour, RowGroups::default()).unwrap());
        }
        let ring = Arc::new(StepRing::default());
        let clock = ManualClock::new(START);
        let log = DeliveryLog::new(store);
        let backfill = HistoryBackfill {
            ring: Arc::clone(&ring),
            log,
            delay: Duration::ZERO,
            clock,
        };
        backfill.run(START).await;
        ring
    }

    /// Steps without any record in the log are known to be empty.
    #[tokio::test]
    async fn steps_before_the_start_are_filled_from_the_log() {
        let attempt = |secs_before, n, result| record(secs_before, n, RecordKind::Attempt, result);
        let ring = filled(&[
            attempt(25, 1, LogResult::Delivered),
            attempt(25, 2, LogResult::Retry),
            attempt(24, 3, LogResult::DeadLettered),
            record(24, 4, RecordKind::DeadLettered, LogResult::DeadLettered),
            record(24, 8, RecordKind::GivenUp, LogResult::Dropped),
            record(23, 5, RecordKind::Held, LogResult::Held),
            attempt(90_000, 6, LogResult::Delivered),
            attempt(3, 7, LogResult::Delivered),
        ])
        .await;
        let mut steps = Vec::<HistoryStep>::new();
        let time = Timestamp::from_millis((START_SECS - 40) * 1_000)..START;
        ring.for_each_step(time, &mut |_, step| steps.push(*step));
        let counts: Vec<_> = steps
            .iter()
            .map(|step| {
                step.counts
                    .map(|it| [it.delivered, it.failed, it.dead_lettered, it.unkept])
                    .unwrap()
            })
            .collect();
        assert_eq!(
            counts,
            [[0, 0, 0, 0], [1, 2, 1, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
        );
        // A day, and the step in which the start is.
        let all = known(&ring, 0..START_SECS + 10);
        assert_eq!((all.len(), all.last()), (STEPS_MAX, Some(&(START_SECS, 0))));
    }

    #[tokio::test]
    async fn a_request_counts_once_however_many_events_it_had() {
        let mut batch: Vec<_> = (0..5)
            .map(|n| record(5, n, RecordKind::Attempt, LogResult::Delivered))
            .collect();
        for record in &mut batch {
            record.webhook_id = Some("msg_batch".to_owned());
        }
        let ring = filled(&batch).await;
        let mut answers = Vec::new();
        let time = Timestamp::from_millis((START_SECS - 10) * 1_000)..START;
        ring.for_each_step(time, &mut |_, step| {
            answers.extend(step.counts.map(|it| (it.delivered, it.answers)));
        });
        let mut one = posthaste_console::history::ResponseTimes::default();
        one.record_duration(20.0);
        assert_eq!(answers, [(5, one)]);
    }

    #[tokio::test]
    async fn a_request_without_an_answer_is_no_answer() {
        let refused = LogRecord {
            status: None,
            ..record(5, 1, RecordKind::Attempt, LogResult::Retry)
        };
        let ring = filled(&[refused]).await;
        let mut found = Vec::new();
        let time = Timestamp::from_millis((START_SECS - 10) * 1_000)..START;
        ring.for_each_step(time, &mut |_, step| {
            found.extend(step.counts.map(|it| (it.failed, it.answers)));
        });
        assert_eq!(
            found,
            [(1, posthaste_console::history::ResponseTimes::default())]
        );
    }

    #[tokio::test]
    async fn before_the_first_record_of_a_new_log_nothing_is_known() {
        let ring = filled(&[record(25, 1, RecordKind::Attempt, LogResult::Delivered)]).await;
        let all = known(&ring, 0..START_SECS + 10);
        assert_eq!(
            all.iter()
                .map(|(at, _)| START_SECS - at)
                .collect::<Vec<_>>(),
            [30, 20, 10, 0]
        );
        // The log of a server that has never run before has records of this start alone.
        let after = Timestamp::from_millis((START_SECS + 3) * 1_000);
        let own = LogRecord {
            time: after,
            ..record(0, 1, RecordKind::Attempt, LogResult::Delivered)
        };
        assert_eq!(known(&*filled(&[own]).await, 0..START_SECS + 100), []);
    }

    #[tokio::test]
    async fn steps_beyond_the_record_limit_stay_unknown() {
        let records: Vec<_> = (0..RECORDS_MAX + 10_000)
            .map(|n| record(n as u64 / 100, n, RecordKind::Attempt, LogResult::Delivered))
            .collect();
        let ring = filled(&records).await;
        let all = known(&ring, 0..START_SECS + 100);
        let counted: u32 = all.iter().map(|(_, delivered)| delivered).sum();
        // 100 in a second: 1000 s, of which the oldest step may be known in part and is left out.
        assert!((98..=101).contains(&all.len()), "{}", all.len());
        assert!(
            all[1..all.len() - 1]
                .iter()
                .all(|(_, delivered)| *delivered == 1000),
            "{all:?}"
        );
        assert!(counted as usize <= RECORDS_MAX);
    }

    #[tokio::test]
    async fn an_empty_log_says_nothing() {
        assert_eq!(known(&*filled(&[]).await, 0..START_SECS + 100), []);
    }
}
