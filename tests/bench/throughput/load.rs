//! Throughput: from the first publish to the last arrival.

use std::fs;
use std::path::Path;
use std::time::Duration;

use posthaste_tests::events::subscription;
use posthaste_tests::home::Home;
use posthaste_tests::patience::now;
use posthaste_tests::server::Server;
use serde_json::{Map, Value, json};

use crate::process::{cpu_seconds, resident_mib};
use crate::sink::Sink;
use crate::{producer, wire};

/// The head of the table.
pub(crate) const HEADER: &str = "subscriptions  events/request  deliveries/s  us CPU/delivery  publish \
    requests/s  resident MiB  of bare client";

/// The delivery log writes a file a second. After this time without a change all of it is written.
const LOG_QUIET: Duration = Duration::from_secs(3);

/// The log filter: only warnings, and the line that says where the server listens.
pub(crate) const LOG_FILTER: &str = "warn,posthaste::serve=info";

/// The shape of a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// The number of subscriptions that get every event.
    pub(crate) subscriptions: usize,
    /// The number of events in a publish request.
    pub(crate) batch: usize,
    /// The number of deliveries in all, about.
    pub(crate) deliveries: usize,
}

/// The options of the program and the connections of its producer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup<'a> {
    /// The connections of the producer.
    pub(crate) connections: usize,
    /// The pressure profile.
    pub(crate) profile: &'a str,
    /// What the delivery log keeps.
    pub(crate) delivery_log: &'a str,
}

/// The time and resources of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    shape: Shape,
    pub(crate) per_second: f64,
    pub(crate) cpu_us: f64,
    publishes_per_second: f64,
    pub(crate) resident_mib: f64,
    /// The bytes of the delivery log's files for each delivery, warm ones included.
    pub(crate) log_bytes: f64,
}

impl Measured {
    /// A row of the table, with the share of what the bare client reaches.
    pub(crate) fn row(&self, bare: Option<f64>) -> String {
        let Shape { subscriptions, batch, .. } = self.shape;
        let share = bare.map_or("-".to_owned(), |bare| format!("{:.1} %", self.per_second / bare * 100.0));
        format!(
            "{subscriptions:>13}  {batch:>14}  {:>12.0}  {:>15.1}  {:>18.0}  {:>12.0}  {share:>14}",
            self.per_second, self.cpu_us, self.publishes_per_second, self.resident_mib
        )
    }
}

/// Runs one shape on a server and a data folder of its own. Its CPU time is that of the delivery log too: it
/// is read when the log's files have stopped to grow.
pub(crate) fn measure(sink: &Sink, shape: Shape, setup: Setup<'_>) -> Measured {
    let Setup { connections, profile, delivery_log } = setup;
    let home = Home::new();
    let options = ["--pressure-profile", profile, "--delivery-log", delivery_log, "--log-filter", LOG_FILTER];
    let server = Server::start(home.path(), &options);
    let subscribe = |n: usize| (format!("s{n}"), subscription(&format!("http://{}/s{n}", sink.address)));
    let subscriptions: Map<String, Value> = (0..shape.subscriptions).map(subscribe).collect();
    let topic = server.api().create_topic("bench", &json!({ "subscriptions": subscriptions }));
    let address = server.url().trim_start_matches("http://").to_owned();
    let requests = (shape.deliveries / shape.subscriptions / shape.batch).max(1);
    let request = wire::publish(wire::MEASURED, &topic.path(), &topic.keys[0], shape.batch, now().as_nanos());

    // Connections, caches and the allocator are warm before the clock runs.
    let warm = (requests / 20).max(1);
    producer::publish(&address, request.clone(), warm, connections);
    wait_for(sink, warm * shape.batch * shape.subscriptions);
    wait_for_log(&home);
    sink.reset();

    let (begin, cpu) = (now().as_secs_f64(), cpu_seconds(server.pid()));
    producer::publish(&address, request, requests, connections);
    let published = now().as_secs_f64();
    let deliveries = requests * shape.batch * shape.subscriptions;
    wait_for(sink, deliveries);
    let log_bytes = wait_for_log(&home);
    let cpu = cpu_seconds(server.pid()) - cpu;
    let took = sink.last() - begin;
    sink.reset();
    let logged = deliveries + warm * shape.batch * shape.subscriptions;
    Measured {
        shape,
        per_second: deliveries as f64 / took,
        cpu_us: cpu * 1e6 / deliveries as f64,
        publishes_per_second: requests as f64 / (published - begin),
        resident_mib: resident_mib(server.pid()).0,
        log_bytes: log_bytes as f64 / logged as f64,
    }
}

/// Waits until the delivery log's files have not grown for a while, and answers their bytes.
fn wait_for_log(home: &Home) -> u64 {
    let (mut bytes, mut since) = (0, now());
    posthaste_tests::patience::wait_until("the delivery log to be written", || {
        let found = bytes_below(&home.path().join("log"));
        if found != bytes {
            (bytes, since) = (found, now());
        }
        (now() >= since + LOG_QUIET).then_some(bytes)
    })
}

/// The bytes of all files below a folder; of a file that is gone, none.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let size = |entry: fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    };
    entries.map(size).sum()
}

/// Waits for so many arrivals, for as long as there are more of them: a run may take far longer than a test.
fn wait_for(sink: &Sink, count: usize) {
    let mut seen = sink.count();
    while seen < count {
        let before = seen;
        seen = posthaste_tests::patience::wait_until("more arrivals", || {
            let seen = sink.count();
            (seen > before).then_some(seen)
        });
    }
}
