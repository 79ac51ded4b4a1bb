//! Files of older and newer programs: a column that is missing, and columns that are new.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RowAccessor;
use parquet::schema::types::Type;
use posthaste_core::delivery_log::{LogRecord, LogResult, RecordFilter, RecordLookup};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{MergeInput, MergeLimits, merge_files, write_file};

use crate::support::{DAY, MemoryLog, SMALL, fresh, hour_of_records, merge_all};

/// A column of a foreign file, with the value of each row.
enum ForeignColumn<'a> {
    Text(&'a str, Vec<&'a str>),
    Time(&'a str, Vec<i64>),
    Int(&'a str, Vec<i32>),
}

/// A file with just these columns, all required.
fn file(columns: &[ForeignColumn<'_>]) -> Bytes {
    let field = |column: &ForeignColumn<'_>| {
        let (name, physical, logical) = match column {
            ForeignColumn::Text(name, _) => (name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
            ForeignColumn::Time(name, _) => (
                name,
                Physical::INT64,
                Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
            ),
            ForeignColumn::Int(name, _) => (name, Physical::INT32, None),
        };
        let field =
            Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        Arc::new(field.with_logical_type(logical).build().unwrap())
    };
    let fields = columns.iter().map(field).collect();
    let schema = Arc::new(
        Type::group_type_builder("record")
            .with_fields(fields)
            .build()
            .unwrap(),
    );
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    for column in columns {
        let mut writer = group.next_column().unwrap().unwrap();
        match column {
            ForeignColumn::Text(_, texts) => {
                let texts: Vec<_> = texts.iter().map(|text| ByteArray::from(*text)).collect();
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(&texts, None, None)
                    .unwrap();
            }
            ForeignColumn::Time(_, times) => {
                writer
                    .typed::<Int64Type>()
                    .write_batch(times, None, None)
                    .unwrap();
            }
            ForeignColumn::Int(_, ints) => {
                writer
                    .typed::<Int32Type>()
                    .write_batch(ints, None, None)
                    .unwrap();
            }
        }
        writer.close().unwrap();
    }
    group.close().unwrap();
    Bytes::from(writer.into_inner().unwrap())
}

/// The beginning of the day.
const FIRST: i64 = 1_772_841_600_000;

/// A file of a program that had four columns.
fn older() -> Bytes {
    file(&[
        ForeignColumn::Text("record_id", vec!["r1", "r2"]),
        ForeignColumn::Time("time", vec![FIRST, FIRST + 1]),
        ForeignColumn::Text("topic", vec!["orders", "orders"]),
        ForeignColumn::Text("event_id", vec!["e1", "e2"]),
    ])
}

/// A file of a program with two columns more, and with a result that this one does not know.
fn newer() -> Bytes {
    file(&[
        ForeignColumn::Text("colour", vec!["red"]),
        ForeignColumn::Text("record_id", vec!["r3"]),
        ForeignColumn::Time("time", vec![FIRST + 2]),
        ForeignColumn::Text("topic", vec!["orders"]),
        ForeignColumn::Text("result", vec!["teleported"]),
        ForeignColumn::Text("event_id", vec!["e3"]),
        ForeignColumn::Int("weight", vec![7]),
    ])
}

async fn list(file: Bytes) -> Vec<LogRecord> {
    let (reader, files) = MemoryLog::default().with(fresh(0, 0), file).reader();
    reader
        .list_records(&files, &RecordFilter::default(), 10)
        .await
        .unwrap()
        .records
}

fn expected(id: &str, event: &str, ms: u64) -> LogRecord {
    LogRecord {
        record_id: id.to_owned(),
        event_id: Some(event.to_owned()),
        time: Timestamp::from_millis(DAY + ms),
        topic: "orders".to_owned(),
        ..LogRecord::default()
    }
}

#[tokio::test]
async fn a_column_that_is_missing_has_its_default() {
    assert_eq!(
        list(older()).await,
        [expected("r2", "e2", 1), expected("r1", "e1", 0)]
    );
}

#[tokio::test]
async fn a_column_that_is_new_is_skipped() {
    assert_eq!(list(newer()).await, [expected("r3", "e3", 2)]);
}

#[tokio::test]
async fn files_of_three_programs_are_searched_together() {
    let memory = MemoryLog::default()
        .with(fresh(0, 0), older())
        .with(fresh(0, 1), newer())
        .with_records(fresh(0, 2), &hour_of_records(0, 30));
    let (reader, files) = memory.reader();
    for (event, id) in [("e1", "r1"), ("e3", "r3")] {
        let look_up = RecordLookup {
            event_id: Some(event.to_owned()),
            ..RecordLookup::default()
        };
        let found = reader.look_up(&files, &look_up).await.unwrap().records;
        assert_eq!(
            found
                .iter()
                .map(|it| it.record_id.as_str())
                .collect::<Vec<_>>(),
            [id]
        );
    }
    // A column that a file does not have has no value that could be asked for.
    let delivered = RecordFilter {
        result: Some(LogResult::Delivered),
        ..RecordFilter::default()
    };
    assert_eq!(
        reader
            .list_records(&files, &delivered, 100)
            .await
            .unwrap()
            .records
            .len(),
        27
    );
}

#[tokio::test]
async fn a_merge_keeps_what_it_does_not_know() {
    let own = write_file(&hour_of_records(0, 3), SMALL).unwrap();
    let file = merge_all(vec![older(), own, newer()], MergeLimits::default()).remove(0);
    assert_eq!(list(file.clone()).await.len(), 6);
    let reader = SerializedFileReader::new(file).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let names: Vec<_> = schema
        .columns()
        .iter()
        .map(|column| column.name())
        .collect();
    let position = |name: &str| names.iter().position(|it| *it == name).unwrap();
    assert_eq!(names[names.len() - 2..], ["colour", "weight"]);
    let rows: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let newest = rows
        .iter()
        .find(|row| row.get_string(position("record_id")).unwrap() == "r3")
        .unwrap();
    assert_eq!(newest.get_string(position("colour")).unwrap(), "red");
    assert_eq!(newest.get_string(position("result")).unwrap(), "teleported");
    assert_eq!(newest.get_int(position("weight")).unwrap(), 7);
}

#[tokio::test]
async fn a_known_column_of_another_type_is_an_error() {
    let strange = file(&[
        ForeignColumn::Text("record_id", vec!["r"]),
        ForeignColumn::Int("topic", vec![1]),
    ]);
    let (reader, files) = MemoryLog::default()
        .with(fresh(0, 0), strange.clone())
        .reader();
    let page = reader
        .list_records(&files, &RecordFilter::default(), 10)
        .await
        .unwrap();
    let cause = std::error::Error::source(&page.damaged[0])
        .unwrap()
        .to_string();
    assert!(cause.contains("column topic is of another type"), "{cause}");
    let inputs = vec![MergeInput::in_memory("a".to_owned(), strange)];
    assert!(merge_files(inputs, MergeLimits::default(), |_| Ok(Vec::new())).is_err());
}
