//! Records that were written are read back.

use posthaste_core::delivery_log::{LogRecord, RecordFilter, RecordPayload};
use posthaste_delivery_log::{RowGroups, write_file};
use proptest::prelude::*;

use crate::support::{
    MemoryLog, SMALL, any_records, fresh, hour_of_records, in_order, rows, usual,
};

async fn read_all(file: bytes::Bytes) -> Vec<LogRecord> {
    let (reader, files) = MemoryLog::default().with(fresh(0, 0), file).reader();
    reader
        .list_records(&files, &RecordFilter::default(), usize::MAX)
        .await
        .unwrap()
        .records
}

#[tokio::test]
async fn records_are_read_back_the_newest_first() {
    let records = hour_of_records(0, 500);
    let file = write_file(&records, SMALL).unwrap();
    assert_eq!(read_all(file).await, in_order(records));
}

#[tokio::test]
async fn a_file_without_records_has_none() {
    let file = write_file(&[], usual()).unwrap();
    assert_eq!(read_all(file).await, Vec::<LogRecord>::new());
}

#[tokio::test]
async fn large_payloads_begin_new_row_groups_and_are_read_back() {
    let payload = RecordPayload::parse(&format!("\"{}\"", "x".repeat(60_000)));
    let records: Vec<_> = hour_of_records(0, 20)
        .into_iter()
        .map(|it| LogRecord {
            payload: payload.clone(),
            ..it
        })
        .collect();
    let groups = RowGroups {
        records_max: 50_000,
        bytes_max: 200_000,
    };
    let file = write_file(&records, groups).unwrap();
    assert_eq!(read_all(file).await, in_order(records));
}

#[test]
fn the_same_records_make_the_same_file() {
    let mut records = hour_of_records(0, 120);
    let one = write_file(&records, SMALL).unwrap();
    records.reverse();
    assert_eq!(one, write_file(&records, SMALL).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_records_are_read_back(records in any_records(60), records_max in 1_usize..30) {
        let file = write_file(&records, rows(records_max)).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert_eq!(runtime.block_on(read_all(file)), in_order(records));
    }
}
