//! The limit of this machine: a bare hyper client that signs like the program and posts to the same
//! sink.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use posthaste_tests::api::CLOUD_EVENT;
use posthaste_tests::patience::now;
use sha2::Sha256;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::JoinSet;

use crate::process::cpu_seconds;
use crate::sink::Sink;
use crate::wire;

/// The throughput of the bare client.
#[derive(Debug)]
pub(crate) struct Raw {
    /// Requests per second.
    pub(crate) per_second: f64,
}

impl Raw {
    /// Posts so many signed requests over kept connections, on one thread, and prints how fast that
    /// was.
    #[expect(clippy::print_stdout, reason = "a bench prints what it measured")]
    pub(crate) fn measure(sink: &Sink, requests: usize, connections: usize) -> Self {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .expect("a runtime starts");
        let begin = now();
        let cpu = cpu_seconds(std::process::id());
        runtime.block_on(async {
            let left = Arc::new(AtomicUsize::new(requests));
            let mut tasks = JoinSet::new();
            for _ in 0..connections {
                tasks.spawn(connection(sink.hosts[0].to_string(), Arc::clone(&left)));
            }
            while let Some(ended) = tasks.join_next().await {
                ended.expect("a connection does not panic");
            }
        });
        let took = now().saturating_sub(begin).as_secs_f64();
        let cpu_us = (cpu_seconds(std::process::id()) - cpu) * 1e6 / requests as f64;
        sink.reset();
        let per_second = requests as f64 / took;
        println!(
            "Bare signed hyper client, {connections} connections: {per_second:.0}/s, {cpu_us:.1} us of CPU \
                each"
        );
        Self { per_second }
    }
}

async fn connection(address: String, left: Arc<AtomicUsize>) {
    let stream = TcpStream::connect(&address)
        .await
        .expect("the sink listens");
    stream.set_nodelay(true).expect("the socket is open");
    let (mut sender, driver) = http1::handshake(TokioIo::new(stream))
        .await
        .expect("the sink speaks HTTP");
    tokio::spawn(driver);
    let body = Bytes::from(wire::event(wire::MEASURED, wire::EVENT_BYTES, 0));
    let key = Hmac::<Sha256>::new_from_slice(&[7; 32]).expect("any length is a key");
    let take = |left: usize| left.checked_sub(1);
    while let Ok(number) = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
        let request = signed(&address, number, &body, &key);
        sender.ready().await.expect("the sink keeps the connection");
        let answer = sender
            .send_request(request)
            .await
            .expect("the sink answers");
        assert_eq!(answer.status(), 204);
        answer
            .into_body()
            .collect()
            .await
            .expect("the sink answers");
    }
}

fn signed(host: &str, number: usize, body: &Bytes, key: &Hmac<Sha256>) -> Request<Full<Bytes>> {
    let id = format!("msg_{number:032x}");
    let at = now().as_secs();
    let mut mac = key.clone();
    mac.update(format!("{id}.{at}.").as_bytes());
    mac.update(body);
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    let request = Request::post("/s0")
        .header("host", host)
        .header("content-type", CLOUD_EVENT)
        .header("webhook-id", id)
        .header("webhook-timestamp", at)
        .header("webhook-signature", signature)
        .header("webhook-request-origin", "posthaste")
        .header("origin", "posthaste")
        .header("user-agent", "posthaste/bench")
        .header("aeg-event-type", "Notification")
        .header("aeg-subscription-name", "s0")
        .header("aeg-delivery-count", "0");
    request
        .body(Full::new(body.clone()))
        .expect("every header is well formed")
}
