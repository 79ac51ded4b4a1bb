//! A day of the log, made by the real writer, merged, and asked: how long it takes, and what is
//! read. Run by hand:
//!
//! ```sh
//! cargo run --profile dist -p posthaste-delivery-log --example day -- FOLDER RECORDS PAYLOAD_BYTES
//! ```
//!
//! With 0 records, it asks the day that lies in the folder.
#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::unwrap_used)]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use posthaste_core::delivery_log::{
    AttemptOrigin, FileKey, FileName, LogHour, LogRecord, LogResult, RecordFilter, RecordKind,
    RecordLookup, RecordPayload, parse_records, record_id, render_records,
};
use posthaste_core::model::Timestamp;
use posthaste_delivery_log::{
    LogFile, LogReader, MergeInput, MergeLimits, RowGroups, merge_files, write_file,
};
use posthaste_local::FileStore;
use posthaste_testkit::{Recorded, RecordedCalls};

const DAY: u64 = 1_772_841_600_000;
const MINUTE_MS: u64 = 60_000;
const MINUTES: u64 = 24 * 60;
const LOOK_UPS: u64 = 500;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let folder = PathBuf::from(args.first().map_or("/tmp/posthaste-day", String::as_str));
    let number = |index: usize, default| {
        args.get(index)
            .and_then(|it| it.parse().ok())
            .unwrap_or(default)
    };
    let records = number(1, 1_000_000);
    let payload_bytes = number(2, 0);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    if records == 0 {
        let ids = runtime.block_on(some_ids(&folder));
        return runtime.block_on(questions("files as they lie", &folder, &ids, LOOK_UPS));
    }
    messages(usize::try_from(payload_bytes).unwrap());
    let _ = fs::remove_dir_all(&folder);
    let ids = write_day(&folder, records, usize::try_from(payload_bytes).unwrap());
    runtime.block_on(questions("minute files", &folder, &ids, 20));
    merge_day(&folder, records);
    runtime.block_on(questions("merged files", &folder, &ids, LOOK_UPS));
}

/// The state of a small generator of numbers (splitmix64).
struct NumberGenerator(u64);

impl NumberGenerator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uuid(&mut self) -> String {
        let a = self.next();
        let b = self.next();
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            a >> 32,
            a >> 16 & 0xffff,
            a & 0xfff,
            b >> 52,
            b & 0xffff_ffff_ffff
        )
    }
}

/// An attempt at an event: one in twenty fails, and is tried again in the next minute.
fn attempt(numbers: &mut NumberGenerator, time: u64, payload_bytes: usize) -> LogRecord {
    let key = format!(
        "{:032x}-0",
        u128::from(numbers.next()) << 64 | u128::from(numbers.next())
    );
    let random = numbers.next();
    let failed = random.is_multiple_of(20);
    let owner = random >> 8 & 0xff;
    let time = Timestamp::from_millis(time);
    LogRecord {
        record_id: record_id(&numbers.uuid(), 1, &key, 1, RecordKind::Attempt, time),
        time,
        kind: RecordKind::Attempt,
        topic: format!("topic-{}", owner % 10),
        subscription: format!("subscriber-{owner}"),
        identity: Some(format!("{owner:024x}")),
        webhook_id: Some(format!("msg_{key}")),
        delivery_key: key,
        event_id: Some(numbers.uuid()),
        event_source: Some(format!("/shops/{}", random >> 16 & 0x3f)),
        event_type: Some(format!("com.example.order.{}", random >> 24 & 0xf)),
        event_subject: Some(format!("orders/{}", random >> 32 & 0xf_ffff)),
        schema: Some("CloudEvents".to_owned()),
        attempt: 1,
        origin: AttemptOrigin::First,
        result: if failed {
            LogResult::Retry
        } else {
            LogResult::Delivered
        },
        reason: failed.then(|| "Busy".to_owned()),
        status: Some(if failed { 503 } else { 200 }),
        duration_ms: Some(u32::try_from(20 + (random >> 40) % 400).unwrap()),
        answer: Some(if failed {
            "try later".to_owned()
        } else {
            "{\"ok\":true}".to_owned()
        }),
        answer_type: Some("application/json".to_owned()),
        next_attempt_at: failed.then(|| time + Duration::from_secs(30)),
        endpoint: Some(format!("https://{owner}.example.com/hook")),
        accepted_at: time,
        expires_at: time + Duration::from_hours(24),
        payload: payload(numbers, payload_bytes),
        ..LogRecord::default()
    }
}

fn payload(numbers: &mut NumberGenerator, bytes: usize) -> Option<RecordPayload> {
    if bytes == 0 {
        return None;
    }
    let mut text = String::from("{\"items\":[");
    while text.len() < bytes - 40 {
        let random = numbers.next();
        let item = format!(
            "{{\"sku\":\"article-{}\",\"count\":{},\"price\":\"9.95\"}},",
            random & 0xff,
            random >> 60
        );
        text.push_str(&item);
    }
    text.push_str("{}]}");
    RecordPayload::parse(&text)
}

fn again(record: &LogRecord, time: u64) -> LogRecord {
    let time = Timestamp::from_millis(time);
    LogRecord {
        record_id: record_id(
            "again",
            1,
            &record.delivery_key,
            2,
            RecordKind::Attempt,
            time,
        ),
        time,
        attempt: 2,
        origin: AttemptOrigin::Retry,
        result: LogResult::Delivered,
        reason: None,
        status: Some(200),
        next_attempt_at: None,
        payload: None,
        ..record.clone()
    }
}

/// Renders messages of ten records, and reads them.
fn messages(payload_bytes: usize) {
    let mut numbers = NumberGenerator(3);
    let records: Vec<_> = (0..50_000)
        .map(|_| attempt(&mut numbers, DAY, payload_bytes))
        .collect();
    let begun = processor_time();
    let bodies: Vec<_> = records.chunks(10).flat_map(render_records).collect();
    let rendered = processor_time().saturating_sub(begun);
    let begun = processor_time();
    let read: usize = bodies
        .iter()
        .map(|body| parse_records(body).unwrap().len())
        .sum();
    let parsed = processor_time().saturating_sub(begun);
    let bytes: usize = bodies.iter().map(Bytes::len).sum();
    println!(
        "messages: rendered {:.2} µs, read {:.2} µs and {} bytes a record",
        micros(rendered, read),
        micros(parsed, read),
        bytes / read
    );
}

/// Writes a file a minute, and answers some of the ids.
fn write_day(folder: &Path, records: u64, payload_bytes: usize) -> Vec<String> {
    let mut numbers = NumberGenerator(7);
    let mut ids = Vec::new();
    let mut waiting = Vec::new();
    let mut spent = Duration::ZERO;
    let mut bytes = 0;
    let mut count = 0;
    let per_minute = records / MINUTES;
    for minute in 0..MINUTES {
        let start = DAY + minute * MINUTE_MS;
        let mut batch: Vec<LogRecord> = waiting
            .drain(..)
            .map(|it: LogRecord| again(&it, start + 500))
            .collect();
        while (batch.len() as u64) < per_minute {
            let time = start + numbers.next() % MINUTE_MS;
            batch.push(attempt(&mut numbers, time, payload_bytes));
        }
        waiting.extend(
            batch
                .iter()
                .filter(|it| it.result == LogResult::Retry)
                .cloned(),
        );
        ids.extend(
            batch
                .iter()
                .step_by(1 + batch.len() / 3)
                .filter_map(|it| it.event_id.clone()),
        );
        count += batch.len();
        let hour = LogHour::containing(Timestamp::from_millis(start));
        let name = FileName::Fresh {
            minute: u8::try_from(minute % 60).unwrap(),
            id: numbers.uuid(),
        };
        let begun = processor_time();
        let file = write_file(&batch, RowGroups::default()).unwrap();
        spent += processor_time().saturating_sub(begun);
        bytes += file.len();
        put(folder, &FileKey { hour, name }.render(), &file);
    }
    println!(
        "written: {count} records, {:.2} µs and {} bytes a record",
        micros(spent, count),
        bytes / count
    );
    ids
}

/// Merges each hour.
fn merge_day(folder: &Path, records: u64) {
    // Forgets the peak by now.
    let _ = fs::write("/proc/self/clear_refs", "5");
    let mut spent = Duration::ZERO;
    let mut bytes = 0;
    let before = peak_memory();
    let mut numbers = NumberGenerator(99);
    for hour in 0..24 {
        let hour = LogHour::containing(Timestamp::from_millis(DAY + hour * 60 * MINUTE_MS));
        let files: Vec<LogFile> = listing(folder)
            .into_iter()
            .filter(|file| file.hour == hour)
            .collect();
        let input = |file: &LogFile| {
            MergeInput::on_disk(
                file.key.rsplit('/').next().unwrap().to_owned(),
                File::open(folder.join(&file.key)).unwrap(),
            )
        };
        let id = numbers.uuid();
        let begun = processor_time();
        let inputs = files.iter().map(input).collect();
        let parts = merge_files(inputs, MergeLimits::default(), |part| {
            File::create(
                folder.join(
                    FileKey {
                        hour,
                        name: FileName::Merged {
                            id: id.clone(),
                            part,
                        },
                    }
                    .render(),
                ),
            )
        });
        bytes += parts.unwrap().iter().map(|part| part.bytes).sum::<u64>();
        spent += processor_time().saturating_sub(begun);
        for file in files {
            fs::remove_file(folder.join(file.key)).unwrap();
        }
    }
    let count = usize::try_from(records).unwrap();
    println!(
        "merged: {:.2} µs and {} bytes a record; peak memory {} MB before, {} MB after",
        micros(spent, count),
        bytes / records,
        before / 1024,
        peak_memory() / 1024
    );
}

async fn questions(what: &str, folder: &Path, ids: &[String], look_ups: u64) {
    let files = listing(folder);
    println!("-- {what}: {} files", files.len());
    let log = CountedLog::open(folder);
    let reader = &log.reader;
    let cold = ask(&log, &files, &ids[ids.len() / 2]).await;
    println!(
        "look-up, cold: {cold}; footers take {} KB",
        reader.footer_bytes() / 1024
    );
    let mut answers = Vec::new();
    for index in 0..look_ups {
        let place = usize::try_from(index).unwrap() * 7919 % ids.len();
        reader.forget_footers();
        answers.push(ask(&log, &files, &ids[place]).await);
    }
    report("look-up, footers cold", &mut answers);
    let mut answers = Vec::new();
    for index in 0..look_ups {
        answers.push(
            ask(
                &log,
                &files,
                &ids[usize::try_from(index).unwrap() * 104_729 % ids.len()],
            )
            .await,
        );
    }
    report("look-up, footers kept", &mut answers);
    reader.forget_footers();
    println!(
        "newest 50 failures of a subscription, cold: {}",
        failures(&log, &files).await
    );
    println!(
        "newest 50 failures of a subscription: {}",
        failures(&log, &files).await
    );
}

/// Ids of all hours of a day that was made before.
async fn some_ids(folder: &Path) -> Vec<String> {
    let files = listing(folder);
    let log = CountedLog::open(folder);
    let mut ids = Vec::new();
    for hour in 0..24 {
        let to = Some(Timestamp::from_millis(
            DAY + hour * 60 * MINUTE_MS + 30 * MINUTE_MS,
        ));
        let filter = RecordFilter {
            to,
            ..RecordFilter::default()
        };
        let page = log.reader.list_records(&files, &filter, 200).await.unwrap();
        ids.extend(
            page.records
                .into_iter()
                .filter_map(|record| record.event_id),
        );
    }
    ids
}

struct QuestionCost {
    reads: usize,
    bytes: usize,
    spent: Duration,
    found: usize,
}

impl std::fmt::Display for QuestionCost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            reads,
            bytes,
            spent,
            found,
        } = self;
        write!(
            f,
            "{found} found, {reads} reads, {} KB, {:.1} ms",
            bytes / 1024,
            spent.as_secs_f64() * 1000.0
        )
    }
}

async fn ask(log: &CountedLog, files: &[LogFile], id: &str) -> QuestionCost {
    let look_up = RecordLookup {
        event_id: Some(id.to_owned()),
        ..RecordLookup::default()
    };
    log.take();
    let begun = Instant::now();
    let found = log
        .reader
        .look_up(files, &look_up)
        .await
        .unwrap()
        .records
        .len();
    assert!(found > 0);
    let (reads, bytes) = log.take();
    let spent = begun.elapsed();
    QuestionCost {
        reads,
        bytes,
        spent,
        found,
    }
}

async fn failures(log: &CountedLog, files: &[LogFile]) -> QuestionCost {
    let filter = RecordFilter {
        topic: Some("topic-7".to_owned()),
        subscription: Some("subscriber-37".to_owned()),
        result: Some(LogResult::Retry),
        ..RecordFilter::default()
    };
    log.take();
    let begun = Instant::now();
    let found = log
        .reader
        .list_records(files, &filter, 50)
        .await
        .unwrap()
        .records
        .len();
    let (reads, bytes) = log.take();
    let spent = begun.elapsed();
    QuestionCost {
        reads,
        bytes,
        spent,
        found,
    }
}

fn report(what: &str, answers: &mut [QuestionCost]) {
    answers.sort_by_key(|answer| answer.spent);
    let at = |share: usize| {
        answers[(answers.len() - 1) * share / 100]
            .spent
            .as_secs_f64()
            * 1000.0
    };
    let most = |of: fn(&QuestionCost) -> usize| answers.iter().map(of).max().unwrap();
    println!(
        "{what}: {} times, p50 {:.1} ms, p99 {:.1} ms; at most {} reads, {} KB",
        answers.len(),
        at(50),
        at(99),
        most(|it| it.reads),
        most(|it| it.bytes) / 1024
    );
}

/// The log in a folder. Reads are counted.
struct CountedLog {
    reader: LogReader<Recorded<FileStore>>,
    calls: RecordedCalls,
}

impl CountedLog {
    fn open(folder: &Path) -> Self {
        let calls = RecordedCalls::default();
        let store = Recorded::new(FileStore::open(folder).unwrap(), "log", &calls);
        Self {
            reader: LogReader::new(store, 1 << 30),
            calls,
        }
    }

    /// The number of reads and of bytes since this was asked last.
    fn take(&self) -> (usize, usize) {
        let calls = self.calls.take();
        (calls.len(), calls.iter().map(|call| call.bytes).sum())
    }
}

fn listing(folder: &Path) -> Vec<LogFile> {
    let mut files = Vec::new();
    for date in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
        for hour in fs::read_dir(date).unwrap().map(|it| it.unwrap().path()) {
            for file in fs::read_dir(hour).unwrap().map(|it| it.unwrap()) {
                let key = file
                    .path()
                    .strip_prefix(folder)
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .to_owned();
                files.extend(LogFile::new(key, file.metadata().unwrap().len()));
            }
        }
    }
    files
}

fn put(folder: &Path, key: &str, file: &[u8]) {
    let path = folder.join(key);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, file).unwrap();
}

fn micros(spent: Duration, count: usize) -> f64 {
    spent.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap())
}

/// The time that this process was on a processor: others may have it in between.
fn processor_time() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

/// The most memory that this process ever had, in KB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
