//! Publishes prebuilt requests over several kept connections, as fast as they are answered.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime;
use tokio::task::JoinSet;

use crate::wire::Messages;

/// Sends `request` to `address` so many times; every answer must be 200.
pub(crate) fn publish(address: &str, request: Vec<u8>, times: usize, connections: usize) {
    let runtime = runtime::Builder::new_current_thread().enable_io().build().expect("a runtime starts");
    runtime.block_on(async {
        let (request, left) = (Arc::new(request), Arc::new(AtomicUsize::new(times)));
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            tasks.spawn(connection(address.to_owned(), Arc::clone(&request), Arc::clone(&left)));
        }
        while let Some(ended) = tasks.join_next().await {
            ended.expect("a connection does not panic").expect("the server answers");
        }
    });
}

async fn connection(address: String, request: Arc<Vec<u8>>, left: Arc<AtomicUsize>) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.split();
    let mut answers = Messages::new(reader);
    let take = |left: usize| left.checked_sub(1);
    while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
        writer.write_all(&request).await?;
        let (line, body) = answers.next().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let is_accepted = line.starts_with(b"HTTP/1.1 200");
        assert!(is_accepted, "{} {}", String::from_utf8_lossy(line), String::from_utf8_lossy(body));
    }
    Ok(())
}
