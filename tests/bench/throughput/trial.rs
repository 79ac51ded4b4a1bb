//! One run: a server with a data folder of its own, from the first publish to the last arrival.

use posthaste_tests::home::Home;
use posthaste_tests::patience::now;

use crate::log_files;
use crate::process::{cpu_seconds, resident};
use crate::producer::Producer;
use crate::setup::{Mode, Setup};
use crate::sink::Sink;
use crate::traffic::Traffic;

/// The metric of the spans that the collector did not get.
const SPANS_LOST: &str = "posthaste_spans_lost_total";

/// The part of the requests that is sent before the clock runs.
const WARM_UP_SHARE: usize = 20;

/// The time and resources of a run.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) deliveries: f64,
    /// Deliveries a second, to the last arrival.
    pub(crate) per_second: f64,
    /// CPU time of the program, user and system.
    pub(crate) cpu_secs: f64,
    /// The time in which it was used. With the delivery log it ends with the log's last file.
    pub(crate) secs: f64,
    pub(crate) resident_mib: f64,
    /// Bytes of the delivery log's files for each delivery.
    pub(crate) log_bytes: f64,
    /// Spans that the collector did not get.
    pub(crate) spans_lost: f64,
}

impl Measured {
    /// CPU time of a delivery, in microseconds.
    pub(crate) fn cpu_us(&self) -> f64 {
        self.cpu_secs * 1e6 / self.deliveries
    }
}

/// Publishes about so many events, in whole requests. Connections, caches and the allocator are
/// warm before the clock runs: every request is sent once, at least.
pub(crate) fn run(sink: &Sink, traffic: &Traffic, events: usize, setup: &Setup<'_>) -> Measured {
    let home = Home::new();
    let server = setup.start(&home);
    let requests = traffic.create(server.api());
    let times = (events / traffic.batch()).max(1);
    let warm = (times / WARM_UP_SHARE).max(requests.len());
    let producer = Producer::new(&server, requests, setup.connections);
    producer.publish(warm);
    sink.wait_for(warm * traffic.batch() * traffic.fan_out);
    let wait_for_log = || {
        if setup.mode == Mode::Off {
            0
        } else {
            log_files::wait_for(&home)
        }
    };
    wait_for_log();
    sink.reset();

    let lost = server.api().metric(SPANS_LOST);
    let begin = now().as_secs_f64();
    let cpu = cpu_seconds(server.pid());
    producer.publish(times);
    let deliveries = times * traffic.batch() * traffic.fan_out;
    sink.wait_for(deliveries);
    let log_bytes = wait_for_log();
    let cpu_secs = cpu_seconds(server.pid()) - cpu;
    let secs = now().as_secs_f64() - begin;
    let took = sink.last() - begin;
    sink.reset();
    let logged = deliveries + warm * traffic.batch() * traffic.fan_out;
    Measured {
        deliveries: deliveries as f64,
        per_second: deliveries as f64 / took,
        cpu_secs,
        secs,
        resident_mib: resident(server.pid()).now_mib,
        log_bytes: log_bytes as f64 / logged as f64,
        spans_lost: server.api().metric(SPANS_LOST) - lost,
    }
}
