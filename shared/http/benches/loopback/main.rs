//! CPU per request of the client beside a bare hyper loop, against a sink in a process of its own.
//!
//! `cargo bench -p posthaste-http`. Prints, for plain and TLS keep-alive with 32 requests at once,
//! requests per second and the CPU time of this process per request. The best of a few interleaved
//! rounds counts: what disturbs a round only ever adds.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench prints, and an error ends it"
)]

mod bare;
mod sink;

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use posthaste_core::model::{AddressPolicy, EndpointUrl};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_ports::{Clock, WebhookClient, WebhookRequest};
use posthaste_system::SystemClock;

use crate::sink::Sink;

const CONCURRENT: u32 = 32;
const REQUESTS_PER_ROUND: u32 = 60_000;
const ROUNDS: usize = 5;
const PAYLOAD_BYTES: usize = 1024;

/// The headers a signed event carries.
const HEADERS: [(&str, &str); 7] = [
    (
        "content-type",
        "application/cloudevents+json; charset=utf-8",
    ),
    ("aeg-event-type", "Notification"),
    ("aeg-subscription-name", "BILLING"),
    ("aeg-delivery-count", "0"),
    ("webhook-id", "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"),
    ("webhook-timestamp", "1795000000"),
    (
        "webhook-signature",
        "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
    ),
];

fn main() {
    if std::env::args().any(|argument| argument == sink::ARGUMENT) {
        return sink::run();
    }
    // One worker: the sink has the other core.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async { tokio::spawn(bench()).await.unwrap() });
}

async fn bench() {
    println!(
        "{CONCURRENT} at once, {PAYLOAD_BYTES} bytes, best of {ROUNDS} rounds of {REQUESTS_PER_ROUND}"
    );
    for is_tls in [false, true] {
        let sink = Sink::start(is_tls);
        let client = client(&sink);
        let mut bare_best = RequestCost::MAX;
        let mut ours_best = RequestCost::MAX;
        for _ in 0..ROUNDS {
            bare_best = bare_best.best(measure(join_all(bare::workers(&sink).await)).await);
            ours_best = ours_best.best(measure(join_all(our_workers(&client, &sink))).await);
        }
        let name = if is_tls { "TLS" } else { "plain" };
        bare_best.print(name, "bare hyper");
        ours_best.print(name, "our client");
        println!(
            "{name:>6}  overhead     {:>9.2} µs of CPU per request",
            ours_best.cpu_us - bare_best.cpu_us
        );
        assert_eq!(client.idle_connections(), CONCURRENT as usize);
    }
}

fn client(sink: &Sink) -> HyperWebhookClient<SystemClock> {
    let addresses = AddressPolicy {
        allowed: vec!["127.0.0.0/8".parse().unwrap()],
        ..AddressPolicy::default()
    };
    let settings = ClientSettings {
        addresses,
        extra_root_file: sink.root_file(),
        ..ClientSettings::default()
    };
    HyperWebhookClient::new(settings, SystemClock).unwrap()
}

fn our_workers(
    client: &HyperWebhookClient<SystemClock>,
    sink: &Sink,
) -> Vec<impl Future<Output = ()> + use<>> {
    let url = EndpointUrl::parse(&sink.url()).unwrap();
    let payload = Bytes::from(vec![b'x'; PAYLOAD_BYTES]);
    let worker = || {
        let client = client.clone();
        let url = url.clone();
        let payload = payload.clone();
        async move {
            for _ in 0..REQUESTS_PER_ROUND / CONCURRENT {
                let request = WebhookRequest {
                    method: Method::POST,
                    url: url.clone(),
                    headers: headers(),
                    body: vec![payload.clone()],
                    needs_new_connection: false,
                    needs_body: false,
                    timeout: Duration::from_secs(30),
                };
                let response = client.send(request).await.result.unwrap();
                assert_eq!(response.status, StatusCode::NO_CONTENT);
            }
        }
    };
    (0..CONCURRENT).map(|_| in_task(worker())).collect()
}

fn headers() -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS.len());
    for (name, value) in HEADERS {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers
}

/// A task that is spawned at its first poll.
async fn in_task(work: impl Future<Output = ()> + Send + 'static) {
    tokio::spawn(work).await.unwrap();
}

/// The cost of a request.
#[derive(Clone, Copy)]
struct RequestCost {
    cpu_us: f64,
    wall_us: f64,
}

impl RequestCost {
    const MAX: Self = Self {
        cpu_us: f64::MAX,
        wall_us: f64::MAX,
    };

    fn best(self, other: Self) -> Self {
        Self {
            cpu_us: self.cpu_us.min(other.cpu_us),
            wall_us: self.wall_us.min(other.wall_us),
        }
    }

    fn print(self, name: &str, what: &str) {
        println!(
            "{name:>6}  {what}   {:>9.2} µs of CPU per request, {:>9.0}/s",
            self.cpu_us,
            1e6 / self.wall_us
        );
    }
}

async fn measure<T>(round: impl Future<Output = T>) -> RequestCost {
    let cpu = process_cpu();
    let wall = SystemClock.monotonic();
    round.await;
    let per_request = |from: Duration, to: Duration| {
        (to.as_secs_f64() - from.as_secs_f64()) * 1e6 / f64::from(REQUESTS_PER_ROUND)
    };
    RequestCost {
        cpu_us: per_request(cpu, process_cpu()),
        wall_us: per_request(wall, SystemClock.monotonic()),
    }
}

/// The CPU time of this process so far.
fn process_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.try_into().unwrap()
}
