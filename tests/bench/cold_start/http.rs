//! A small HTTP/1.1 server with a thread per connection, plain or over TLS, that notes when things
//! happened. The server is simple, so that its own time is small beside the measured times.

use std::fmt::Write as _;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::process::{PATIENCE, now};

/// A request as it was read.
#[derive(Debug)]
pub(crate) struct Request {
    /// Method and path, for instance `GET /a?b`.
    pub(crate) line: String,
    /// The body.
    pub(crate) body: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Response {
    status: u16,
    head: String,
    body: Vec<u8>,
}

/// One request and when it went by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Exchange {
    /// The time at which it was read.
    pub(crate) read: Instant,
    /// The time at which its answer was written.
    pub(crate) written: Option<Instant>,
}

/// Exchanges in the order in which their requests were read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<(Mutex<Vec<Exchange>>, Condvar)>);

/// A running server. It runs until the process ends.
#[derive(Debug)]
pub(crate) struct Server {
    /// The address of the server.
    pub(crate) address: SocketAddr,
    /// The requests it received.
    pub(crate) log: Log,
}

impl Response {
    /// An answer of this status.
    pub(crate) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            head: String::new(),
            body: body.into(),
        }
    }

    /// The same with one more header.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        let _ = write!(self.head, "{name}: {value}\r\n");
        self
    }

    fn render(self) -> Vec<u8> {
        let Self { status, head, body } = self;
        let mut bytes = format!("HTTP/1.1 {status} Status\r\n{head}").into_bytes();
        if status != 204 {
            bytes.extend_from_slice(format!("content-length: {}\r\n", body.len()).as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body);
        bytes
    }
}

impl Server {
    /// Listens on loopback and answers by `answer`.
    pub(crate) fn start(
        tls: Option<Arc<ServerConfig>>,
        answer: impl Fn(&Request) -> Response + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let log = Log::default();
        let noting = log.clone();
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let noting = noting.clone();
                let answer = Arc::clone(&answer);
                let tls = tls.clone();
                // A program that is killed leaves broken connections behind.
                thread::spawn(move || connection(stream, tls, &noting, &*answer));
            }
        });
        Self { address, log }
    }
}

impl Log {
    /// Waits until `seen` finds what it looks for.
    pub(crate) fn wait_for<T>(&self, what: &str, seen: impl Fn(&[Exchange]) -> Option<T>) -> T {
        let (_, changed) = &*self.0;
        let mut exchanges = self.lock();
        loop {
            if let Some(found) = seen(&exchanges) {
                return found;
            }
            let (woken, waited) = changed
                .wait_timeout(exchanges, PATIENCE)
                .unwrap_or_else(PoisonError::into_inner);
            assert!(!waited.timed_out(), "gave up waiting for {what}");
            exchanges = woken;
        }
    }

    /// The number of requests that were read.
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Exchange>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self) -> usize {
        let read = now();
        let mut exchanges = self.lock();
        exchanges.push(Exchange {
            read,
            written: None,
        });
        self.0.1.notify_all();
        exchanges.len() - 1
    }

    fn written(&self, index: usize) {
        let written = now();
        self.lock()[index].written = Some(written);
        self.0.1.notify_all();
    }
}

fn connection(
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    log: &Log,
    answer: &impl Fn(&Request) -> Response,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(config) = tls else {
        return serve(stream, log, answer);
    };
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    serve(StreamOwned::new(session, stream), log, answer)
}

fn serve(
    stream: impl Read + Write,
    log: &Log,
    answer: &impl Fn(&Request) -> Response,
) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read_request(&mut stream)? {
        let index = log.read();
        let response = answer(&request).render();
        stream.get_mut().write_all(&response)?;
        stream.get_mut().flush()?;
        log.written(index);
    }
    Ok(())
}

fn read_request(stream: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if stream.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        stream.read_line(&mut header)?;
        let Some((name, value)) = header.trim_end().split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(Some(Request { line, body }))
}
