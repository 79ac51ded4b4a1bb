//! HTTP/1.1 messages as bytes, built once and sent often, and the little parsing that their answers
//! need. A library would cost the producer and the sink CPU that this bench must leave to the
//! program.

use std::io;

use posthaste_tests::api::{CLOUD_EVENT, CLOUD_EVENTS_BATCH};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The usual size of one event, in bytes.
pub(crate) const EVENT_BYTES: usize = 1024;

/// The text before the time of an event's publishing, in its body. The time has [`SENT_DIGITS`]
/// digits.
pub(crate) const SENT: &[u8] = b"\"sent\":\"";

/// The type of the events that are measured.
pub(crate) const MEASURED: &str = "com.example.measured";

/// Digits of a time in nanoseconds since the epoch.
pub(crate) const SENT_DIGITS: usize = 20;

const READ_BYTES: usize = 64 * 1024;

/// Makes a CloudEvent of this type and size. It says when it was sent, and has that time as its id.
/// A producer that sends it at another time changes the first and not the id.
pub(crate) fn event(kind: &str, bytes: usize, sent_ns: u128) -> String {
    let head = format!(
        r#"{{"specversion":"1.0","id":"{sent_ns:036}","source":"/bench","type":"{kind}","data":{{"sent":"{sent_ns:020}","fill":""#
    );
    let tail = r#""}}"#;
    let fill = "x".repeat(bytes - head.len() - tail.len());
    format!("{head}{fill}{tail}")
}

/// A request that publishes these events at once.
pub(crate) fn publish(path: &str, key: &str, events: &[String]) -> Vec<u8> {
    let (content_type, body) = match events {
        [event] => (CLOUD_EVENT, event.clone()),
        events => (CLOUD_EVENTS_BATCH, format!("[{}]", events.join(","))),
    };
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\naeg-sas-key: {key}\r\ncontent-type: \
            {content_type}\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Messages of a connection, one after the other.
#[derive(Debug)]
pub(crate) struct Messages<R> {
    stream: R,
    buffer: Vec<u8>,
    used: usize,
}

impl<R: AsyncRead + Unpin> Messages<R> {
    pub(crate) fn new(stream: R) -> Self {
        Self {
            stream,
            buffer: Vec::with_capacity(READ_BYTES),
            used: 0,
        }
    }

    /// The next message's first line and body. `None` at the end.
    pub(crate) async fn next(&mut self) -> io::Result<Option<(&[u8], &[u8])>> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let head = loop {
            if let Some(at) = find(&self.buffer, b"\r\n\r\n") {
                break at + 4;
            }
            if !self.fill().await? {
                return Ok(None);
            }
        };
        let length = content_length(&self.buffer[..head]);
        while self.buffer.len() < head + length {
            if !self.fill().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.used = head + length;
        let line = find(&self.buffer, b"\r\n").unwrap_or(head);
        Ok(Some((
            &self.buffer[..line],
            &self.buffer[head..head + length],
        )))
    }

    async fn fill(&mut self) -> io::Result<bool> {
        self.buffer.reserve(READ_BYTES);
        Ok(self.stream.read_buf(&mut self.buffer).await? > 0)
    }
}

/// The index at which `needle` begins.
pub(crate) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

fn content_length(head: &[u8]) -> usize {
    let name = b"content-length:";
    let is_name = |window: &[u8]| window.eq_ignore_ascii_case(name);
    let Some(at) = head.windows(name.len()).position(is_name) else {
        return 0;
    };
    let digits = head[at + name.len()..]
        .iter()
        .skip_while(|byte| **byte == b' ')
        .take_while(|b| b.is_ascii_digit());
    digits.fold(0, |sum, digit| sum * 10 + usize::from(digit - b'0'))
}
