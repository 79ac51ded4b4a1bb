//! The endpoint: answers 204, counts, and notes the time of each event. A process of its own, so that its
//! CPU time is counted apart.

use std::cell::RefCell;
use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use posthaste_tests::api::Api;
use posthaste_tests::patience::now;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::task::{LocalSet, spawn_local};

use crate::wire::{Messages, SENT, SENT_DIGITS, find};

/// The argument that makes this program a sink.
pub(crate) const ROLE: &str = "sink";

/// Most times that are kept.
const TIMES_MAX: usize = 10_000_000;

/// A running sink.
#[derive(Debug)]
pub(crate) struct Sink {
    process: Child,
    /// The address of the sink.
    pub(crate) address: SocketAddr,
    api: Api,
}

/// Events that arrived since the last question.
#[derive(Debug, Default)]
struct Arrived {
    count: usize,
    first_ns: u128,
    last_ns: u128,
    took_ns: Vec<u64>,
}

impl Sink {
    /// Starts one.
    pub(crate) fn start() -> Self {
        let program = std::env::current_exe().expect("this program has a path");
        let mut process =
            Command::new(program).arg(ROLE).stdout(Stdio::piped()).spawn().expect("this program starts");
        let mut line = String::new();
        let output = process.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("it says where it listens");
        let address: SocketAddr = line.trim().parse().expect("it says where it listens");
        Self { process, address, api: Api::new(format!("http://{address}"), "") }
    }

    /// Forgets what arrived.
    pub(crate) fn reset(&self) {
        self.ask("/reset");
    }

    /// The number of events that arrived.
    pub(crate) fn count(&self) -> usize {
        self.ask("/count")["count"].as_u64().and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
    }

    /// The arrival of the last one, in seconds since the epoch.
    pub(crate) fn last(&self) -> f64 {
        self.ask("/count")["last"].as_f64().expect("something arrived")
    }

    /// The times from publish to arrival, in milliseconds: median, 99th percentile, most.
    pub(crate) fn took_ms(&self) -> [f64; 3] {
        let took = self.ask("/took");
        ["p50", "p99", "max"].map(|name| took[name].as_f64().expect("something arrived"))
    }

    fn ask(&self, path: &str) -> Value {
        self.api.send("GET", path, &[], b"").expect("the sink answers").expect(200).json()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // An error means that it has already ended by itself, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Serves for ever, on one thread.
#[expect(clippy::print_stdout, reason = "the parent reads where it listens")]
pub(crate) fn serve() {
    let runtime = runtime::Builder::new_current_thread().enable_io().build().expect("a runtime starts");
    let arrived = Rc::new(RefCell::new(Arrived::default()));
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
        println!("{}", listener.local_addr().expect("it is bound"));
        io::stdout().flush().expect("the parent reads");
        while let Ok((stream, _)) = listener.accept().await {
            spawn_local(connection(stream, Rc::clone(&arrived)));
        }
    });
}

async fn connection(mut stream: TcpStream, arrived: Rc<RefCell<Arrived>>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.split();
    let mut requests = Messages::new(reader);
    while let Some((line, body)) = requests.next().await? {
        if line.starts_with(b"GET") {
            let answer = arrived.borrow_mut().answer(line).to_string();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
            writer.write_all((head + &answer).as_bytes()).await?;
        } else {
            arrived.borrow_mut().note(body);
            writer.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await?;
        }
    }
    Ok(())
}

impl Arrived {
    fn note(&mut self, body: &[u8]) {
        let at = now().as_nanos();
        if self.count == 0 {
            self.first_ns = at;
        }
        self.count += 1;
        self.last_ns = at;
        let Some(begin) = find(body, SENT).map(|begin| begin + SENT.len()) else { return };
        let digits = body.get(begin..begin + SENT_DIGITS).unwrap_or_default();
        let sent = digits.iter().fold(0_u128, |sum, digit| sum * 10 + u128::from(digit.wrapping_sub(b'0')));
        if self.took_ns.len() < TIMES_MAX {
            self.took_ns.push(u64::try_from(at.saturating_sub(sent)).unwrap_or(u64::MAX));
        }
    }

    fn answer(&mut self, line: &[u8]) -> Value {
        if line.starts_with(b"GET /reset") {
            *self = Self::default();
        }
        if line.starts_with(b"GET /took") {
            self.took_ns.sort_unstable();
            let ms =
                |share: f64| self.took_ns.get(rank(self.took_ns.len(), share)).map(|ns| *ns as f64 / 1e6);
            return json!({ "p50": ms(0.5), "p99": ms(0.99), "max": ms(1.0) });
        }
        json!({ "count": self.count, "first": self.first_ns as f64 / 1e9, "last": self.last_ns as f64 / 1e9 })
    }
}

/// The index of a percentile in sorted values (nearest rank).
fn rank(count: usize, share: f64) -> usize {
    ((count as f64 * share).ceil() as usize).clamp(1, count.max(1)) - 1
}
