//! The course of a backlog: an endpoint that hardly answers, many events, `kill -9`, a restart, the
//! drain.

use std::time::Duration;

use posthaste_tests::events::subscription_with;
use posthaste_tests::home::Home;
use posthaste_tests::patience::now;
use posthaste_tests::server::Server;
use serde_json::{Value, json};

use crate::process::{Resident, cpu_seconds, resident};
use crate::producer::Producer;
use crate::setup::Setup;
use crate::sink::Sink;
use crate::traffic::Traffic;

/// Longest time for a restart. Far longer than it takes.
const RESTART_MAX: Duration = Duration::from_mins(10);

/// The figures of a backlog.
#[derive(Debug)]
pub(crate) struct Course {
    /// The memory of a server without events.
    pub(crate) idle: Resident,
    /// The time in which that one started.
    pub(crate) start_secs: f64,
    /// The memory when all events wait.
    pub(crate) full: Resident,
    events: f64,
    /// The time from the start of the new process to its first answer.
    pub(crate) restart_secs: f64,
    /// The memory after that.
    pub(crate) restarted: Resident,
    /// Events that were left, and the time and CPU time in which they were delivered.
    left: f64,
    pub(crate) drain_secs: f64,
    drain_cpu_secs: f64,
    /// The memory in the end.
    pub(crate) drained: Resident,
}

impl Course {
    /// The memory that an event took, in bytes.
    pub(crate) fn event_bytes(&self) -> f64 {
        (self.full.now_mib - self.idle.now_mib) * 1024.0 * 1024.0 / self.events
    }

    pub(crate) fn drained_per_second(&self) -> f64 {
        self.left / self.drain_secs
    }

    /// CPU time of a delivery in the drain, in microseconds.
    pub(crate) fn drain_cpu_us(&self) -> f64 {
        self.drain_cpu_secs * 1e6 / self.left
    }
}

/// A subscription that waits for its endpoint for as long as one may.
pub(crate) fn settings(sink: &Sink) -> Value {
    subscription_with(
        &format!("{}/s0", sink.url()),
        &json!({ "endpoint": { "timeout": "PT60S" } }),
    )
}

/// Publishes so many events in requests of `batch`.
pub(crate) fn run(sink: &Sink, events: usize, batch: usize, setup: &Setup<'_>) -> Course {
    let home = Home::new();
    let (server, start_secs) = start(&home, setup);
    let requests = Traffic::of_settings(settings(sink), batch).create(server.api());
    let idle = resident(server.pid());
    sink.hold();
    let times = (events / batch).max(1);
    Producer::new(&server, requests, setup.connections).publish(times);
    let full = resident(server.pid());
    server.kill();
    let left = times * batch - sink.count();
    sink.reset();
    let (server, restart_secs) = start(&home, setup);
    let restarted = resident(server.pid());

    let begin = now().as_secs_f64();
    let cpu = cpu_seconds(server.pid());
    sink.release();
    sink.wait_for(left);
    let drain_cpu_secs = cpu_seconds(server.pid()) - cpu;
    let drain_secs = sink.last() - begin;
    sink.reset();
    Course {
        idle,
        start_secs,
        full,
        events: (times * batch) as f64,
        restart_secs,
        restarted,
        left: left as f64,
        drain_secs,
        drain_cpu_secs,
        drained: resident(server.pid()),
    }
}

/// Starts a server, and answers how long it took until it answered a request.
fn start(home: &Home, setup: &Setup<'_>) -> (Server, f64) {
    let begin = now();
    let server = Server::start_within(RESTART_MAX, home.path(), &setup.options());
    server
        .api()
        .send("GET", "/health", &[], b"")
        .expect("the server answers")
        .expect(200);
    (server, now().saturating_sub(begin).as_secs_f64())
}
