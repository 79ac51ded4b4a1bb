//! The table of Athena in docs/src/delivery-log.md against the columns of the delivery log's files,
//! and the partitions against their keys.

use std::fs;
use std::path::Path;

use posthaste_core::delivery_log::{COLUMNS, ColumnType, FileKey, FileName, LogHour};
use posthaste_core::model::Timestamp;

/// The statement that makes the table.
fn statement() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/delivery-log.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("CREATE EXTERNAL TABLE").unwrap();
    rest.split_once("```").unwrap().0.to_owned()
}

/// The names between the first brackets after `opening`, with the types that follow them.
fn columns_after(statement: &str, opening: &str) -> Vec<(String, String)> {
    let (_, rest) = statement.split_once(opening).unwrap();
    let (list, _) = rest.split_once(')').unwrap();
    let column = |line: &str| {
        let (name, column_type) = line
            .trim()
            .strip_prefix('`')
            .unwrap()
            .split_once("` ")
            .unwrap();
        (name.to_owned(), column_type.to_owned())
    };
    list.split(',').map(column).collect()
}

/// The text behind the name of a property.
fn property(statement: &str, name: &str) -> String {
    let (_, rest) = statement.split_once(&format!("'{name}' = '")).unwrap();
    rest.split_once('\'').unwrap().0.to_owned()
}

const fn in_athena(column_type: ColumnType) -> &'static str {
    match column_type {
        ColumnType::Text => "string",
        ColumnType::Int => "int",
        ColumnType::Time => "timestamp",
    }
}

#[test]
fn the_table_of_athena_has_the_columns_of_the_files() {
    let written = columns_after(&statement(), "posthaste_log (");
    let columns = COLUMNS
        .iter()
        .map(|it| (it.name.to_owned(), in_athena(it.column_type).to_owned()));
    assert_eq!(written, columns.collect::<Vec<_>>());
}

#[test]
fn the_partitions_of_athena_are_the_folders_of_the_files() {
    let statement = statement();
    let partitions = columns_after(&statement, "PARTITIONED BY (");
    let pair = |name: &str, of: &str| (name.to_owned(), of.to_owned());
    assert_eq!(partitions, [pair("date", "string"), pair("hour", "int")]);
    let digits: usize = property(&statement, "projection.hour.digits")
        .parse()
        .unwrap();
    assert_eq!(property(&statement, "projection.date.format"), "yyyy-MM-dd");
    let template = property(&statement, "storage.location.template");
    let folder = template.strip_prefix("s3://LOG_BUCKET/").unwrap();
    let folder = folder
        .replace("${date}", "2026-03-07")
        .replace("${hour}", &format!("{:0digits$}", 4));
    let hour = LogHour::containing(Timestamp::parse("2026-03-07T04:30:00Z").unwrap());
    let key = FileKey {
        hour,
        name: FileName::Fresh {
            minute: 30,
            id: "0b8b".to_owned(),
        },
    };
    assert_eq!(key.render(), format!("{folder}{}", key.file_name()));
}
