//! Publishes events at a rate, whatever the answers take: each connection has its own times, which
//! it never moves. An event says when it was to be sent, so that a late one counts as late.

use std::thread;
use std::time::Duration;

use posthaste_tests::patience::{now, rest};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime;

use crate::wire::{Messages, SENT, SENT_DIGITS, find};

/// Events a second of one connection, about, if there are enough connections.
const EVENTS_PER_CONNECTION: u32 = 100;

/// The times of one connection.
#[derive(Debug, Clone, Copy)]
struct Times {
    first: Duration,
    interval: Duration,
    events: u32,
}

/// Publishes `rate` events a second for so many seconds, over at most so many connections. Answers
/// how late each event was sent, sorted.
pub(crate) fn publish(
    address: &str,
    request: &[u8],
    rate: u32,
    secs: u32,
    connections_max: usize,
) -> Vec<Duration> {
    let connections = (rate / EVENTS_PER_CONNECTION).clamp(1, connections_max as u32);
    let begin = now() + Duration::from_millis(100);
    let times = |number: u32| Times {
        first: begin + Duration::from_secs(number.into()) / rate,
        interval: Duration::from_secs(connections.into()) / rate,
        events: (rate * secs - number).div_ceil(connections),
    };
    let mut late = thread::scope(|scope| {
        let spawn =
            |number| scope.spawn(move || connection(address, request.to_vec(), times(number)));
        let threads: Vec<_> = (0..connections).map(spawn).collect();
        let join = |thread: thread::ScopedJoinHandle<'_, _>| {
            thread.join().expect("a producer does not panic")
        };
        threads.into_iter().flat_map(join).collect::<Vec<_>>()
    });
    late.sort_unstable();
    late
}

/// A thread of its own, because its sleep is exact to some 60 microseconds, and a timer of tokio to
/// a millisecond.
fn connection(address: &str, mut request: Vec<u8>, times: Times) -> Vec<Duration> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime starts");
    let stamp = find(&request, SENT).expect("an event says when it was sent") + SENT.len();
    runtime.block_on(async {
        let mut stream = TcpStream::connect(address)
            .await
            .expect("the server listens");
        stream.set_nodelay(true).expect("the socket is open");
        let (reader, mut writer) = stream.split();
        let mut answers = Messages::new(reader);
        let mut late = Vec::new();
        for number in 0..times.events {
            let at = times.first + times.interval * number;
            rest(at.saturating_sub(now()));
            late.push(now().saturating_sub(at));
            let digits = format!("{:020}", at.as_nanos());
            request[stamp..stamp + SENT_DIGITS].copy_from_slice(digits.as_bytes());
            writer.write_all(&request).await.expect("the server reads");
            let (line, _) = answers
                .next()
                .await
                .expect("the server answers")
                .expect("the server answers");
            assert!(
                line.starts_with(b"HTTP/1.1 200"),
                "{}",
                String::from_utf8_lossy(line)
            );
        }
        late
    })
}
