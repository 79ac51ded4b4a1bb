//! Memory under a backlog: many events for an endpoint that is down.

use posthaste_tests::endpoint::nobody;
use posthaste_tests::home::Home;
use posthaste_tests::patience::now;
use posthaste_tests::server::Server;
use serde_json::json;

use crate::load::LOG_FILTER;
use crate::process::{cpu_seconds, resident_mib};
use crate::{producer, wire};

/// The most resident memory that a million waiting events of 1 KiB may take (the bound), in MiB.
const RESIDENT_MIB_MAX: f64 = 1024.0;

/// Number of times that the memory is read while events are published.
const SLICES: usize = 10;

/// Publishes so many events, looks at the memory meanwhile, and restarts the server on what waits.
#[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
pub(crate) fn measure(events: usize, batch: usize, connections: usize) -> String {
    let home = Home::new();
    let arguments = ["--pressure-profile", "off", "--log-filter", LOG_FILTER];
    let server = Server::start(home.path(), &arguments);
    let settings = json!({ "endpoint": { "url": nobody() } });
    let topic = server.api().create_topic_with("bench", "down", &settings);
    let address = server.url().trim_start_matches("http://").to_owned();
    let request = wire::publish(wire::MEASURED, &topic.path(), &topic.keys[0], batch, now().as_nanos());
    println!(
        "backlog, pressure profile off, endpoint down, default retry policy, {batch} events per request"
    );
    let begin = now();
    for slice in 1..=SLICES {
        producer::publish(&address, request.clone(), events / batch / SLICES, connections);
        let (resident, _) = resident_mib(server.pid());
        println!("{:>9} published, resident {resident:.0} MiB", events / SLICES * slice);
    }
    let took = now().saturating_sub(begin).as_secs_f64();
    let cpu = cpu_seconds(server.pid());
    let (resident, most) = resident_mib(server.pid());
    server.kill();
    let begin = now();
    let server = Server::start(home.path(), &arguments);
    let restart = now().saturating_sub(begin).as_secs_f64();
    let (after, most_after) = resident_mib(server.pid());
    let verdict = if most.max(most_after) <= RESIDENT_MIB_MAX { "within" } else { "PAST" };
    format!(
        "{events} events in {took:.1} s ({cpu:.1} s of CPU): resident {resident:.0} MiB, most {most:.0} MiB; \
         after kill -9 ready in {restart:.2} s with {after:.0} MiB, most {most_after:.0} MiB: {verdict} the \
         bound of {RESIDENT_MIB_MAX:.0} MiB"
    )
}
