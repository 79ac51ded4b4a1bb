//! TLS sessions of many hosts: handshakes resumed, CPU and memory a host, beside raw handshakes.
//!
//! `cargo bench -p posthaste-http --bench sessions [-- HOSTS]`. Each round posts one event to every
//! host (10,000 unless said otherwise) on a connection of its own, which the server then closes.
//! The server is a process of its own, so the CPU is that of the client alone.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and an error ends it"
)]

mod raw;
mod server;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, Method, StatusCode};
use posthaste_core::model::{AddressPolicy, EndpointUrl};
use posthaste_http::{ClientSettings, HyperWebhookClient, LookupError, NameLookup};
use posthaste_ports::{WebhookClient, WebhookRequest};
use posthaste_system::SystemClock;

use crate::server::Server;

const HOSTS_DEFAULT: usize = 10_000;
const ROUNDS: usize = 3;
const CONCURRENT: usize = 8;
const PAYLOAD_BYTES: usize = 1024;

/// Every name is this machine's.
struct Loopback;

impl NameLookup for Loopback {
    async fn lookup(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }

    fn forget_all(&self) {}
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    if let Some(path) = arguments.find(|it| it.ends_with(server::CERTIFICATE)) {
        return server::run(&path);
    }
    let hosts = std::env::args().skip(1).find_map(|it| it.parse().ok());
    let hosts = hosts.unwrap_or(HOSTS_DEFAULT);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(bench(hosts));
}

async fn bench(hosts: usize) {
    let server = Server::start();
    println!(
        "{PAYLOAD_BYTES} bytes, {CONCURRENT} at once, {} bytes of certificates",
        server.chain_bytes()
    );
    println!(
        "{:>24} {:>7} {:>6} {:>9} {:>12} {:>14}",
        "", "hosts", "round", "resumed", "CPU µs each", "RSS KiB a host"
    );
    for hosts in [hosts, hosts + hosts / 4] {
        let client = client(&server);
        let before = resident_kib();
        for round in 1..=ROUNDS {
            let cpu = cpu_us(each_host(hosts, async |host| {
                post(&client, &server, host).await;
            }))
            .await;
            print("the webhook client", hosts, round, (&server, cpu), before);
        }
    }
    for resumes in [false, true] {
        let raw = raw::RawConnections::new(&server, resumes.then_some(hosts));
        let before = resident_kib();
        let name = if resumes {
            "raw, sessions kept"
        } else {
            "raw, full"
        };
        for round in 1..=if resumes { 2 } else { 1 } {
            let cpu = cpu_us(each_host(hosts, async |host| raw.post(host).await)).await;
            print(name, hosts, round, (&server, cpu), before);
        }
    }
}

fn print(what: &str, hosts: usize, round: usize, (server, cpu): (&Server, f64), before: u64) {
    let resumed = server.take_resumed();
    let each = |total: f64| total / f64::from(u32::try_from(hosts).unwrap());
    let share = each(f64::from(resumed)) * 100.0;
    let kib = resident_kib().saturating_sub(before);
    let kib_each = each(f64::from(u32::try_from(kib).unwrap()));
    println!(
        "{what:>24} {hosts:>7} {round:>6} {share:>7.1} % {:>12.0} {kib_each:>14.1}",
        each(cpu)
    );
}

/// Does something for every host in turn, some at once.
async fn each_host(hosts: usize, work: impl AsyncFn(usize)) {
    stream::iter(0..hosts)
        .for_each_concurrent(CONCURRENT, |host| work(host))
        .await;
}

fn client(server: &Server) -> HyperWebhookClient<SystemClock, Loopback> {
    let settings = ClientSettings {
        addresses: AddressPolicy {
            allowed: vec!["127.0.0.0/8".parse().unwrap()],
            ..AddressPolicy::default()
        },
        extra_root_file: Some(server.root_file().to_owned()),
        ..ClientSettings::default()
    };
    HyperWebhookClient::with_names(settings, SystemClock, Loopback).unwrap()
}

async fn post(client: &HyperWebhookClient<SystemClock, Loopback>, server: &Server, host: usize) {
    let url = format!(
        "https://{}:{}/hook",
        server::host(host),
        server.address().port()
    );
    let request = WebhookRequest {
        method: Method::POST,
        url: EndpointUrl::parse(&url).unwrap(),
        headers: HeaderMap::new(),
        body: vec![Bytes::from_static(&[b'x'; PAYLOAD_BYTES])],
        needs_new_connection: false,
        needs_body: false,
        timeout: Duration::from_secs(30),
    };
    let response = client.send(request).await.result.unwrap();
    assert_eq!(response.status, StatusCode::NO_CONTENT);
}

/// The CPU time that some work takes of this process, in microseconds.
async fn cpu_us(work: impl Future<Output = ()>) -> f64 {
    let now = || -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.try_into().unwrap()
    };
    let before = now();
    work.await;
    now().saturating_sub(before).as_secs_f64() * 1e6
}

/// The memory of this process that is resident.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap()
}
