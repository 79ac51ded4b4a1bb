//! Merged files have the same records, each once, in order.

use bytes::Bytes;
use posthaste_core::delivery_log::{LogRecord, MergeNote, RecordFilter};
use posthaste_delivery_log::{MergeInput, MergeLimits, RowGroups, merge_files, write_file};
use proptest::prelude::*;

use crate::support::{
    MemoryLog, SMALL, any_records, fresh, hour_of_records, in_order, merge_all, merged, rows,
};

fn limits(groups: RowGroups) -> MergeLimits {
    MergeLimits {
        groups,
        ..MergeLimits::default()
    }
}

async fn read(parts: Vec<Bytes>) -> Vec<LogRecord> {
    let memory = (0..)
        .zip(parts)
        .fold(MemoryLog::default(), |memory, (n, part)| {
            memory.with(merged(0, n), part)
        });
    let (reader, files) = memory.reader();
    reader
        .list_records(&files, &RecordFilter::default(), usize::MAX)
        .await
        .unwrap()
        .records
}

#[tokio::test]
async fn copies_of_a_record_are_merged_into_one() {
    let records = hour_of_records(0, 400);
    let parts = [
        &records[..200],
        &records[100..300],
        &records[250..],
        &records[..50],
    ];
    let files = parts.map(|it| write_file(it, SMALL).unwrap()).to_vec();
    let merged = merge_all(files, limits(SMALL));
    assert_eq!(merged.len(), 1);
    assert_eq!(merged[0], write_merged_at_once(&records));
    assert_eq!(read(merged).await, in_order(records));
}

/// The same records, merged from one file: the same bytes but for the names of the inputs.
fn write_merged_at_once(records: &[LogRecord]) -> Bytes {
    let files = [records, &[], &[], &[]].map(|it| write_file(it, SMALL).unwrap());
    merge_all(files.to_vec(), limits(SMALL)).remove(0)
}

#[tokio::test]
async fn a_merge_of_merged_files_is_as_good() {
    let records = hour_of_records(0, 300);
    let files: Vec<_> = records
        .chunks(30)
        .map(|it| write_file(it, SMALL).unwrap())
        .collect();
    let (first, second) = files.split_at(5);
    let steps = [first, second].map(|files| merge_all(files.to_vec(), limits(rows(70))));
    assert_eq!(
        read(merge_all(steps.concat(), limits(SMALL))).await,
        in_order(records)
    );
}

/// Merges that grow large are split into parts, of which the last names what was merged.
#[tokio::test]
async fn large_merge_is_split_and_its_last_part_names_all_inputs() {
    let records = hour_of_records(0, 400);
    let files: Vec<_> = records
        .chunks(100)
        .map(|it| write_file(it, SMALL).unwrap())
        .collect();
    let parts = merge_all(
        files,
        MergeLimits {
            groups: SMALL,
            file_bytes_max: 8_000,
        },
    );
    assert!(parts.len() > 2, "{}", parts.len());
    assert!(parts.iter().all(|part| part.len() < 60_000));
    let mut notes = Vec::new();
    for part in &parts {
        let (reader, files) = MemoryLog::default()
            .with(merged(0, 0), part.clone())
            .reader();
        notes.push(reader.merge_note(&files[0]).await.unwrap().unwrap());
    }
    let names = (0..4).map(|n| format!("file-{n}")).collect();
    let (last, others) = notes.split_last().unwrap();
    assert!(others.iter().all(|note| note.sources.is_none()));
    assert_eq!(
        *last,
        MergeNote {
            part: u16::try_from(others.len()).unwrap(),
            sources: Some(names)
        }
    );
    assert_eq!(read(parts).await, in_order(records));
}

#[tokio::test]
async fn a_file_of_no_merge_has_no_note() {
    let (reader, files) = MemoryLog::default()
        .with_records(fresh(0, 0), &hour_of_records(0, 5))
        .reader();
    assert_eq!(reader.merge_note(&files[0]).await.unwrap(), None);
}

#[tokio::test]
async fn files_on_disk_are_merged_where_they_lie() {
    let records = hour_of_records(0, 200);
    let folder = tempfile::tempdir().unwrap();
    let inputs = (0..)
        .zip(records.chunks(50))
        .map(|(n, records): (usize, _)| {
            let path = folder.path().join(n.to_string());
            std::fs::write(&path, write_file(records, SMALL).unwrap()).unwrap();
            MergeInput::on_disk(n.to_string(), std::fs::File::open(path).unwrap())
        });
    let parts = merge_files(inputs.collect(), limits(SMALL), |_| tempfile::tempfile()).unwrap();
    assert_eq!(parts.iter().map(|part| part.records).sum::<usize>(), 200);
    let bytes = parts.into_iter().map(|mut part| {
        use std::io::{Read, Seek};
        let mut bytes = Vec::new();
        part.sink.rewind().unwrap();
        part.sink.read_to_end(&mut bytes).unwrap();
        Bytes::from(bytes)
    });
    assert_eq!(read(bytes.collect()).await, in_order(records));
}

#[test]
fn a_file_that_the_system_does_not_let_read_is_not_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whole");
    std::fs::write(&path, write_file(&hour_of_records(0, 10), SMALL).unwrap()).unwrap();
    let closed = std::fs::File::options().write(true).open(path).unwrap();
    let input = MergeInput::on_disk("whole".to_owned(), closed);
    let error = merge_files(vec![input], MergeLimits::default(), |_| Ok(Vec::new())).unwrap_err();
    assert_eq!(
        (error.damaged_file(), error.to_string()),
        (None, "failed to read whole".to_owned())
    );
}

#[test]
fn a_sink_that_refuses_fails_the_merge() {
    let file = write_file(&hour_of_records(0, 10), SMALL).unwrap();
    let input = MergeInput::in_memory("a".to_owned(), file);
    let full = |_| Err::<Vec<u8>, _>(std::io::ErrorKind::StorageFull.into());
    let error = merge_files(vec![input], MergeLimits::default(), full).unwrap_err();
    assert_eq!(
        error.to_string(),
        "failed to make a file of the delivery log"
    );
}

#[test]
fn empty_inputs_merge_into_no_file() {
    assert_eq!(
        merge_all(Vec::new(), MergeLimits::default()),
        Vec::<Bytes>::new()
    );
    let empty = write_file(&[], SMALL).unwrap();
    assert_eq!(
        merge_all(vec![empty], MergeLimits::default()),
        Vec::<Bytes>::new()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_files_are_merged(
        files in proptest::collection::vec(any_records(40), 1..5),
        records_max in 1_usize..50,
    ) {
        let written = files.iter().map(|it| write_file(it, rows(13)).unwrap());
        let limits = MergeLimits { groups: rows(records_max), file_bytes_max: 9_000 };
        let parts = merge_all(written.collect(), limits);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        prop_assert_eq!(runtime.block_on(read(parts)), in_order(files.concat()));
    }
}
