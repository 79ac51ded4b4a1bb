//! Damaged files are errors, or give some result; they never panic the caller.

use bytes::Bytes;
use posthaste_core::delivery_log::{LogRecord, RecordFilter, RecordLookup};
use posthaste_delivery_log::{LogError, MergeInput, MergeLimits, merge_files, write_file};
use proptest::prelude::*;

use crate::support::{MemoryLog, SMALL, fresh, hour_of_records, in_order, record};

fn file() -> Bytes {
    write_file(&hour_of_records(0, 120), SMALL).unwrap()
}

/// The number of records that a look-up and a list find, and the file that each names as damaged.
async fn ask(file: Bytes) -> [(usize, Vec<LogError>); 2] {
    let event_id = record(5, 0).event_id;
    let (reader, files) = MemoryLog::default().with(fresh(0, 0), file).reader();
    let found = reader
        .look_up(
            &files,
            &RecordLookup {
                event_id,
                ..RecordLookup::default()
            },
        )
        .await
        .unwrap();
    let listed = reader
        .list_records(&files, &RecordFilter::default(), 1_000)
        .await
        .unwrap();
    [
        (found.records.len(), found.damaged),
        (listed.records.len(), listed.damaged),
    ]
}

fn merge_one(file: Bytes) -> Result<usize, LogError> {
    let inputs = vec![MergeInput::in_memory("damaged-file".to_owned(), file)];
    Ok(merge_files(inputs, MergeLimits::default(), |_| Ok(Vec::new()))?.len())
}

#[tokio::test]
async fn a_whole_file_is_no_damage() {
    let [(found, _), (listed, damaged)] = ask(file()).await;
    assert_eq!((found, listed, damaged.len()), (1, 120, 0));
    assert!(matches!(merge_one(file()), Ok(1)));
}

#[tokio::test]
async fn a_truncated_file_is_an_error_that_names_it() {
    let whole = file();
    for len in [0, 1, 7, 8, 100, whole.len() / 2, whole.len() - 1] {
        for (found, damaged) in ask(whole.slice(..len)).await {
            assert_eq!((found, damaged.len()), (0, 1));
            let error = damaged[0].to_string();
            assert!(
                error.contains("00-0000.parquet is damaged"),
                "{len}: {error}"
            );
        }
        let error = merge_one(whole.slice(..len)).unwrap_err().to_string();
        assert!(
            error.starts_with("damaged-file is damaged"),
            "{len}: {error}"
        );
    }
}

/// Files that are no Parquet files are reported as damaged, once each.
#[tokio::test]
async fn file_that_is_not_parquet_is_damaged() {
    for bytes in [
        &b"PAR1PAR1"[..],
        b"PAR1\xff\xff\xff\xffPAR1",
        b"PAR1\0\0\0\0PAR1",
        b"hello, world of rows",
    ] {
        let answers = ask(Bytes::from_static(bytes)).await;
        assert!(
            answers.iter().all(|(_, damaged)| damaged.len() == 1),
            "{bytes:?}"
        );
    }
}

#[tokio::test]
async fn a_damaged_file_hides_no_other() {
    let whole = file();
    let memory = MemoryLog::default()
        .with(fresh(0, 0), whole.slice(..whole.len() - 1))
        .with(fresh(0, 1), whole)
        .with_records(fresh(20, 0), &hour_of_records(20, 10));
    let (reader, files) = memory.reader();
    let event_id = record(5, 0).event_id;
    let found = reader
        .look_up(
            &files,
            &RecordLookup {
                event_id,
                ..RecordLookup::default()
            },
        )
        .await
        .unwrap();
    assert_eq!((found.records.len(), found.damaged.len()), (1, 1));
    assert_eq!(found.damaged[0].damaged_file(), Some(fresh(0, 0).as_str()));
    let page = reader
        .list_records(&files, &RecordFilter::default(), 1_000)
        .await
        .unwrap();
    assert_eq!((page.records.len(), page.damaged.len()), (130, 1));
}

/// A file whose rows are found, and whose records cannot be read: a reason in it is no text.
fn file_with_unreadable_records(records: &[LogRecord]) -> Bytes {
    let mut file = write_file(records, SMALL).unwrap().to_vec();
    let reasons: Vec<_> = (0..file.len())
        .filter(|at| file[*at..].starts_with(b"Busy"))
        .collect();
    for at in reasons {
        file[at..at + 4].fill(0xff);
    }
    file.into()
}

#[tokio::test]
async fn records_behind_unreadable_ones_are_on_the_next_page() {
    let mut records = hour_of_records(0, 200);
    for record in &mut records {
        record.webhook_id = Some("msg_same".into());
        record.reason = Some("Busy".into());
    }
    let (older, newer) = records.split_at(100);
    let memory = MemoryLog::default()
        .with(fresh(0, 1), file_with_unreadable_records(newer))
        .with_records(fresh(0, 0), older);
    let (reader, files) = memory.reader();
    for webhook_id in [None, Some("msg_same".to_owned())] {
        let mut filter = RecordFilter {
            webhook_id,
            ..RecordFilter::default()
        };
        let mut listed = Vec::new();
        loop {
            let page = match filter.webhook_id {
                None => reader.list_records(&files, &filter, 7).await.unwrap(),
                Some(_) => reader
                    .list_request(&files, &filter, 7, || true)
                    .await
                    .unwrap(),
            };
            listed.extend(page.records);
            filter.after = page.next;
            if filter.after.is_none() {
                break;
            }
        }
        assert_eq!(listed, in_order(older.to_vec()));
    }
}

#[tokio::test]
async fn a_file_that_is_shorter_than_listed_is_damaged() {
    let memory = MemoryLog::default().with(fresh(0, 0), file());
    let mut files = memory.listing();
    files[0].size += 10;
    let reader = memory.reader_that_keeps(0);
    let page = reader
        .list_records(&files, &RecordFilter::default(), 5)
        .await
        .unwrap();
    assert_eq!(page.damaged[0].damaged_file(), Some(fresh(0, 0).as_str()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn no_changed_bytes_make_it_panic(
        places in proptest::collection::vec((0.0_f64..1.0, 1_u8..), 1..6),
        at_the_end: bool,
    ) {
        let mut bytes = file().to_vec();
        let footer = if at_the_end { 9_000.min(bytes.len()) } else { bytes.len() };
        let start = bytes.len() - footer;
        for (place, change) in places {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let at = start + (place * footer as f64) as usize;
            bytes[at] ^= change;
        }
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let _ = runtime.block_on(ask(Bytes::from(bytes.clone())));
        let _ = merge_one(Bytes::from(bytes));
    }
}
