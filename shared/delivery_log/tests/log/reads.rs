//! The reads of a query, counted: they follow the number of row groups, and not that of records.

use posthaste_core::delivery_log::{LogResult, RecordFilter, RecordLookup};
use posthaste_core::model::{LOG_FILE_BYTES_MAX, LOG_ROW_GROUP_RECORDS_MAX};
use posthaste_delivery_log::{LogFile, MergeLimits, write_file};
use posthaste_testkit::RecordedCalls;

use crate::support::{
    MemoryLog, MemoryReader, hour_of_records, merge_all, merged, rows, take_reads, usual,
};

/// Most reads of a look-up in a day of ten million records.
const LOOK_UP_READS: usize = 300;

/// One GET of S3 Standard, in dollars. <https://aws.amazon.com/s3/pricing/>
const GET: f64 = 0.0004 / 1_000.0;

/// One LIST of S3 Standard, in dollars. It shows up to 1,000 files. <https://aws.amazon.com/s3/pricing/>
const LIST: f64 = 0.005 / 1_000.0;

const HOURS: u8 = 24;
const RECORDS: u16 = 1_000;
const GROUP: u16 = 125;

/// Row groups of all files.
const GROUPS: usize = HOURS as usize * (RECORDS / GROUP) as usize;

/// Most reads of a file's footer.
const FOOTER_READS: usize = 2;

/// Most reads of a row group that has the record: the columns that decide, and the pages of the
/// others.
const GROUP_READS: usize = 20;

/// A day of merged files with small row groups, as many as a day of ten million records has.
fn day() -> MemoryLog {
    let limits = MergeLimits {
        groups: rows(GROUP.into()),
        ..MergeLimits::default()
    };
    let merged_hour = |hour| {
        let files = hour_of_records(hour, RECORDS.into())
            .chunks(250)
            .map(|it| write_file(it, usual()).unwrap())
            .collect();
        merge_all(files, limits).remove(0)
    };
    (0..HOURS.into()).fold(MemoryLog::default(), |memory, hour| {
        memory.with(merged(hour, 0), merged_hour(hour))
    })
}

#[tokio::test]
async fn reads_are_bounded() {
    let memory = day();
    let calls = memory.calls.clone();
    let (reader, files) = memory.reader();
    look_up_by_id(&reader, &files, &calls).await;
    newest_failures(&reader, &files, &calls).await;
}

async fn look_up_by_id(reader: &MemoryReader, files: &[LogFile], calls: &RecordedCalls) {
    let event_id = hour_of_records(5, RECORDS.into())[500].event_id.clone();
    let look_up = RecordLookup {
        event_id,
        ..RecordLookup::default()
    };
    for footers in [FOOTER_READS * usize::from(HOURS), 0] {
        take_reads(calls);
        assert_eq!(
            reader.look_up(files, &look_up).await.unwrap().records.len(),
            1
        );
        let (reads, bytes) = take_reads(calls);
        assert!(reads <= footers + GROUPS + GROUP_READS, "{reads}");
        assert!(
            reads <= LOOK_UP_READS && bytes <= 5_000_000,
            "{reads} reads, {bytes} bytes"
        );
    }
}

/// A look-up holds the footers of 32 files. Where all have the greatest size, and records of 50
/// bytes, they take no more than the cache of `manage` does.
#[tokio::test]
async fn the_footers_of_a_step_take_no_more_than_the_cache() {
    let (reader, files) = day().reader();
    let look_up = RecordLookup {
        event_id: Some("none".to_owned()),
        ..RecordLookup::default()
    };
    reader.look_up(&files, &look_up).await.unwrap();
    let groups_of_a_file =
        usize::try_from(LOG_FILE_BYTES_MAX).unwrap() / 50 / LOG_ROW_GROUP_RECORDS_MAX;
    let step = reader.footer_bytes() / GROUPS * groups_of_a_file * 32;
    assert!(step <= 32 << 20, "{step} bytes");
}

#[test]
fn the_price_of_a_look_up_is_as_documented() {
    let page = include_str!("../../../../docs/src/operating/aws.md").replace('\n', " ");
    let dollars = 1_000.0 * (f64::from(u16::try_from(LOOK_UP_READS).unwrap()) * GET + LIST);
    let price = format!(
        "costs {LOOK_UP_READS} GET and one LIST at most for each day of ten million records, so \
         ${dollars:.3} for a thousand such questions"
    );
    assert!(
        page.contains(&price),
        "docs/src/operating/aws.md does not say: {price}"
    );
}

async fn newest_failures(reader: &MemoryReader, files: &[LogFile], calls: &RecordedCalls) {
    reader.forget_footers();
    let filter = RecordFilter {
        topic: Some("topic-1".to_owned()),
        subscription: Some("sub-4".to_owned()),
        result: Some(LogResult::Retry),
        ..RecordFilter::default()
    };
    take_reads(calls);
    let page = reader.list_records(files, &filter, 3).await.unwrap();
    let (reads, bytes) = take_reads(calls);
    assert_eq!(page.records.len(), 3);
    assert!(
        reads <= 50 && bytes <= 5_000_000,
        "{reads} reads, {bytes} bytes"
    );
}
