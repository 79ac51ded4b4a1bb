//! From publish to arrival, at 100 events per second.

use std::time::Duration;

use posthaste_tests::events::subscription;
use posthaste_tests::home::Home;
use posthaste_tests::patience::{now, wait_until};
use posthaste_tests::server::Server;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime;

use crate::load::LOG_FILTER;
use crate::process::{cpu_seconds, resident_mib};
use crate::sink::Sink;
use crate::wire::{self, Messages};

const EVENTS_PER_SECOND: u32 = 100;

/// Publishes so many events, one each 10 ms, and says how long they took.
pub(crate) fn measure(sink: &Sink, events: usize, profile: &str) -> String {
    let home = Home::new();
    let server = Server::start(home.path(), &["--pressure-profile", profile, "--log-filter", LOG_FILTER]);
    let settings = subscription(&format!("http://{}/latency", sink.address));
    let topic = server.api().create_topic_with("bench", "all", &settings);
    let address = server.url().trim_start_matches("http://").to_owned();
    let request = || wire::publish(wire::MEASURED, &topic.path(), &topic.keys[0], 1, now().as_nanos());
    publish(&address, request, EVENTS_PER_SECOND as usize);
    wait_until("the warm-up to arrive", || (sink.count() >= EVENTS_PER_SECOND as usize).then_some(()));
    sink.reset();
    let cpu = cpu_seconds(server.pid());
    publish(&address, request, events);
    wait_until("everything to arrive", || (sink.count() >= events).then_some(()));
    let cpu = (cpu_seconds(server.pid()) - cpu) * 1e6 / events as f64;
    let [p50, p99, max] = sink.took_ms();
    let resident = resident_mib(server.pid()).0;
    sink.reset();
    format!(
        "latency at {EVENTS_PER_SECOND}/s over {events} events, pressure profile {profile}: p50 {p50:.2} ms, \
            p99 {p99:.2} ms, most {max:.2} ms; {cpu:.0} us of CPU each, resident {resident:.0} MiB"
    )
}

#[expect(clippy::disallowed_methods, reason = "a bench publishes at a rate in real time")]
fn publish(address: &str, request: impl Fn() -> Vec<u8>, times: usize) {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let mut stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("the socket is open");
        let (reader, mut writer) = stream.split();
        let mut answers = Messages::new(reader);
        let mut ticks = tokio::time::interval(Duration::from_secs(1) / EVENTS_PER_SECOND);
        for _ in 0..times {
            ticks.tick().await;
            writer.write_all(&request()).await.expect("the server reads");
            let (line, _) = answers.next().await.expect("the server answers").expect("the server answers");
            assert!(line.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(line));
        }
    });
}
