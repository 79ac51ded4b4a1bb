//! Answers of endpoints as the bytes of a connection, through the client for webhooks.

use std::net::Ipv4Addr;

use posthaste_core::model::{AddressPolicy, Timestamp};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_ports::WebhookClient;
use posthaste_testkit::ManualClock;
use posthaste_testkit::memory::request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::hold::word;
use crate::target::Target;

/// The body of the request, after which the endpoint answers.
const BODY: &str = "{}";

/// The targets.
pub(super) const TARGETS: &[Target] = &[Target {
    name: "webhook-answer",
    corpus: &["tests/parsers/corpus/wire/"],
    check: answer,
    weight: 40,
}];

/// A client, and an endpoint on this machine.
struct Stage {
    runtime: Runtime,
    client: HyperWebhookClient<ManualClock>,
    listener: TcpListener,
    url: String,
}

impl Stage {
    fn set() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.expect("a runtime of one thread");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let loopback = "127.0.0.0/8".parse().expect("a range");
        let settings = ClientSettings {
            addresses: AddressPolicy {
                allowed: vec![loopback],
                ..AddressPolicy::default()
            },
            ..ClientSettings::default()
        };
        let clock = ManualClock::new(Timestamp::EPOCH);
        Self {
            runtime,
            client: HyperWebhookClient::new(settings, clock).expect("the platform's certificates"),
            listener,
            url: format!("http://{address}/"),
        }
    }

    /// Sends a request, and answers it with these bytes and the end of the connection.
    fn ask(&self, bytes: &[u8]) -> String {
        let mut asked = request(&self.url, BODY);
        asked.needs_new_connection = true;
        asked.needs_body = true;
        let endpoint = async {
            loop {
                let (mut stream, _) = self.listener.accept().await.expect("a connection");
                let mut read = Vec::new();
                while !read.ends_with(BODY.as_bytes()) {
                    if stream.read_buf(&mut read).await.unwrap_or_default() == 0 {
                        break;
                    }
                }
                // The client may have heard enough before the end.
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
            }
        };
        let answer = self.runtime.block_on(async {
            tokio::select! {
                answer = self.client.send(asked) => answer,
                () = endpoint => unreachable!("it does not end"),
            }
        });
        match answer.result {
            Ok(response) => format!("{} {}", response.status, response.body_is_whole),
            Err(failure) => word(&failure),
        }
    }
}

/// Any bytes of an endpoint are an answer or a failure.
fn answer(bytes: &[u8]) -> String {
    thread_local! {
        static STAGE: Stage = Stage::set();
    }
    STAGE.with(|stage| stage.ask(bytes))
}
