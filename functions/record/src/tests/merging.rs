//! Merges: which files become one, what is set aside, and when a run stops.

use posthaste_core::delivery_log::RecordLookup;
use posthaste_core::stored::RECORD_LEASE;
use posthaste_ports::{ErrorKind, ObjectStore};
use posthaste_testkit::{CallFault, PortOperation};

use super::*;
use crate::MergeReport;

/// Writes this many files of ten records each.
fn fill(kit: &Kit, files: u64) -> Vec<LogRecord> {
    let all = records(0..files * 10);
    all.chunks(10).for_each(|some| drop(kit.put_fresh(7, some)));
    all
}

#[tokio::test]
async fn a_closed_hour_becomes_one_file() {
    let kit = Kit::new();
    let all = fill(&kit, 20);
    assert_eq!(kit.record.merge().await.unwrap(), MergeReport::default());
    assert_eq!(kit.files(), [0, 20]);
    kit.close_hour();
    let report = kit.record.merge().await.unwrap();
    assert_eq!(
        (
            report.files,
            report.merged,
            report.records,
            report.hours_left
        ),
        (20, 1, 200, 0)
    );
    assert_eq!((kit.files(), kit.ids().await), ([1, 0], ids_of(&all)));
    assert_eq!(kit.record.merge().await.unwrap(), MergeReport::default());
}

#[tokio::test]
async fn an_open_hour_never_has_more_than_120_files_to_merge() {
    let kit = Kit::new();
    let all = records(0..600);
    for (n, some) in all.chunks(2).enumerate() {
        kit.put_fresh(7, some);
        if n % 30 == 0 {
            kit.record.merge().await.unwrap();
        }
        assert!(kit.files()[1] <= 120, "{:?}", kit.files());
    }
    assert!(kit.files()[0] >= 4, "{:?}", kit.files());
    assert_eq!(kit.ids().await, ids_of(&all));
    kit.close_hour();
    kit.record.merge().await.unwrap();
    assert_eq!((kit.files(), kit.ids().await), ([1, 0], ids_of(&all)));
}

#[tokio::test]
async fn an_idle_run_costs_one_read_and_one_listing() {
    let kit = Kit::new();
    fill(&kit, 1);
    kit.record.merge().await.unwrap();
    kit.log.take_listed("date=");
    let lease = kit.state.get(RECORD_LEASE).await.unwrap();
    kit.record.merge().await.unwrap();
    assert_eq!(
        kit.log.take_listed("date="),
        [Some("date=2026-03-06/hour=03/".to_owned())]
    );
    assert_eq!(
        kit.state.get(RECORD_LEASE).await.unwrap().unwrap().etag,
        lease.unwrap().etag
    );
}

#[tokio::test]
async fn only_one_of_two_runs_merges() {
    let kit = Kit::new();
    fill(&kit, 3);
    kit.close_hour();
    let other = wire(
        &kit.clock,
        (&kit.log, &kit.state, &kit.queue),
        &FaultPlan::none(),
        9,
    );
    let other = LogRecorder::new(other, RecordSettings::default());
    let (one, two) = tokio::join!(kit.record.merge(), other.merge());
    let one = one.unwrap();
    let two = two.unwrap();
    assert_eq!(one.files + two.files, 3);
    assert!(one.was_busy != two.was_busy, "{one:?} {two:?}");
    assert_eq!(kit.files(), [1, 0]);
}

#[tokio::test]
async fn a_process_that_is_about_to_end_begins_no_merge() {
    let kit = Kit::new();
    fill(&kit, 3);
    kit.close_hour();
    kit.record.stop();
    assert_eq!(kit.record.merge().await.unwrap().hours_left, 1);
    assert_eq!(kit.files(), [0, 3]);
}

#[tokio::test]
async fn a_run_ends_in_time_even_if_the_store_hangs() {
    let kit = Kit::with(&FaultPlan::at(CallFault::HangBefore, |effect| {
        effect.operation == PortOperation::Delete
    }));
    let all = fill(&kit, 3);
    kit.close_hour();
    let passes = async {
        while kit.files()[0] == 0 {
            tokio::task::yield_now().await;
        }
        kit.clock.advance(Duration::from_secs(107));
    };
    let (report, ()) = tokio::join!(kit.record.merge(), passes);
    assert_eq!((report.unwrap().hours_left, kit.files()), (1, [1, 3]));
    kit.plan.switch(false);
    assert_eq!(kit.record.merge().await.unwrap().leftovers, 3);
    assert_eq!((kit.files(), kit.ids().await), ([1, 0], ids_of(&all)));
}

#[tokio::test]
async fn a_damaged_file_is_set_aside_and_the_others_are_merged() {
    let kit = Kit::new();
    let all = fill(&kit, 3);
    let keys = kit.log.keys(HOUR);
    kit.log.write(&keys[1], "no Parquet");
    kit.close_hour();
    let report = kit.record.merge().await.unwrap();
    assert_eq!((report.damaged, report.files, report.hours_left), (1, 2, 0));
    assert_eq!(
        (kit.files(), kit.ids().await.len()),
        ([1, 0], all.len() - 10)
    );
    assert_eq!(
        kit.log.objects_under("_damaged/"),
        [(format!("_damaged/{}", keys[1]), Bytes::from("no Parquet"))]
    );
}

#[tokio::test]
async fn a_file_that_the_store_does_not_answer_is_not_damaged() {
    for operation in [PortOperation::Get, PortOperation::GetRange] {
        for kind in [ErrorKind::Other, ErrorKind::TimedOut, ErrorKind::Denied] {
            let plan = FaultPlan::at(CallFault::Before(kind), move |effect| {
                effect.operation == operation && effect.key.starts_with(HOUR)
            });
            let kit = Kit::with(&plan);
            let all = fill(&kit, 3);
            let merged = FileName::Merged {
                id: "m".to_owned(),
                part: 0,
            };
            let late = write_file(&all[..1], RowGroups::default()).unwrap();
            kit.log.write(
                &FileKey {
                    hour: LogHour::containing(all[0].time),
                    name: merged,
                }
                .render(),
                late,
            );
            kit.close_hour();
            let report = kit.record.merge().await.unwrap();
            assert!(plan.faults() > 0, "{operation:?} {kind:?}");
            assert_eq!(
                (report.damaged, report.hours_left, kit.files()[1]),
                (0, 1, 3)
            );
            plan.switch(false);
            kit.record.merge().await.unwrap();
            assert_eq!(kit.ids().await, ids_of(&all), "{operation:?} {kind:?}");
        }
    }
}

#[tokio::test]
async fn parts_beside_a_damaged_one_stay() {
    let kit = Kit::new();
    let all = fill(&kit, 3);
    let whole = kit.log.objects_under(HOUR).remove(0).1;
    let parts = ["000", "001"].map(|part| format!("{HOUR}merged-m-{part}.parquet"));
    kit.log.write(&parts[0], "no Parquet");
    kit.log.write(&parts[1], whole);
    kit.close_hour();
    let report = kit.record.merge().await.unwrap();
    assert_eq!((report.damaged, report.files), (1, 3));
    assert_eq!(kit.files(), [3, 0]);
    assert!(parts.iter().all(|part| kit.log.keys("").contains(part)));
    kit.log
        .write(&parts[0], kit.log.objects_under(&parts[1]).remove(0).1);
    assert_eq!(kit.ids().await, ids_of(&all));
}

#[tokio::test]
async fn late_files_are_merged_within_a_day() {
    let kit = Kit::new();
    let old = record(1, at("2026-01-01T00:00:00Z"));
    kit.put_fresh(1, std::slice::from_ref(&old));
    kit.record.merge().await.unwrap();
    kit.put_fresh(2, &[record(2, old.time)]);
    kit.record.merge().await.unwrap();
    assert_eq!(kit.files(), [0, 2]);
    kit.clock.advance(Duration::from_hours(24));
    kit.record.merge().await.unwrap();
    assert_eq!(kit.files(), [1, 0]);
}

/// Ten thousand records of many hours are all found after the merge.
#[tokio::test]
async fn ten_thousand_records_are_all_found_after_the_merge() {
    let kit = Kit::new();
    let start = at("2026-03-01T00:00:00Z");
    let of_hour = |n: u64| record(n, start + Duration::from_secs(n * 60 * 60 * 48 / 10_000));
    let all: Vec<_> = (0..10_000).map(of_hour).collect();
    for some in all.chunks(50) {
        kit.handle("m", some).await;
    }
    kit.clock.advance(Duration::from_hours(24));
    let report = kit.record.merge().await.unwrap();
    assert_eq!((report.records, kit.files()), (10_000, [48, 0]));
    assert_eq!(kit.ids().await, ids_of(&all));
    let files = kit.log_files();
    let reader = LogReader::new(&kit.log, 1 << 20);
    for wanted in all.iter().step_by(101) {
        let look_up = RecordLookup {
            event_id: wanted.event_id.clone(),
            ..RecordLookup::default()
        };
        let found = reader.look_up(&files, &look_up).await.unwrap().records;
        // Files do not say whether a delivery waits.
        let wanted = LogRecord {
            wait: WaitTransition::Unknown,
            ..wanted.clone()
        };
        assert_eq!(found, [wanted]);
    }
}
