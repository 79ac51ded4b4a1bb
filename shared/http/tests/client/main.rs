//! The client against scripted endpoints on loopback.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, helpers included, an error is a failed test"
)]

mod addresses;
mod certificates;
mod deadline;
mod endpoint;
mod look;
mod name_server;
mod odd;
mod responses;
mod reuse;
mod tls;

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use posthaste_core::model::{AddressPolicy, EndpointUrl, SendFailure, Timestamp};
use posthaste_http::{ClientSettings, HyperWebhookClient, LookupError, NameLookup};
use posthaste_ports::{Clock, WebhookAnswer, WebhookClient, WebhookRequest};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;

/// The timeout of every request. Where a test is about time it moves a clock of its own to it;
/// elsewhere it is only there so that a test that hangs fails.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A client that may go to loopback.
fn client() -> HyperWebhookClient<SystemClock> {
    HyperWebhookClient::new(on_loopback(), SystemClock).unwrap()
}

/// A client for which no time passes, however slow the machine is.
fn timeless_client() -> HyperWebhookClient<ManualClock> {
    HyperWebhookClient::new(on_loopback(), ManualClock::new(Timestamp::EPOCH)).unwrap()
}

fn on_loopback() -> ClientSettings {
    let addresses = AddressPolicy {
        allowed: vec!["127.0.0.0/8".parse().unwrap()],
        ..AddressPolicy::default()
    };
    ClientSettings {
        addresses,
        ..ClientSettings::default()
    }
}

fn post(url: &str) -> WebhookRequest {
    let mut headers = HeaderMap::new();
    headers.insert(
        http::header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert("webhook-id", HeaderValue::from_static("e1"));
    WebhookRequest {
        method: Method::POST,
        url: EndpointUrl::parse(url).unwrap(),
        headers,
        body: ["[", "{\"id\":1}", "]"].map(Bytes::from).to_vec(),
        needs_new_connection: false,
        needs_body: false,
        timeout: TIMEOUT,
    }
}

/// Status and body, or the failure.
type BriefResponse = Result<(u16, String), SendFailure>;

fn brief(answer: WebhookAnswer) -> BriefResponse {
    answer.result.map(|response| {
        (
            response.status.as_u16(),
            String::from_utf8_lossy(&response.body).into_owned(),
        )
    })
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands beside answers that are failures"
)]
fn answered(status: u16, body: &str) -> BriefResponse {
    Ok((status, body.to_owned()))
}

async fn send<C: Clock, N: NameLookup>(
    client: &HyperWebhookClient<C, N>,
    url: &str,
) -> BriefResponse {
    brief(client.send(post(url)).await)
}

/// Lets everything that is ready run, and the reactor see what arrived.
async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

/// Scripted results of look-ups, in turn.
struct ScriptedNames(Mutex<VecDeque<Result<Vec<IpAddr>, LookupError>>>);

impl ScriptedNames {
    fn new(answers: Vec<Result<&[&str], LookupError>>) -> Self {
        let parse = |all: &[&str]| all.iter().map(|address| address.parse().unwrap()).collect();
        Self(Mutex::new(
            answers
                .into_iter()
                .map(|answer| answer.map(parse))
                .collect(),
        ))
    }
}

impl NameLookup for ScriptedNames {
    async fn lookup(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
        self.0
            .lock()
            .unwrap()
            .pop_front()
            .expect("no more look-ups were expected")
    }

    fn forget_all(&self) {}
}
