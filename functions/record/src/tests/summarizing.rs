//! Summaries of days: when the filter of an hour is made, and when it is made again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use posthaste_core::delivery_log::{LogDay, MergeCheckpoint, RecordLookup};
use posthaste_core::stored::{RECORD_LEASE, StoredLease};
use posthaste_delivery_log::digest_of_hour;
use posthaste_ports::ErrorKind;
use posthaste_testkit::faulty::at_every_effect;
use posthaste_testkit::{CallFault, PortOperation};

use super::*;

const SUMMARY: &str = "_summary/2026-03-07";

fn hour() -> LogHour {
    LogHour::containing(at("2026-03-07T03:00:00Z"))
}

impl Kit {
    /// The files of the hour, if its filter was made of just them.
    async fn is_summarized(&self, hour: LogHour) -> bool {
        let files: Vec<_> = self
            .log_files()
            .into_iter()
            .filter(|file| file.hour == hour)
            .collect();
        let summaries = SummaryStore::in_log(&self.log);
        let summary = summaries.read(LogDay::containing(hour)).await.unwrap();
        summary.hour_digest(hour) == digest_of_hour(&files)
    }

    /// The records of an event, as a reader with summaries finds them.
    async fn found(&self, event: u64) -> usize {
        let reader = LogReader::new(&self.log, 1 << 20);
        let reader = reader.with_summaries(SummaryStore::in_log(&self.log));
        let look_up = RecordLookup {
            event_id: Some(format!("event-{event}")),
            ..RecordLookup::default()
        };
        let found = reader.look_up(&self.log_files(), &look_up).await.unwrap();
        found.records.len()
    }

    fn checkpoint(&self) -> MergeCheckpoint {
        let (_, lease) = self.state.objects_under(RECORD_LEASE).remove(0);
        StoredLease::parse(&lease).unwrap().checkpoint
    }

    fn summary(&self) -> Option<Bytes> {
        let found = self.log.objects_under(SUMMARY).into_iter().next();
        found.map(|(_, bytes)| bytes)
    }
}

#[tokio::test]
async fn hour_has_a_filter_once_it_is_closed() {
    let kit = Kit::new();
    kit.put_fresh(7, &records(0..50));
    kit.record.merge().await.unwrap();
    assert_eq!(kit.summary(), None);
    kit.close_hour();
    let report = kit.record.merge().await.unwrap();
    assert_eq!(report.hours_left, 0);
    assert!(kit.is_summarized(hour()).await);
    assert_eq!((kit.found(7).await, kit.found(50).await), (1, 0));
}

#[tokio::test]
async fn filter_is_that_of_the_merged_hour() {
    let kit = Kit::new();
    for some in records(0..50).chunks(10) {
        kit.put_fresh(7, some);
    }
    kit.close_hour();
    kit.record.merge().await.unwrap();
    assert_eq!(kit.files(), [1, 0]);
    assert!(kit.is_summarized(hour()).await);
    assert_eq!(kit.found(41).await, 1);
}

#[tokio::test]
async fn late_records_make_the_filter_anew() {
    let kit = Kit::new();
    kit.put_fresh(7, &records(0..50));
    kit.close_hour();
    kit.record.merge().await.unwrap();
    kit.put_fresh(59, &records(100..105));
    assert!(!kit.is_summarized(hour()).await);
    assert_eq!(kit.found(102).await, 1, "before the next run");
    kit.record.merge().await.unwrap();
    assert!(kit.is_summarized(hour()).await);
    assert_eq!((kit.found(102).await, kit.found(3).await), (1, 1));
}

/// A run that finds all filters up to date reads no summary, and another process reads one row.
#[tokio::test]
async fn filter_that_is_up_to_date_is_left_alone() {
    let mut kit = Kit::new();
    kit.put_fresh(7, &records(0..50));
    kit.close_hour();
    kit.record.merge().await.unwrap();
    let made = kit.summary();
    kit.log.write(SUMMARY, "damaged");
    kit.record.merge().await.unwrap();
    assert_eq!(kit.summary().unwrap(), "damaged", "it was not even read");
    kit.log.write(SUMMARY, made.clone().unwrap());
    kit.plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.port == "summaries" && effect.operation != PortOperation::GetRange
    });
    kit.start_again();
    kit.record.merge().await.unwrap();
    assert_eq!(kit.summary(), made);
}

#[tokio::test]
async fn damaged_summary_is_made_anew_by_another_process() {
    let mut kit = Kit::new();
    kit.put_fresh(7, &records(0..50));
    kit.close_hour();
    kit.record.merge().await.unwrap();
    let made = kit.summary();
    kit.log.write(SUMMARY, "damaged");
    assert_eq!(kit.found(3).await, 1);
    kit.start_again();
    kit.record.merge().await.unwrap();
    assert_eq!(kit.summary(), made);
}

#[tokio::test]
async fn hours_of_one_day_share_its_summary() {
    let kit = Kit::new();
    kit.put_fresh(7, &records(0..50));
    kit.close_hour();
    kit.record.merge().await.unwrap();
    kit.put_fresh(7, &[record(200, at("2026-03-07T04:07:00Z"))]);
    kit.put_fresh(7, &[record(300, at("2026-03-06T23:07:00Z"))]);
    kit.clock.advance_to(at("2026-03-07T05:05:00Z"));
    kit.record.merge().await.unwrap();
    let days = kit.log.keys("_summary/");
    assert_eq!(days, ["_summary/2026-03-06", SUMMARY]);
    for place in [
        "2026-03-06T23:00:00Z",
        "2026-03-07T03:00:00Z",
        "2026-03-07T04:00:00Z",
    ] {
        assert!(
            kit.is_summarized(LogHour::containing(at(place))).await,
            "{place}"
        );
    }
    let found = [
        kit.found(3).await,
        kit.found(200).await,
        kit.found(300).await,
    ];
    assert_eq!(found, [1, 1, 1]);
}

/// A damaged file is set aside by the merge. A part of several stays, and its hour is always
/// searched.
#[tokio::test]
async fn hour_with_a_damaged_file_is_searched_always() {
    let kit = Kit::new();
    let key = kit.put_fresh(7, &records(0..50));
    let bytes = kit.log.objects_under(&key).remove(0).1;
    kit.log.write(&key, bytes.slice(..bytes.len() / 2));
    kit.close_hour();
    kit.record.merge().await.unwrap();
    assert!(kit.is_summarized(hour()).await);
    let reader = LogReader::new(&kit.log, 1 << 20);
    let reader = reader.with_summaries(SummaryStore::in_log(&kit.log));
    kit.put_fresh(7, &[record(300, at("2026-03-07T04:07:00Z"))]);
    let look_up = RecordLookup {
        event_id: Some("event-3".to_owned()),
        ..RecordLookup::default()
    };
    let found = reader.look_up(&kit.log_files(), &look_up).await.unwrap();
    assert_eq!(found.damaged.len(), 1);
}

#[tokio::test]
async fn summary_that_the_store_refuses_is_written_by_the_next_run() {
    for operation in [
        PortOperation::Put,
        PortOperation::Get,
        PortOperation::GetRange,
    ] {
        let plan = FaultPlan::nth_of(0, CallFault::Before(ErrorKind::Other), move |effect| {
            effect.port == "summaries" && effect.operation == operation
        });
        let kit = Kit::with(&plan);
        kit.put_fresh(7, &records(0..50));
        kit.close_hour();
        let report = kit.record.merge().await.unwrap();
        assert_eq!(report.hours_left, 1, "{operation:?}");
        assert_eq!(kit.found(3).await, 1);
        assert_eq!(kit.record.merge().await.unwrap().hours_left, 0);
        assert!(kit.is_summarized(hour()).await);
    }
}

/// A store that refuses summaries for good does not have each run list the whole log.
#[tokio::test]
async fn summaries_that_fail_stop_no_look_at_all_hours() {
    let plan = FaultPlan::at(CallFault::Before(ErrorKind::Other), |effect| {
        effect.port == "summaries" && effect.operation == PortOperation::Put
    });
    let kit = Kit::with(&plan);
    kit.put_fresh(7, &records(0..50));
    kit.close_hour();
    assert_eq!(kit.record.merge().await.unwrap().hours_left, 1);
    assert!(kit.checkpoint().all_merged_at.is_some());
}

/// An event is found, and a later run has all filters, whatever fails and wherever a run is cut
/// short.
#[tokio::test]
async fn faults_never_hide_an_event() {
    at_every_effect(async |plan, place| {
        let mut kit = Kit::with(plan);
        for some in records(0..30).chunks(10) {
            kit.put_fresh(7, some);
        }
        kit.close_hour();
        let _ = kit.record.merge().await;
        for event in [0, 11, 29] {
            assert_eq!(kit.found(event).await, 1, "{place}");
        }
        plan.switch(false);
        kit.clock.advance(MINUTE * 5);
        kit.start_again();
        kit.record.merge().await.unwrap();
        assert!(kit.is_summarized(hour()).await, "{place}");
    })
    .await;
}

#[tokio::test]
async fn summaries_go_with_the_last_files_of_their_days() {
    let kit = Kit::new();
    for day in ["2026-02-27", "2026-02-28", "2026-03-07"] {
        kit.log.write(&format!("_summary/{day}"), "a summary");
    }
    kit.put_fresh(7, &[record(1, at("2026-02-28T05:00:00Z"))]);
    kit.record.delete_ended_files(None).await.unwrap();
    let left = ["_summary/2026-02-28", SUMMARY];
    assert_eq!(kit.log.keys("_summary/"), left);
    kit.clock.advance_to(at("2026-03-09T00:00:00Z"));
    kit.record.delete_ended_files(None).await.unwrap();
    assert_eq!(kit.log.keys(""), Vec::<String>::new());
}

/// The store hangs while the summary is read or written, until the time of the run is over. What is
/// left for want of time has the next look see every hour again.
#[tokio::test]
async fn summary_that_is_cut_off_is_made_by_the_next_run() {
    for operation in [
        PortOperation::Put,
        PortOperation::Get,
        PortOperation::GetRange,
    ] {
        for fault in [CallFault::HangBefore, CallFault::HangAfter] {
            let place = format!("{fault:?} at {operation:?}");
            let plan = FaultPlan::nth_of(0, fault, move |effect| {
                effect.port == "summaries" && effect.operation == operation
            });
            let kit = Kit::with(&plan);
            kit.put_fresh(7, &records(0..50));
            kit.close_hour();
            let passes = async {
                while plan.faults() == 0 {
                    tokio::task::yield_now().await;
                }
                kit.clock.advance(Duration::from_secs(107));
            };
            let (report, ()) = tokio::join!(kit.record.merge(), passes);
            assert_eq!(report.unwrap().hours_left, 1, "{place}");
            assert_eq!(kit.checkpoint().all_merged_at, None, "{place}");
            assert_eq!(kit.found(3).await, 1, "{place}");
            assert_eq!(kit.record.merge().await.unwrap().hours_left, 0, "{place}");
            assert!(kit.is_summarized(hour()).await, "{place}");
            assert!(kit.checkpoint().all_merged_at.is_some(), "{place}");
        }
    }
}

/// The newest hour takes so long that none is begun after it. Its filter is kept.
#[tokio::test]
async fn summary_is_cut_off_between_two_hours_of_its_day() {
    let clock = Arc::new(OnceLock::<ManualClock>::new());
    let is_read = AtomicBool::new(false);
    let slow = Arc::clone(&clock);
    let kit = Kit::with(&FaultPlan::by(move |effect| {
        let is_summary = effect.port == "summaries" && effect.operation == PortOperation::Get;
        if is_summary {
            is_read.store(true, Ordering::Relaxed);
        } else if effect.port == "log" && is_read.swap(false, Ordering::Relaxed) {
            slow.get()?.advance(Duration::from_secs(66));
        }
        None
    }));
    clock.set(kit.clock.clone()).unwrap();
    let earlier = record(200, at("2026-03-07T02:07:00Z"));
    let hours = [LogHour::containing(earlier.time), hour()];
    kit.put_fresh(7, &records(0..50));
    kit.put_fresh(7, &[earlier]);
    kit.close_hour();
    assert_eq!(kit.record.merge().await.unwrap().hours_left, 1);
    assert_eq!(are_summarized(&kit, hours).await, [false, true]);
    assert_eq!([kit.found(3).await, kit.found(200).await], [1, 1]);
    assert_eq!(kit.record.merge().await.unwrap().hours_left, 0);
    assert_eq!(are_summarized(&kit, hours).await, [true, true]);
}

async fn are_summarized(kit: &Kit, [one, other]: [LogHour; 2]) -> [bool; 2] {
    [kit.is_summarized(one).await, kit.is_summarized(other).await]
}
