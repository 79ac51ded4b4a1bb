//! Throughput: from the first publish to the last arrival.

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

/// The time and resources of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    shape: Shape,
    per_second: f64,
    cpu_us: f64,
    publishes_per_second: f64,
    resident_mib: f64,
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

/// Runs one shape on a server and a data folder of its own.
pub(crate) fn measure(sink: &Sink, shape: Shape, connections: usize, profile: &str) -> Measured {
    let home = Home::new();
    let server = Server::start(home.path(), &["--pressure-profile", profile, "--log-filter", LOG_FILTER]);
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
    sink.reset();

    let (begin, cpu) = (now().as_secs_f64(), cpu_seconds(server.pid()));
    producer::publish(&address, request, requests, connections);
    let published = now().as_secs_f64();
    let deliveries = requests * shape.batch * shape.subscriptions;
    wait_for(sink, deliveries);
    let cpu = cpu_seconds(server.pid()) - cpu;
    let took = sink.last() - begin;
    sink.reset();
    Measured {
        shape,
        per_second: deliveries as f64 / took,
        cpu_us: cpu * 1e6 / deliveries as f64,
        publishes_per_second: requests as f64 / (published - begin),
        resident_mib: resident_mib(server.pid()).0,
    }
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
