//! The producers: each kind of event at a rate, on a connection of its own.

use std::time::Duration;

use posthaste_tests::api::Topic;
use posthaste_tests::patience::now;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::JoinSet;

use crate::wire::{self, EVENT_BYTES, MEASURED, Messages};

/// Connections of those, so that their rate is kept also where a publish takes long.
const PRESSING_CONNECTIONS: u32 = 16;

/// The type of the events that are for the hundredth alone.
pub(crate) const PRESSING: &str = "com.example.pressing";

/// Publishes to one topic.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    address: String,
    path: String,
    key: String,
}

impl Load {
    /// Publishes to a topic of the server at `url`.
    pub(crate) fn new(url: &str, topic: &Topic) -> Self {
        let address = url.trim_start_matches("http://").to_owned();
        Self {
            address,
            path: topic.path(),
            key: topic.keys[0].clone(),
        }
    }

    /// Publishes so many events for everybody, one after the other, and so many for the hundredth
    /// alone, spread over so many seconds; all must be accepted. Answers how many there were of
    /// the latter.
    pub(crate) fn publish(&self, secs: u32, events: u32, pressing: u32) -> u32 {
        let length = Duration::from_secs(secs.into());
        let each = pressing / PRESSING_CONNECTIONS;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime starts");
        runtime.block_on(async {
            let mut tasks = JoinSet::new();
            tasks.spawn(self.clone().publish_kind(MEASURED, events, length));
            for _ in 0..PRESSING_CONNECTIONS {
                tasks.spawn(self.clone().publish_kind(PRESSING, each, length));
            }
            while let Some(ended) = tasks.join_next().await {
                ended.expect("a producer does not panic");
            }
        });
        each * PRESSING_CONNECTIONS
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a bench publishes at a rate in real time"
    )]
    async fn publish_kind(self, kind: &str, events: u32, length: Duration) {
        let mut stream = TcpStream::connect(&self.address)
            .await
            .expect("the server listens");
        stream.set_nodelay(true).expect("the socket is open");
        let (reader, mut writer) = stream.split();
        let mut answers = Messages::new(reader);
        let mut ticks = tokio::time::interval(length / events.max(1));
        for _ in 0..events {
            ticks.tick().await;
            let event = wire::event(kind, EVENT_BYTES, now().as_nanos());
            let request = wire::publish(&self.path, &self.key, &[event]);
            writer.write_all(&request).await.expect("the server reads");
            let (line, body) = answers
                .next()
                .await
                .expect("the server answers")
                .expect("the server answers");
            let is_accepted = line.starts_with(b"HTTP/1.1 200");
            assert!(
                is_accepted,
                "{} {}",
                String::from_utf8_lossy(line),
                String::from_utf8_lossy(body)
            );
        }
    }
}
