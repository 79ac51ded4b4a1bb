//! Records, files in memory, and a source that counts its reads.

use bytes::Bytes;
use posthaste_core::delivery_log::{
    AttemptOrigin, FileKey, FileName, LogHour, LogRecord, LogResult, RecordKind, RecordPayload,
    newest_first, record_id,
};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{
    LogFile, LogReader, MergeInput, MergeLimits, RowGroups, merge_files, write_file,
};
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{PortOperation, Recorded, RecordedCalls};
use proptest::prelude::*;

/// 2026-03-07T00:00:00Z.
pub(crate) const DAY: u64 = 1_772_841_600_000;

pub(crate) const HOUR_MS: u64 = 3_600_000;

/// Row groups so small that a few records make several.
pub(crate) const SMALL: RowGroups = RowGroups {
    records_max: 50,
    bytes_max: 1 << 20,
};

/// Row groups as they are.
pub(crate) fn usual() -> RowGroups {
    RowGroups::default()
}

/// A record of event `n` at a time of the day; one in ten is a failure that is tried again.
pub(crate) fn record(n: u64, time_ms: u64) -> LogRecord {
    let time = Timestamp::from_millis(DAY + time_ms);
    let key = format!("{n:08x}-0");
    let failed = n.is_multiple_of(10);
    let result = if failed {
        LogResult::Retry
    } else {
        LogResult::Delivered
    };
    LogRecord {
        record_id: record_id(
            &format!("message-{n}"),
            1,
            &key,
            1,
            RecordKind::Attempt,
            time,
        ),
        time,
        kind: RecordKind::Attempt,
        topic: format!("topic-{}", n % 3),
        subscription: format!("sub-{}", n % 7),
        webhook_id: Some(format!("msg_{key}")),
        delivery_key: key,
        event_id: Some(format!(
            "event-{:016x}",
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        )),
        event_type: Some(format!("type-{}", n % 5)),
        attempt: 1,
        origin: AttemptOrigin::First,
        result,
        reason: failed.then(|| "Busy".to_owned()),
        status: Some(if failed { 503 } else { 200 }),
        duration_ms: Some(u32::try_from(n % 900).unwrap()),
        answer: Some(format!("answer to {n}")),
        next_attempt_at: failed.then_some(time),
        accepted_at: time,
        expires_at: Timestamp::from_millis(DAY + 86_400_000),
        payload: RecordPayload::parse(&format!("{{\"n\":{n}}}")),
        ..LogRecord::default()
    }
}

/// Records of an hour, spread over it.
pub(crate) fn hour_of_records(hour: u64, count: u64) -> Vec<LogRecord> {
    let time = |n: u64| hour * HOUR_MS + n * (HOUR_MS - 1) / count;
    (0..count)
        .map(|n| record(hour * count + n, time(n)))
        .collect()
}

pub(crate) fn key(hour: u64, name: FileName) -> String {
    FileKey {
        hour: LogHour::containing(Timestamp::from_millis(DAY + hour * HOUR_MS)),
        name,
    }
    .render()
}

pub(crate) fn fresh(hour: u64, minute: u8) -> String {
    key(
        hour,
        FileName::Fresh {
            minute,
            id: format!("{minute:04}"),
        },
    )
}

pub(crate) fn merged(hour: u64, part: u16) -> String {
    key(
        hour,
        FileName::Merged {
            id: "m".to_owned(),
            part,
        },
    )
}

/// Merges files into parts in memory.
pub(crate) fn merge_all(files: Vec<Bytes>, limits: MergeLimits) -> Vec<Bytes> {
    let inputs = (0..)
        .zip(files)
        .map(|(n, file)| MergeInput::in_memory(format!("file-{n}"), file));
    let parts = merge_files(inputs.collect(), limits, |_| Ok(Vec::new())).unwrap();
    parts
        .into_iter()
        .map(|part| {
            assert_eq!(part.bytes, part.sink.len() as u64);
            Bytes::from(part.sink)
        })
        .collect()
}

pub(crate) fn in_order(mut records: Vec<LogRecord>) -> Vec<LogRecord> {
    records.sort_by(newest_first);
    records
}

/// Files in memory. Reads are counted.
#[derive(Debug, Default)]
pub(crate) struct MemoryLog {
    files: MemoryStore,
    pub(crate) calls: RecordedCalls,
}

/// A reader of such files.
pub(crate) type MemoryReader = LogReader<Recorded<MemoryStore>>;

impl MemoryLog {
    pub(crate) fn with(self, key: impl AsRef<str>, file: Bytes) -> Self {
        self.files.write(key.as_ref(), file);
        self
    }

    pub(crate) fn with_records(self, key: String, records: &[LogRecord]) -> Self {
        self.with(key, write_file(records, SMALL).unwrap())
    }

    pub(crate) fn listing(&self) -> Vec<LogFile> {
        let files = self.files.objects_under("").into_iter();
        files
            .filter_map(|(key, file)| LogFile::new(key, file.len() as u64))
            .collect()
    }

    pub(crate) fn reader(self) -> (MemoryReader, Vec<LogFile>) {
        let listing = self.listing();
        (self.reader_that_keeps(1 << 30), listing)
    }

    /// A reader that keeps footers of so many bytes.
    pub(crate) fn reader_that_keeps(self, footer_bytes_max: usize) -> MemoryReader {
        LogReader::new(
            Recorded::new(self.files, "log", &self.calls),
            footer_bytes_max,
        )
    }
}

/// The number of reads and of bytes since this was asked last. Nothing but ranges was read.
pub(crate) fn take_reads(calls: &RecordedCalls) -> (usize, usize) {
    let calls = calls.take();
    assert!(
        calls
            .iter()
            .all(|call| call.operation == PortOperation::GetRange)
    );
    (calls.len(), calls.iter().map(|call| call.bytes).sum())
}

fn word(words: &'static [&'static str]) -> impl Strategy<Value = String> {
    proptest::sample::select(words).prop_map(str::to_owned)
}

prop_compose! {
    fn any_names()(
        topic in word(&["a", "b", ""]),
        subscription in word(&["x", "y"]),
        event_id in proptest::option::of(word(&["1", "2", "ü\u{0}\"", ""])),
        event_type in proptest::option::of(word(&["t", "u"])),
        webhook_id in proptest::option::of("[a-c]{0,2}"),
        endpoint in proptest::option::of(any::<String>()),
    ) -> LogRecord {
        LogRecord { topic, subscription, event_id, event_type, webhook_id, endpoint, ..LogRecord::default() }
    }
}

prop_compose! {
    /// Any record of one hour.
    pub(crate) fn any_record()(
        names in any_names(),
        id in any::<u128>(),
        ms in 0..HOUR_MS,
        kind in proptest::sample::select(RecordKind::ALL),
        result in proptest::sample::select(LogResult::ALL),
        status in proptest::option::of(100_u16..600),
        attempt in any::<u16>(),
        answer in proptest::option::of(any::<String>()),
        payload in proptest::option::of(any::<i64>()),
        next in proptest::option::of(0..4 * HOUR_MS),
    ) -> LogRecord {
        LogRecord {
            record_id: format!("{id:032x}"),
            time: Timestamp::from_millis(DAY + ms / 60_000 * 60_000),
            kind,
            result,
            status,
            attempt,
            answer,
            payload: payload.and_then(|n| RecordPayload::parse(&format!("[{n}]"))),
            next_attempt_at: next.map(Timestamp::from_millis),
            ..names
        }
    }
}

pub(crate) fn any_records(most: usize) -> impl Strategy<Value = Vec<LogRecord>> {
    proptest::collection::vec(any_record(), 0..most)
}

pub(crate) fn rows(records_max: usize) -> RowGroups {
    RowGroups {
        records_max,
        ..usual()
    }
}
