//! The monitor's side on AWS: the recent reports of all processes of deliver.

use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::model::Timestamp;
use posthaste_core::pressure::{CURRENT_MAX, DrainLook, DrainReport};
use posthaste_core::stored::DRAIN;
use posthaste_core::stored::drain_report::parse_drain_report;
use posthaste_ports::{
    Clock, DrainSource, ErrorKind, LookTime, ObjectMeta, ObjectStore, PortError,
};

use crate::pages::list_pages;

/// Most pages of reports that are listed: more than the 1,000 processes that one event source
/// mapping may start, and those that ended lately.
const PAGES_MAX: usize = 4;

/// Most reports that are read. If there are more, the first ones count for all: their names are
/// random.
const READ_MAX: usize = 128;

/// Reports read or removed at once.
const AT_ONCE: usize = 32;

/// Most old reports removed in one look.
const REMOVED_MAX: usize = 128;

/// The age of a report at which its process counts as ended, and the report is removed.
const KEPT: Duration = Duration::from_mins(10);

/// Reads the reports of the processes. It remembers nothing between two reads, so that a monitor
/// that was restarted sees the same as the one before it.
#[derive(Debug, Clone)]
pub struct DrainReports<S, C> {
    store: S,
    clock: C,
}

impl<S: ObjectStore, C: Clock> DrainReports<S, C> {
    /// Reads from the state bucket.
    pub fn new(store: S, clock: C) -> Self {
        Self { store, clock }
    }

    async fn list_reports(&self) -> Result<Vec<ObjectMeta>, PortError> {
        let listed: Vec<_> = list_pages(&self.store, DRAIN, None)
            .take(PAGES_MAX)
            .try_collect()
            .await?;
        Ok(listed.into_iter().flat_map(|page| page.objects).collect())
    }

    /// Reads the report in an object of this age; `None` if the object is gone, or the report is
    /// too old.
    async fn read_report(
        &self,
        listed: ObjectMeta,
        age: Duration,
    ) -> Result<Option<DrainReport>, PortError> {
        let Some(object) = self.store.get(&listed.key).await? else {
            return Ok(None);
        };
        let report = parse_drain_report(&object.bytes).map_err(|error| {
            PortError::with_cause("understand a drain report", ErrorKind::Other, error)
        })?;
        Ok(Some(report).filter(|report| report.is_current(age)))
    }

    /// Removes the reports of ended processes. The next look finds those that are left.
    async fn remove_ended(&self, old: Vec<ObjectMeta>) {
        let removals = old
            .into_iter()
            .take(REMOVED_MAX)
            .map(async |object| self.store.delete(&object.key).await);
        let results: Vec<_> = stream::iter(removals)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        if let Some(Err(error)) = results.into_iter().find(Result::is_err) {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "old drain reports not removed"
            );
        }
    }
}

impl<S: ObjectStore, C: Clock> DrainSource for DrainReports<S, C> {
    /// Reads nothing while no message is visible. An `Err` if the reports could not be listed, or
    /// none of them could be read.
    async fn measure_drain(
        &self,
        visible: u64,
        time: LookTime,
    ) -> Result<Option<DrainLook>, PortError> {
        if visible == 0 {
            return Ok(None);
        }
        let listed = self.list_reports().await?;
        let now = self.clock.now();
        let (old, kept): (Vec<_>, Vec<_>) = listed
            .into_iter()
            .partition(|object| report_age(object, now) > KEPT);
        self.remove_ended(old).await;
        let recent: Vec<_> = kept
            .into_iter()
            .filter(|object| report_age(object, now) <= CURRENT_MAX)
            .collect();
        let processes = recent.len();
        let reads = recent.into_iter().take(READ_MAX).map(|object| {
            let age = report_age(&object, now);
            self.read_report(object, age)
        });
        let reads: Vec<_> = stream::iter(reads)
            .buffer_unordered(AT_ONCE)
            .collect()
            .await;
        combine_reports(reads, processes, time.elapsed)
    }
}

/// The age of a report by the store's clock. A report of the future is as old as it is early: it
/// cannot be known which of the two clocks is wrong, and neither may make a report current forever.
fn report_age(object: &ObjectMeta, now: Timestamp) -> Duration {
    now.since(object.modified_at)
        .max(object.modified_at.since(now))
}

fn combine_reports(
    reads: Vec<Result<Option<DrainReport>, PortError>>,
    processes: usize,
    elapsed: Duration,
) -> Result<Option<DrainLook>, PortError> {
    let mut current = Vec::new();
    let mut understood = 0;
    let mut failure = None;
    for read in reads {
        match read {
            Ok(report) => {
                understood += 1;
                current.extend(report);
            }
            Err(error) => failure = Some(error),
        }
    }
    if let Some(error) = failure {
        if understood == 0 {
            return Err(error);
        }
        tracing::warn!(
            error = &error as &dyn std::error::Error,
            "a drain report was passed over"
        );
    }
    if current.is_empty() {
        return Ok(None);
    }
    let look = DrainLook::from_reports(&current, elapsed, processes, understood);
    Ok(Some(look))
}
