//! Publishes prebuilt requests by turns over several kept connections, as fast as they are
//! answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use posthaste_tests::server::Server;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::JoinSet;

use crate::wire::Messages;

/// Publishes to one server.
#[derive(Debug, Clone)]
pub(crate) struct Producer {
    address: String,
    requests: Arc<[Vec<u8>]>,
    connections: usize,
}

impl Producer {
    pub(crate) fn new(server: &Server, requests: Vec<Vec<u8>>, connections: usize) -> Self {
        let address = server.url().trim_start_matches("http://").to_owned();
        Self {
            address,
            requests: requests.into(),
            connections,
        }
    }

    /// Sends so many requests; every answer must be 200.
    pub(crate) fn publish(&self, times: usize) {
        let runtime = runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .expect("a runtime starts");
        runtime.block_on(async {
            let sent = Arc::new(AtomicUsize::new(0));
            let mut tasks = JoinSet::new();
            for _ in 0..self.connections {
                tasks.spawn(self.clone().connection(times, Arc::clone(&sent)));
            }
            while let Some(ended) = tasks.join_next().await {
                ended
                    .expect("a connection does not panic")
                    .expect("the server answers");
            }
        });
    }

    async fn connection(self, times: usize, sent: Arc<AtomicUsize>) -> io::Result<()> {
        let mut stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let (reader, mut writer) = stream.split();
        let mut answers = Messages::new(reader);
        loop {
            let number = sent.fetch_add(1, Ordering::Relaxed);
            if number >= times {
                return Ok(());
            }
            writer
                .write_all(&self.requests[number % self.requests.len()])
                .await?;
            let (line, body) = answers.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
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
