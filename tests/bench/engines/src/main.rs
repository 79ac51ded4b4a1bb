//! Compares embedded engines on posthaste's own workload: one commit thread that groups what many
//! publishers send into one durable transaction, deletes joining the next one. Prints a Markdown
//! table.
//!
//! `cargo run --release -- [DIR]`; what it printed here is in README.md.

mod engines;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use engines::{AnyError, Append, Engine, Fjall, Redb, Row, Sqlite};

const PUBLISHERS: u64 = 64;
const RUN: Duration = Duration::from_secs(6);
/// Messages that lie between a send and its delete in the healthy path.
const IN_FLIGHT: usize = 2000;
const BACKLOG: u64 = 200_000;
const BACKLOG_BATCH: u64 = 500;

struct Request {
    bodies: Vec<Vec<u8>>,
    done: SyncSender<()>,
}

fn main() -> Result<(), AnyError> {
    let mut args = std::env::args().skip(1);
    let dir = PathBuf::from(
        args.next()
            .unwrap_or_else(|| "/tmp/posthaste-engines".into()),
    );
    // One engine and workload per process, so that resident size and I/O counters are its own.
    let Some(which) = args.next() else {
        return every_combination(&dir);
    };
    match which.as_str() {
        "append" => one::<Append>(&dir, &args.next().unwrap_or_default()),
        "redb" => one::<Redb>(&dir, &args.next().unwrap_or_default()),
        "fjall" => one::<Fjall<false>>(&dir, &args.next().unwrap_or_default()),
        "fjall-kv" => one::<Fjall<true>>(&dir, &args.next().unwrap_or_default()),
        _ => one::<Sqlite>(&dir, &args.next().unwrap_or_default()),
    }
}

fn every_combination(dir: &Path) -> Result<(), AnyError> {
    for workload in ["1", "10", "backlog"] {
        if workload == "backlog" {
            println!(
                "\n| engine | write/s | RSS MiB | disk MiB | written MiB | reopen and scan | get µs | \
                    drain/s | RSS after |"
            );
            println!("|---|---|---|---|---|---|---|---|---|");
        } else {
            println!("\n{workload} message(s) a request\n");
            println!(
                "| engine | messages/s | CPU µs/message | of it commit thread | commits/s | RSS MiB | disk \
                    MiB | bytes written/byte sent |"
            );
            println!("|---|---|---|---|---|---|---|---|");
        }
        for engine in ["append", "redb", "fjall", "fjall-kv", "sqlite"] {
            if (engine, workload) != ("append", "backlog") {
                std::process::Command::new(std::env::current_exe()?)
                    .arg(dir)
                    .args([engine, workload])
                    .status()?;
            }
        }
    }
    Ok(())
}

fn one<E: Engine + 'static>(dir: &Path, workload: &str) -> Result<(), AnyError> {
    let _ = std::fs::remove_dir_all(dir);
    std::fs::create_dir_all(dir)?;
    match workload {
        "backlog" => backlog::<E>(dir)?,
        messages => stream::<E>(dir, messages.parse()?)?,
    }
    Ok(std::fs::remove_dir_all(dir)?)
}

/// Publishers in a closed loop against the commit thread, for `RUN`.
fn stream<E: Engine + 'static>(dir: &Path, per_request: u64) -> Result<(), AnyError> {
    let engine = E::open(dir)?;
    let (sender, receiver) = sync_channel::<Request>(1024);
    let started = Instant::now();
    let publishers: Vec<_> = (0..PUBLISHERS)
        .map(|seed| {
            let sender = sender.clone();
            std::thread::spawn(move || publish(&sender, seed, per_request, started))
        })
        .collect();
    drop(sender);
    let cpu_before = cpu(false);
    let committer = std::thread::spawn(move || commit_loop(engine, &receiver));
    for publisher in publishers {
        let _ = publisher.join();
    }
    let (engine, totals) = committer.join().map_err(|_| "the commit thread died")??;
    let took = started.elapsed().as_secs_f64();
let total_cpu = cpu(false) - cpu_before;
    let messages = totals.messages as f64;
    println!(
        "| {} | {:.0} | {:.1} | {:.1} | {:.0} | {} | {} | {:.2} |",
        E::NAME,
        messages / took,
        total_cpu * 1e6 / messages,
        totals.cpu * 1e6 / messages,
        totals.commits as f64 / took,
        rss_mib(),
        disk_mib(dir),
        written_bytes() as f64 / totals.bytes as f64,
    );
    drop(engine);
    Ok(())
}

fn publish(sender: &SyncSender<Request>, seed: u64, per_request: u64, started: Instant) {
    let mut chance = seed + 1;
    let (done, answered) = sync_channel(1);
    while started.elapsed() < RUN {
        let bodies = (0..per_request).map(|_| body(&mut chance)).collect();
        if sender
            .send(Request {
                bodies,
                done: done.clone(),
            })
            .is_err()
            || answered.recv().is_err()
        {
            return;
        }
    }
}

/// 1 to 10 KiB; the bytes do not compress.
fn body(chance: &mut u64) -> Vec<u8> {
    let length = 1024 + (step(chance) % 9217) as usize;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&step(chance).to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

fn step(chance: &mut u64) -> u64 {
    *chance ^= *chance << 13;
    *chance ^= *chance >> 7;
    *chance ^= *chance << 17;
    *chance
}

#[derive(Default)]
struct Totals {
    messages: u64,
    bytes: u64,
    commits: u64,
    cpu: f64,
}

fn commit_loop<E: Engine>(
    mut engine: E,
    receiver: &Receiver<Request>,
) -> Result<(E, Totals), AnyError> {
    let mut totals = Totals::default();
    let mut in_flight = VecDeque::new();
    let cpu_before = cpu(true);
    while let Ok(first) = receiver.recv() {
        let requests: Vec<Request> = std::iter::once(first)
            .chain(receiver.try_iter().take(255))
            .collect();
        let (bodies, waiting): (Vec<_>, Vec<_>) =
            requests.into_iter().map(|r| (r.bodies, r.done)).unzip();
        let rows: Vec<Row> = (totals.messages..)
            .zip(bodies.into_iter().flatten())
            .collect();
        let done = in_flight.len().saturating_sub(IN_FLIGHT);
        let deletes: Vec<u64> = in_flight.drain(..done).collect();
        engine.commit(&rows, &deletes)?;
        in_flight.extend(rows.iter().map(|(key, _)| *key));
        totals.messages += rows.len() as u64;
        totals.bytes += rows.iter().map(|(_, body)| body.len() as u64).sum::<u64>();
        totals.commits += 1;
        for done in waiting {
            let _ = done.send(());
        }
    }
    totals.cpu = cpu(true) - cpu_before;
    Ok((engine, totals))
}

/// 200,000 messages of 1 KiB written, reopened, read at random, drained in order.
fn backlog<E: Engine>(dir: &Path) -> Result<(), AnyError> {
    let mut engine = E::open(dir)?;
    let mut chance = 7;
    let start = Instant::now();
    for batch in 0..BACKLOG / BACKLOG_BATCH {
        let keys = batch * BACKLOG_BATCH..(batch + 1) * BACKLOG_BATCH;
        let rows: Vec<Row> = keys
            .map(|key| {
                (
                    key,
                    (0..128)
                        .flat_map(|_| step(&mut chance).to_le_bytes())
                        .collect(),
                )
            })
            .collect();
        engine.commit(&rows, &[])?;
    }
    let write = BACKLOG as f64 / start.elapsed().as_secs_f64();
    let rss = rss_mib();
let disk = disk_mib(dir);
let written = written_bytes() >> 20;
    drop(engine);
    let start = Instant::now();
    let mut engine = E::open(dir)?;
    assert_eq!(engine.scan()?, BACKLOG);
    let reopen = start.elapsed();
    let start = Instant::now();
    for _ in 0..20_000 {
        assert_eq!(
            engine
                .get(step(&mut chance) % BACKLOG)?
                .map(|body| body.len()),
            Some(1024)
        );
    }
    let get = start.elapsed().as_secs_f64() / 20_000.0 * 1e6;
    let start = Instant::now();

    for batch in 0..BACKLOG / BACKLOG_BATCH {
        let keys: Vec<u64> = (batch * BACKLOG_BATCH..(batch + 1) * BACKLOG_BATCH).collect();
        engine.commit(&[], &keys)?;
    }
    println!(
        "| {} | {write:.0} | {rss} | {disk} | {written} | {reopen:.2?} | {get:.1} | {:.0} | {} |",
        E::NAME,
        BACKLOG as f64 / start.elapsed().as_secs_f64(),
        rss_mib()
    );
    Ok(())
}

/// CPU seconds of this thread or of the whole process.
fn cpu(thread: bool) -> f64 {
    let clock = if thread {
        rustix::time::ClockId::ThreadCPUTime
    } else {
        rustix::time::ClockId::ProcessCPUTime
    };
    let time = rustix::time::clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn proc_number(file: &str, field: &str) -> u64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap_or_default();
    line.split_whitespace()
        .next()
        .and_then(|number| number.parse().ok())
        .unwrap_or(0)
}

fn rss_mib() -> u64 {
    proc_number("/proc/self/status", "VmRSS:") >> 10
}

fn written_bytes() -> u64 {
    proc_number("/proc/self/io", "write_bytes:")
}

fn disk_mib(dir: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(dir) else {
        return 0;
    };
    let bytes = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(meta) if meta.is_dir() => disk_mib(&entry.path()) << 20,
        Ok(meta) => meta.blocks() * 512,
        Err(_) => 0,
    };
    entries.flatten().map(bytes).sum::<u64>() >> 20
}
