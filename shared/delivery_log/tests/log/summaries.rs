//! Look-ups by the summaries of days: they read less, and find the same.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::delivery_log::{LogDay, LogHour, LogRecord, RecordLookup};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{
    DaySummary, HourFilter, LogFile, LogReader, MergeLimits, SummaryStore, digest_of_hour,
    write_file,
};
use posthaste_ports::ObjectStore;
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{Recorded, RecordedCalls};
use proptest::prelude::*;

use crate::support::{
    DAY, HOUR_MS, fresh, hour_of_records, in_order, merge_all, merged, record, usual,
};

type RecordedStore = Recorded<MemoryStore>;

/// A log and its summaries.
#[derive(Default)]
struct SummarizedLog {
    store: MemoryStore,
    calls: RecordedCalls,
}

impl SummarizedLog {
    fn put(&self, key: &str, records: &[LogRecord]) {
        self.store.write(key, write_file(records, usual()).unwrap());
    }

    async fn remove(&self, key: &str) {
        self.store.delete(key).await.unwrap();
    }

    fn store(&self) -> RecordedStore {
        Recorded::new(self.store.clone(), "log", &self.calls)
    }

    fn summaries(&self) -> SummaryStore<RecordedStore> {
        SummaryStore::in_log(self.store())
    }

    fn files(&self) -> Vec<LogFile> {
        let files = self.store.objects_under("date=").into_iter();
        files
            .filter_map(|(key, bytes)| LogFile::new(key, bytes.len() as u64))
            .collect()
    }

    /// Makes the filters of all hours, or of those that are chosen.
    async fn summarize(&self, is_chosen: impl Fn(LogHour) -> bool) {
        let reader = LogReader::new(self.store(), 1 << 20);
        let mut hours = BTreeMap::<LogHour, Vec<LogFile>>::new();
        for file in self.files() {
            hours.entry(file.hour).or_default().push(file);
        }
        let mut days = BTreeMap::<LogDay, DaySummary>::new();
        for (hour, files) in hours.into_iter().filter(|(hour, _)| is_chosen(*hour)) {
            let day = LogDay::containing(hour);
            let summary = days.entry(day).or_insert_with(|| DaySummary::new(day));
            let filter = HourFilter::read_from(&reader, hour, &files).await.unwrap();
            filter.put_into(summary);
            assert_eq!(summary.hour_digest(hour), digest_of_hour(&files));
        }
        for (day, summary) in days {
            self.summaries().write(day, summary.render()).await.unwrap();
        }
        self.calls.take();
    }

    /// The records of a look-up by the summaries, as by a reader that knows none.
    async fn look_up(&self, look_up: &RecordLookup) -> Vec<LogRecord> {
        let plain = LogReader::new(self.store(), 1 << 20);
        let by_summaries = LogReader::new(self.store(), 1 << 20).with_summaries(self.summaries());
        let expected = plain.look_up(&self.files(), look_up).await.unwrap();
        self.calls.take();
        let found = by_summaries.look_up(&self.files(), look_up).await.unwrap();
        assert_eq!(found.records, expected.records);
        assert_eq!(
            (found.is_cut, found.searched_from, found.begins),
            (expected.is_cut, expected.searched_from, expected.begins)
        );
        found.records
    }
}

fn by_event(id: &str) -> RecordLookup {
    RecordLookup {
        event_id: Some(id.to_owned()),
        ..RecordLookup::default()
    }
}

fn by_request(id: &str) -> RecordLookup {
    RecordLookup {
        webhook_id: Some(id.to_owned()),
        ..RecordLookup::default()
    }
}

fn event_id(record: &LogRecord) -> &str {
    record.event_id.as_deref().unwrap()
}

/// Three hours with a file each, and their summary.
async fn three_hours() -> (SummarizedLog, Vec<Vec<LogRecord>>) {
    let log = SummarizedLog::default();
    let hours: Vec<_> = (0..3).map(|hour| hour_of_records(hour, 100)).collect();
    for (hour, records) in (0..).zip(&hours) {
        log.put(&fresh(hour, 1), records);
    }
    log.summarize(|_| true).await;
    (log, hours)
}

#[tokio::test]
async fn look_up_reads_only_the_hour_that_has_the_id() {
    let (log, hours) = three_hours().await;
    let found = log.look_up(&by_event(event_id(&hours[1][7]))).await;
    assert_eq!(found, [hours[1][7].clone()]);
    let read: BTreeSet<String> = log
        .calls
        .take()
        .into_iter()
        .filter(|call| call.key.starts_with("date="))
        .map(|call| call.key)
        .collect();
    assert_eq!(read.into_iter().collect::<Vec<_>>(), [fresh(1, 1)]);
    assert!(log.look_up(&by_event("none")).await.is_empty());
    // A list of the summaries, and one row of the day's.
    assert_eq!(log.calls.take().len(), 2);
}

#[tokio::test]
async fn webhook_ids_of_both_forms_are_found() {
    let (log, mut hours) = three_hours().await;
    let found = log
        .look_up(&by_request(hours[2][3].webhook_id.as_deref().unwrap()))
        .await;
    assert_eq!(found, [hours[2][3].clone()]);
    // One that tells its time, and was sent again three hours later under the same id.
    let accepted = DAY + HOUR_MS / 2;
    let id = format!("msg_{accepted:012x}7abc8def0123456789ab-0");
    for (hour, n) in [(0, 900), (5, 901)] {
        let told = LogRecord {
            webhook_id: Some(id.clone()),
            ..record(n, hour * HOUR_MS + HOUR_MS / 2)
        };
        log.put(&fresh(hour, 30), std::slice::from_ref(&told));
        hours.push(vec![told]);
    }
    log.summarize(|_| true).await;
    let found = log.look_up(&by_request(&id)).await;
    assert_eq!(found, in_order(hours[3..].concat()));
}

#[tokio::test]
async fn late_file_is_searched_before_it_is_summarized() {
    let (log, _) = three_hours().await;
    let late = record(999, HOUR_MS + 5);
    log.put(&fresh(1, 59), std::slice::from_ref(&late));
    assert_eq!(log.look_up(&by_event(event_id(&late))).await, [late]);
}

#[tokio::test]
async fn merged_hour_is_searched_before_it_is_summarized() {
    let (log, hours) = three_hours().await;
    // The merge takes a file with it that came after the filter was made.
    let late = record(999, HOUR_MS + 5);
    let files = [&hours[1][..], std::slice::from_ref(&late)]
        .map(|records| write_file(records, usual()).unwrap());
    let file = merge_all(files.to_vec(), MergeLimits::default()).remove(0);
    log.store.write(&merged(1, 0), file);
    log.remove(&fresh(1, 1)).await;
    assert_eq!(log.look_up(&by_event(event_id(&late))).await, [late]);
    let id = event_id(&hours[1][50]);
    assert_eq!(log.look_up(&by_event(id)).await.len(), 1);
}

#[tokio::test]
async fn damaged_summary_is_as_none() {
    let (log, hours) = three_hours().await;
    let key = format!("_summary/{}", LogDay::containing(hour(0)).summary_key());
    let bytes = log.store.objects_under("_summary/").remove(0).1;
    for damaged in [
        bytes.slice(..bytes.len() - 1),
        bytes.slice(..bytes.len() / 2),
        bytes
            .iter()
            .map(|byte| byte ^ 1)
            .collect::<Vec<u8>>()
            .into(),
        vec![0; bytes.len()].into(),
        Vec::new().into(),
    ] {
        log.store.write(&key, damaged);
        for records in &hours {
            let found = log.look_up(&by_event(event_id(&records[9]))).await;
            assert_eq!(found.len(), 1);
        }
    }
    log.remove(&key).await;
    assert_eq!(
        log.look_up(&by_event(event_id(&hours[0][9]))).await.len(),
        1
    );
}

fn hour(place: u64) -> LogHour {
    LogHour::containing(Timestamp::from_millis(DAY + place * HOUR_MS))
}

#[tokio::test]
async fn hour_with_a_damaged_file_stays_in_every_search() {
    let log = SummarizedLog::default();
    log.put(&fresh(0, 1), &hour_of_records(0, 50));
    let damaged = write_file(&hour_of_records(1, 50), usual()).unwrap();
    log.store
        .write(&fresh(1, 1), damaged.slice(..damaged.len() / 2));
    let other = record(777, HOUR_MS + 9);
    log.put(&fresh(1, 2), std::slice::from_ref(&other));
    log.summarize(|_| true).await;
    let reader = LogReader::new(log.store(), 1 << 20).with_summaries(log.summaries());
    let look_up = by_event(event_id(&other));
    let found = reader.look_up(&log.files(), &look_up).await.unwrap();
    assert_eq!((found.records.len(), found.damaged.len()), (1, 1));
    let found = reader
        .look_up(&log.files(), &by_event("none"))
        .await
        .unwrap();
    assert_eq!(found.damaged.len(), 1, "the file may have had it");
}

/// An hour of which all files are gone, and one that has no summary.
#[tokio::test]
async fn summary_of_other_hours_says_nothing() {
    let (log, hours) = three_hours().await;
    log.remove(&fresh(2, 1)).await;
    let new = hour_of_records(7, 100);
    log.put(&fresh(7, 1), &new);
    assert_eq!(log.look_up(&by_event(event_id(&new[3]))).await.len(), 1);
    assert!(
        log.look_up(&by_event(event_id(&hours[2][3])))
            .await
            .is_empty()
    );
}

#[tokio::test]
async fn search_that_ends_early_says_how_far_it_came() {
    let log = SummarizedLog::default();
    for place in 0..40 {
        log.put(&fresh(place * 24, 1), &hour_of_records(place * 24, 3));
    }
    log.summarize(|_| true).await;
    let reader = LogReader::new(log.store(), 1 << 20).with_summaries(log.summaries());
    let none = by_event("none");
    let found = reader
        .look_up_while(&log.files(), &none, || false)
        .await
        .unwrap();
    let oldest_searched = hour(8 * 24).start();
    assert_eq!(found.searched_from, Some(oldest_searched));
    assert_eq!(found.begins, Some(hour(0).start()));
    let found = reader
        .look_up_while(&log.files(), &none, || true)
        .await
        .unwrap();
    assert_eq!(found.searched_from, None);
}

/// The reads of a look-up in 30 days of 24 hours, before and after. The result is the same.
#[tokio::test]
async fn thirty_days_are_searched_in_a_read_a_day() {
    let log = SummarizedLog::default();
    for place in 0..720 {
        log.put(&merged(place, 0), &hour_of_records(place, 4));
    }
    log.summarize(|_| true).await;
    let wanted = &hour_of_records(100, 4)[3];
    let look_up = by_event(event_id(wanted));
    let mut counts = Vec::new();
    for summaries in [None, Some(log.summaries())] {
        let reader = LogReader::new(log.store(), 1 << 20);
        let reader = match summaries {
            Some(summaries) => reader.with_summaries(summaries),
            None => reader,
        };
        let found = reader.look_up(&log.files(), &look_up).await.unwrap();
        assert_eq!(found.records, std::slice::from_ref(wanted));
        let calls = log.calls.take();
        let bytes: usize = calls.iter().map(|call| call.bytes).sum();
        counts.push((calls.len(), bytes));
    }
    eprintln!("requests and bytes before, after: {counts:?}");
    // Before: one read and more for each hour. After: a list of the summaries, a row
    // of each day, and the one hour.
    assert!(
        counts[0].0 > 720 && counts[1].0 <= 1 + 30 + 25,
        "{counts:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// A look-up finds the same as one without summaries, whatever happened to the files since the
    /// filters were made.
    #[test]
    fn look_up_never_misses_a_record(
        first in proptest::collection::vec((0_u64..30, 0_u8..4, 1_u64..30), 1..12),
        summarized in proptest::collection::vec(any::<bool>(), 30),
        later in proptest::collection::vec((0_u64..30, 0_u8..6, 1_u64..30, any::<bool>()), 0..12),
        asked in 0_u64..2_000,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let log = SummarizedLog::default();
            let records = |hour: u64, minute: u8, count: u64| -> Vec<LogRecord> {
                let first = hour * 40 + u64::from(minute);
                (first..first + count).map(|n| record(n, hour * HOUR_MS + n)).collect()
            };
            for (hour, minute, count) in first {
                log.put(&fresh(hour, minute), &records(hour, minute, count));
            }
            log.summarize(|it| (0..30).any(|n| summarized[n] && hour(n as u64) == it)).await;
            for (hour, minute, count, is_removed) in later {
                if is_removed {
                    log.remove(&fresh(hour, minute)).await;
                } else {
                    log.put(&fresh(hour, minute + 6), &records(hour, minute, count));
                }
            }
            let wanted = record(asked, 0);
            log.look_up(&by_event(event_id(&wanted))).await;
            log.look_up(&by_request(wanted.webhook_id.as_deref().unwrap())).await;
        });
    }
}
