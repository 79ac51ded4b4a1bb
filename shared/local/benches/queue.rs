//! The embedded queue by itself: send, receive and acknowledge in one process, durable, and a large
//! backlog.
//!
//! `cargo bench -p posthaste-local --bench queue -- [DIR] [stream|backlog|reopen]`. Prints one line
//! per run. `reopen` opens what an earlier run left in DIR, for example one that was killed.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]
#![expect(clippy::unwrap_used, reason = "a bench that fails panics")]
#![expect(clippy::cast_precision_loss, reason = "numbers for people")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use posthaste_local::{EmbeddedStore, LocalOptions};
use posthaste_ports::{
    Clock, OutgoingMessage, QueueName, QueueReceiver, QueueSender, ReceiveRequest,
};
use posthaste_system::{SystemClock, SystemEntropy};

/// The numbers of messages below are divisible by ten times this.
const SENDERS: u64 = 64;
const RECEIVERS: u64 = 8;
const GROUPS: u64 = 100;
const LATENCY_MESSAGES: u64 = 2_000;
const STREAM_MESSAGES: u64 = 256_000;
const BACKLOG_MESSAGES: u64 = 1_024_000;
const BODY_BYTES: usize = 1024;

fn main() {
    // `cargo bench` adds `--bench`.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with("--"))
        .collect();
    let dir = PathBuf::from(
        args.first()
            .map_or("/tmp/posthaste-queue-bench", String::as_str),
    );
    let which = args.get(1).map(String::as_str);
    if which == Some("reopen") {
        return reopen(&dir);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    if which != Some("backlog") {
        runtime.block_on(latency(&dir));
        for batch in [1, 10] {
            runtime.block_on(stream(&dir, batch));
        }
    }
    if which != Some("stream") {
        runtime.block_on(backlog(&dir));
    }
    let _ = std::fs::remove_dir_all(&dir);
}

fn open(dir: &Path) -> EmbeddedStore<SystemClock> {
    EmbeddedStore::open(dir, LocalOptions::default(), SystemClock, SystemEntropy).unwrap()
}

fn fresh(dir: &Path) -> EmbeddedStore<SystemClock> {
    let _ = std::fs::remove_dir_all(dir);
    open(dir)
}

fn reopen(dir: &Path) {
    let start = Meter::start();
    let local = open(dir);
    println!("reopened: {}", start.read(BACKLOG_MESSAGES));
    drop(local);
}

/// One sender: every message waits for a commit of its own.
async fn latency(dir: &Path) {
    let local = fresh(dir);
    let start = Meter::start();
    send(local.clone(), 0, 1, LATENCY_MESSAGES).await;
    println!(
        "stream, 1 a request, 1 sender: {}",
        start.read(LATENCY_MESSAGES)
    );
    local.close().await;
}

/// Senders in a closed loop, receivers that acknowledge at once.
async fn stream(dir: &Path, batch: u64) {
    let local = fresh(dir);
    let start = Meter::start();
    let settled = Arc::new(AtomicU64::new(0));
    let receivers: Vec<_> = (0..RECEIVERS)
        .map(|_| tokio::spawn(receive(local.clone(), settled.clone(), STREAM_MESSAGES)))
        .collect();
    let senders = (0..SENDERS)
        .map(|n| tokio::spawn(send(local.clone(), n, batch, STREAM_MESSAGES / SENDERS)));
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    for receiver in receivers {
        receiver.await.unwrap();
    }
    println!(
        "stream, {batch} a request, {SENDERS} senders: {}",
        start.read(STREAM_MESSAGES)
    );
    local.close().await;
}

/// A million messages without a receiver, a restart, and their way out.
async fn backlog(dir: &Path) {
    let local = fresh(dir);
    let start = Meter::start();
    let senders =
        (0..SENDERS).map(|n| tokio::spawn(send(local.clone(), n, 10, BACKLOG_MESSAGES / SENDERS)));
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    println!("backlog, 10 a request: {}", start.read(BACKLOG_MESSAGES));
    local.close().await;
    let start = Meter::start();
    let local = open(dir);
    println!("reopened: {}", start.read(BACKLOG_MESSAGES));
    let start = Meter::start();
    let settled = Arc::new(AtomicU64::new(0));
    let receivers: Vec<_> = (0..RECEIVERS)
        .map(|_| tokio::spawn(receive(local.clone(), settled.clone(), BACKLOG_MESSAGES)))
        .collect();
    for receiver in receivers {
        receiver.await.unwrap();
    }
    println!("drained: {}", start.read(BACKLOG_MESSAGES));
    let before = file_mib(dir);
    local.close().await;
    println!(
        "the file had {before} MiB before it was closed, {} after",
        file_mib(dir)
    );
}

async fn send(local: EmbeddedStore<SystemClock>, sender: u64, batch: u64, messages: u64) {
    let queue = local.queue(QueueName::Deliveries);
    for n in 0..messages / batch {
        let message = |entry| OutgoingMessage {
            body: Bytes::from("x".repeat(BODY_BYTES)),
            group: Some(format!(
                "topic.subscription-{}",
                (sender + n * batch + entry) % GROUPS
            )),
            delay: Duration::ZERO,
        };
        let answers = queue
            .send_batch((0..batch).map(message).collect())
            .await
            .unwrap();
        assert!(answers.iter().all(Result::is_ok));
    }
}

async fn receive(local: EmbeddedStore<SystemClock>, settled: Arc<AtomicU64>, messages: u64) {
    let queue = local.queue(QueueName::Deliveries);
    let visibility = Duration::from_mins(1);
    let request = ReceiveRequest {
        max: 10,
        visibility,
        wait: Duration::from_millis(200),
    };
    while settled.load(Ordering::Relaxed) < messages {
        for message in queue.receive(request).await.unwrap() {
            queue.acknowledge(&message.receipt).await.unwrap();
            settled.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Meter {
    start: Duration,
    cpu: f64,
    written: u64,
}

impl Meter {
    fn start() -> Self {
        Self {
            start: SystemClock.monotonic(),
            cpu: cpu_secs(),
            written: proc_number("io", "write_bytes:"),
        }
    }

    fn read(&self, messages: u64) -> String {
        let secs = SystemClock
            .monotonic()
            .saturating_sub(self.start)
            .as_secs_f64();
        let cpu = cpu_secs() - self.cpu;
        let messages = messages as f64;
        format!(
            "{:.0} messages/s, {:.1} us CPU each, {} bytes written each, {:.2} s, RSS {} MiB, at most {} MiB",
            messages / secs,
            cpu * 1e6 / messages,
            ((proc_number("io", "write_bytes:") - self.written) as f64 / messages).round(),
            secs,
            proc_number("status", "VmRSS:") / 1024,
            proc_number("status", "VmHWM:") / 1024,
        )
    }
}

fn file_mib(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(dir.join("posthaste.redb"))
        .unwrap()
        .blocks()
        * 512
        / (1 << 20)
}

fn cpu_secs() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn proc_number(file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}
