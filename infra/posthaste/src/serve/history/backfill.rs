//! What happened before the start, from the delivery log, so that a restart does not empty the charts.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_console::history::{Counts, STEP};
use posthaste_core::delivery_log::{Kind, LogResult, Record, RecordFilter};
use posthaste_core::model::Timestamp;
use posthaste_manage::DeliveryLog;
use posthaste_ports::{Clock, ObjectStore};

use super::ring::{Ring, STEPS_MAX, number};

/// Most records that are read, the newest first.
const RECORDS_MAX: usize = 100_000;

/// Longest time for reading them. A page that begins just before its end is still read.
const TIME_MAX: Duration = Duration::from_secs(20);

/// Records that are in memory at once.
const PAGE_RECORDS: usize = 5_000;

/// Fills the ring from the log.
#[derive(Debug, Clone)]
pub(super) struct Backfill<S, C> {
    pub(super) ring: Arc<Ring>,
    pub(super) log: DeliveryLog<S>,
    /// The time after which every record has come into the log.
    pub(super) delay: Duration,
    pub(super) clock: C,
}

impl<S: ObjectStore, C: Clock> Backfill<S, C> {
    /// Fills the day before `start`, as far as the bounds allow. The newest comes first.
    pub(super) async fn run(&self, start: Timestamp) {
        // The last records of the process before this one are still on their way.
        self.clock.sleep(self.delay).await;
        if let Err(error) = self.fill(start).await {
            let error = &error as &dyn Error;
            tracing::warn!(error, "the console's charts begin now: the delivery log could not be read");
        }
    }

    async fn fill(&self, start: Timestamp) -> Result<(), posthaste_delivery_log::LogError> {
        let until = self.clock.monotonic() + TIME_MAX;
        let Some(begins) = self.log.begins().await? else { return Ok(()) };
        let day_ms = STEP.as_secs() * 1_000 * STEPS_MAX as u64;
        let from = begins.max(Timestamp::from_millis(start.as_millis().saturating_sub(day_ms)));
        let mut filter = RecordFilter {
            from: Some(from),
            to: Some(start),
            without_payload: true,
            ..RecordFilter::default()
        };
        let (mut tally, mut records) = (Tally::new(start), 0);
        while records < RECORDS_MAX && self.clock.monotonic() < until {
            let page = self.log.list(&filter, PAGE_RECORDS, || self.clock.monotonic() < until).await?;
            records += page.records.len();
            page.records.iter().for_each(|record| tally.note(record));
            let Some(next) = page.next else {
                tally.put(&self.ring, number(from));
                return Ok(());
            };
            tally.put(&self.ring, number(next.time) + 1);
            filter.after = Some(next);
        }
        Ok(())
    }
}

/// Steps that are not in the ring yet.
struct Tally {
    steps: BTreeMap<u64, Counts>,
    /// The step above the next one that goes into the ring.
    end: u64,
    /// The last request. Events of a batch have one, and their records lie side by side.
    request: Option<(Timestamp, String)>,
}

impl Tally {
    fn new(start: Timestamp) -> Self {
        Self { steps: BTreeMap::new(), end: number(start) + 1, request: None }
    }

    fn note(&mut self, record: &Record) {
        let counts = self.steps.entry(number(record.time)).or_default();
        match (record.kind, record.result) {
            (Kind::Attempt, LogResult::Delivered) => counts.delivered = counts.delivered.saturating_add(1),
            (Kind::Attempt, _) => counts.failed = counts.failed.saturating_add(1),
            (Kind::DeadLettered, _) => counts.dead_lettered = counts.dead_lettered.saturating_add(1),
            _ => return,
        }
        let request = record.webhook_id.clone().map(|id| (record.time, id));
        if let Some(duration_ms) = record.duration_ms.filter(|_| request.is_none() || request != self.request) {
            counts.answers.note(duration_ms.into());
        }
        self.request = request;
    }

    /// Puts the steps from this one on into the ring, also those in which nothing happened: they are known.
    fn put(&mut self, ring: &Ring, first: u64) {
        for number in (first..self.end).rev() {
            ring.add_counts(number, &self.steps.remove(&number).unwrap_or_default());
        }
        self.end = self.end.min(first);
    }
}
