//! The end of records: by age, and by what they take of their disk.

use posthaste_core::delivery_log::LogDisk;
use posthaste_core::model::size::DiskShare;
use posthaste_core::pressure::ByteUsage;
use posthaste_ports::ErrorKind;
use posthaste_testkit::faulty::at_every_effect;
use posthaste_testkit::{CallFault, PortOperation};

use super::*;
use crate::EndedFiles;

const GIB: u64 = 1 << 30;

fn disk(used: u64) -> LogDisk {
    LogDisk {
        usage: ByteUsage { used, total: GIB },
        calm_percent: Some(94),
    }
}

/// A kit with files of 1 MiB of hours that long ago, one of which was set aside.
fn kit(hours_ago: &[u64], settings: RecordSettings) -> Kit {
    let kit = Kit::with_settings(&FaultPlan::none(), settings);
    for ago in hours_ago {
        let now = kit.clock.now().as_millis();
        let hour = LogHour::containing(Timestamp::from_millis(now - ago * 3_600_000)).key_prefix();
        kit.log
            .write(&format!("{hour}07-a.parquet"), vec![0; 1 << 20]);
        kit.log
            .write(&format!("_damaged/{hour}07-b.parquet"), vec![0; 1 << 20]);
    }
    kit.log.write("notes.txt", "of others");
    kit
}

#[tokio::test]
async fn files_older_than_the_retention_are_deleted() {
    let kit = kit(&[0, 167, 168, 169, 500], RecordSettings::default());
    let ended = kit.record.delete_ended_files(Some(disk(0))).await.unwrap();
    let oldest = Some(at("2026-02-28T03:00:00Z"));
    assert_eq!(
        ended,
        EndedFiles {
            old: 4,
            over: 0,
            reaches_back_to: oldest
        }
    );
    assert_eq!(kit.log.keys("").len(), 7);
    assert_eq!(
        kit.record.delete_ended_files(None).await.unwrap(),
        EndedFiles {
            reaches_back_to: oldest,
            ..EndedFiles::default()
        }
    );
}

#[tokio::test]
async fn the_oldest_hours_make_room() {
    let size_max = Some(DiskShare::Bytes(5 << 20));
    let kit = kit(
        &[0, 1, 2, 3],
        RecordSettings {
            size_max,
            ..RecordSettings::default()
        },
    );
    let ended = kit.record.delete_ended_files(Some(disk(0))).await.unwrap();
    assert_eq!(
        ended,
        EndedFiles {
            old: 0,
            over: 4,
            reaches_back_to: Some(at("2026-03-07T02:00:00Z"))
        }
    );
    assert_eq!(kit.log.keys("").len(), 5);
}

/// A disk that fills up makes the log smaller, and one that is not known does not.
#[tokio::test]
async fn log_shrinks_as_its_disk_fills_unless_the_disk_is_unknown() {
    let hours: Vec<u64> = (0..15).collect();
    let kit = kit(
        &hours,
        RecordSettings {
            size_max: Some(DiskShare::Percent(50)),
            ..RecordSettings::default()
        },
    );
    assert_eq!(kit.record.delete_ended_files(None).await.unwrap().over, 0);
    assert_eq!(
        kit.record
            .delete_ended_files(Some(disk(GIB / 2)))
            .await
            .unwrap()
            .over,
        0
    );
    // 94 % of the disk without the log's 30 MiB leave 20 MiB for it.
    let used = GIB * 94 / 100 + (10 << 20);
    assert_eq!(
        kit.record
            .delete_ended_files(Some(disk(used)))
            .await
            .unwrap()
            .over,
        10
    );
    assert_eq!(
        kit.record
            .delete_ended_files(Some(disk(GIB)))
            .await
            .unwrap()
            .over,
        4,
        "16 MiB stay"
    );
}

#[tokio::test]
async fn files_that_a_lifecycle_deletes_stay() {
    let kit = kit(&[0, 500], RecordSettings::default().on_aws());
    assert_eq!(
        kit.record
            .delete_ended_files(Some(disk(GIB)))
            .await
            .unwrap(),
        EndedFiles::default()
    );
    assert_eq!(kit.log.keys("").len(), 5);
}

/// An earlier version set files aside within the log, where readers of the folder found them.
#[tokio::test]
async fn files_an_earlier_version_set_aside_leave_the_log() {
    let store = MemoryStore::like_s3(7);
    let kit = Kit::with_aside(&store);
    let file = format!("{HOUR}07-b.parquet");
    kit.log.write(&format!("damaged/{file}"), "no Parquet");
    kit.log.write("damaged/notes.txt", "of others");
    kit.log.write(&format!("{HOUR}07-a.parquet"), vec![0; 9]);
    kit.record.delete_ended_files(None).await.unwrap();
    assert_eq!(kit.log.keys(""), [format!("{HOUR}07-a.parquet")]);
    let moved = [
        (file, Bytes::from("no Parquet")),
        ("notes.txt".to_owned(), Bytes::from("of others")),
    ];
    assert_eq!(store.objects_under(""), moved);
}

#[tokio::test]
async fn faults_while_moving_aside_lose_no_file() {
    at_every_effect(async |plan, place| {
        let kit = Kit::with(plan);
        let file = format!("{HOUR}07-b.parquet");
        kit.log.write(&format!("damaged/{file}"), "no Parquet");
        drop(kit.record.delete_ended_files(None).await);
        let kept = kit.log.objects_under("");
        assert!(
            kept.iter().any(|(_, bytes)| bytes == "no Parquet"),
            "{place}"
        );
        plan.switch(false);
        kit.record.delete_ended_files(None).await.unwrap();
        assert_eq!(kit.log.keys(""), [format!("_damaged/{file}")], "{place}");
    })
    .await;
}

#[tokio::test]
async fn old_files_go_where_what_was_set_aside_cannot_be_moved() {
    let full = FaultPlan::by(|effect| {
        let is_moved =
            effect.operation == PortOperation::Put && effect.key.starts_with("_damaged/");
        is_moved.then_some(CallFault::Before(ErrorKind::Full))
    });
    let kit = Kit::with(&full);
    let damaged = format!("damaged/{HOUR}07-b.parquet");
    kit.log.write(&damaged, "no Parquet");
    kit.log
        .write("date=2026-02-01/hour=03/07-a.parquet", vec![0; 9]);
    let ended = kit.record.delete_ended_files(None).await.unwrap();
    assert_eq!((ended.old, ended.over), (1, 0));
    assert_eq!(kit.log.keys(""), [damaged]);
}

/// A file that was set aside in a place of its own ends like the log's files.
#[tokio::test]
async fn files_set_aside_elsewhere_end_with_their_hour() {
    let store = MemoryStore::like_s3(7);
    let kit = Kit::with_aside(&store);
    for date in ["2026-02-01", "2026-03-07"] {
        store.write(&format!("date={date}/hour=03/07-b.parquet"), vec![0; 9]);
    }
    store.write("notes.txt", "of others");
    let ended = kit.record.delete_ended_files(None).await.unwrap();
    assert_eq!((ended.old, ended.over), (1, 0));
    let left = ["date=2026-03-07/hour=03/07-b.parquet", "notes.txt"];
    assert_eq!(store.keys(""), left);
}
