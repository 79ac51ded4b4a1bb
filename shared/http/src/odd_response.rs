//! Odd responses: those whose status line is there and whose rest hyper does not take. They are
//! read once more, as leniently as curl reads, because a response with a status counts. Their
//! connection is not used again, so that no leniency reaches another request.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use memchr::memchr;
use posthaste_ports::WebhookResponse;
use tokio::io::{AsyncRead, ReadBuf};

use crate::body::ReceivedBody;
use crate::framing::BodyFraming;
use crate::heads::{is_interim, parse_status};
use crate::settings::{INTERIM_ANSWERS_MAX, ODD_HEADERS_MAX, RESPONSE_HEAD_BYTES_MAX};
use crate::wire::{ListeningWire, WireMeter};

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;

/// Longest size of a chunk that is read, in digits: more make more bytes than are ever read.
const CHUNK_DIGITS_MAX: usize = 15;

/// A response that is being read. When the reading is ended, it consists of the bytes so far.
pub(crate) struct OddResponse {
    source: ByteSource,
    status: Option<StatusCode>,
    header_lines: Vec<BytesMut>,
    received: ReceivedBody,
    is_whole: bool,
}

/// The bytes of a connection: those that were read before, and then more.
struct ByteSource {
    unread: BytesMut,
    wire: ListeningWire,
}

impl OddResponse {
    /// The response on this connection, whose bytes so far are read again.
    pub(crate) fn from_wire(mut wire: ListeningWire) -> Self {
        let source = ByteSource {
            unread: BytesMut::from(&*wire.take_heads()),
            wire,
        };
        Self {
            source,
            status: None,
            header_lines: Vec::new(),
            received: ReceivedBody::default(),
            is_whole: false,
        }
    }

    /// The response as far as it has come, if it has a status.
    pub(crate) fn into_response(self) -> Option<WebhookResponse> {
        Some(WebhookResponse {
            status: self.status?,
            headers: self.headers(),
            body: self.received.into_bytes(),
            body_is_whole: self.is_whole,
        })
    }

    /// Reads the head, and returns whether it came to its end.
    pub(crate) async fn read_head(&mut self) -> bool {
        let meter = self.source.wire.meter();
        read_in_turns(&meter, async {
            self.status = self.read_status().await;
            self.status.is_some() && self.read_headers().await.is_some()
        })
        .await
    }

    /// Reads the body that follows the head, as far as it can be read.
    pub(crate) async fn read_body(&mut self) {
        let Some(status) = self.status else { return };
        let meter = self.source.wire.meter();
        self.is_whole = read_in_turns(&meter, self.read_framed(status))
            .await
            .is_some();
    }

    /// The status, if that was read.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.status
    }

    /// Reads the first status that is not that of an interim response.
    async fn read_status(&mut self) -> Option<StatusCode> {
        if !may_be_status_line(&self.source.unread) {
            return None;
        }
        for _ in 0..=INTERIM_ANSWERS_MAX {
            let mut line = self.source.next_line().await?;
            while line.is_empty() {
                line = self.source.next_line().await?;
            }
            let status = parse_status(&line)?;
            if !is_interim(status) {
                return Some(status);
            }
            while !self.source.next_line().await?.is_empty() {}
        }
        None
    }

    /// Reads the headers. `None` if their end did not come.
    async fn read_headers(&mut self) -> Option<()> {
        let mut bytes_left = RESPONSE_HEAD_BYTES_MAX;
        loop {
            let line = self.source.next_line().await?;
            if line.is_empty() {
                return Some(());
            }
            let Some(left) = bytes_left.checked_sub(line.len()) else {
                continue;
            };
            bytes_left = left;
            let has_room = self.header_lines.len() < ODD_HEADERS_MAX;
            match (line.first(), self.header_lines.last_mut()) {
                // A folded line continues where the one before it ended (RFC 9112, section 5.2).
                (Some(b' ' | b'\t'), Some(last)) => {
                    last.extend_from_slice(b" ");
                    last.extend_from_slice(line.trim_ascii());
                }
                _ if has_room => self.header_lines.push(line),
                _ => {}
            }
        }
    }

    fn headers(&self) -> HeaderMap {
        let headers = self
            .header_lines
            .iter()
            .filter_map(|line| parse_header(line));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(name, value);
        }
        map
    }

    /// Reads the body. `None` if its end did not come, is not known or is beyond what is kept.
    async fn read_framed(&mut self, status: StatusCode) -> Option<()> {
        match BodyFraming::from_headers(status, &self.headers()) {
            BodyFraming::Empty => Some(()),
            BodyFraming::Length(bytes) => self.read_bytes(bytes).await,
            BodyFraming::Chunked => self.read_chunks().await,
            BodyFraming::ToTheEnd => self.read_to_the_end().await,
            BodyFraming::Unknown => {
                self.read_to_the_end().await;
                None
            }
        }
    }

    async fn read_bytes(&mut self, mut left: u64) -> Option<()> {
        while left > 0 {
            if self.source.unread.is_empty() && self.source.read_more().await.ok()? == 0 {
                return None;
            }
            let piece = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(self.source.unread.len());
            left -= piece as u64;
            self.keep_body_bytes(piece)?;
        }
        Some(())
    }

    async fn read_chunks(&mut self) -> Option<()> {
        loop {
            let line = self.source.next_line().await?;
            let digits = line
                .iter()
                .take_while(|byte| byte.is_ascii_hexdigit())
                .count();
            if digits > CHUNK_DIGITS_MAX {
                return None;
            }
            let size = str::from_utf8(&line[..digits]).ok()?;
            let size = u64::from_str_radix(size, 16).ok()?;
            if size == 0 {
                break;
            }
            self.read_bytes(size).await?;
            if !self.source.next_line().await?.is_empty() {
                return None;
            }
        }
        // Trailers have no use here.
        while !self.source.next_line().await?.is_empty() {}
        Some(())
    }

    async fn read_to_the_end(&mut self) -> Option<()> {
        loop {
            let piece = self.source.unread.len();
            self.keep_body_bytes(piece)?;
            if self.source.read_more().await.ok()? == 0 {
                return Some(());
            }
        }
    }

    /// Keeps so many bytes of the body. `None` if there is no room for them.
    fn keep_body_bytes(&mut self, bytes: usize) -> Option<()> {
        let piece = self.source.unread.split_to(bytes).freeze();
        self.received.push(piece).then_some(())
    }
}

impl ByteSource {
    /// The next line without its end, if that comes: a line that is cut may have another meaning. A
    /// line longer than a head may be is cut there.
    async fn next_line(&mut self) -> Option<BytesMut> {
        let mut searched = 0;
        loop {
            if let Some(length) = memchr(b'\n', &self.unread[searched..]) {
                let mut line = self.unread.split_to(searched + length);
                self.unread.advance(1);
                if line.ends_with(b"\r") {
                    line.truncate(line.len() - 1);
                }
                return Some(line);
            }
            self.unread.truncate(RESPONSE_HEAD_BYTES_MAX);
            searched = self.unread.len();
            if self.read_more().await.ok()? == 0 {
                return None;
            }
        }
    }

    /// Reads more, and returns the number of bytes.
    async fn read_more(&mut self) -> std::io::Result<usize> {
        let before = self.unread.len();
        self.unread.resize(before + READ_BYTES, 0);
        let read = {
            let mut buffer = ReadBuf::new(&mut self.unread[before..]);
            poll_fn(|cx| Pin::new(&mut self.wire).poll_read(cx, &mut buffer))
                .await
                .map(|()| buffer.filled().len())
        };
        self.unread
            .truncate(before + read.as_ref().copied().unwrap_or_default());
        read
    }
}

/// Reads from a connection in turns: it has some reads in each turn of its task.
async fn read_in_turns<F: Future>(meter: &WireMeter, reading: F) -> F::Output {
    let mut reading = pin!(reading);
    poll_fn(|cx| {
        meter.begin_turn();
        reading.as_mut().poll(cx)
    })
    .await
}

/// Whether this is, or may become, a status line: no other line is waited for.
fn may_be_status_line(bytes: &[u8]) -> bool {
    let mut name = bytes.trim_ascii_start().iter().zip(b"HTTP");
    name.all(|(byte, of_name)| byte.eq_ignore_ascii_case(of_name))
}

fn blank_if_control(byte: u8) -> u8 {
    if byte == b'\t' || !byte.is_ascii_control() {
        byte
    } else {
        b' '
    }
}

/// A header, if this line is one. A byte that may not be in a value becomes a blank.
fn parse_header(line: &[u8]) -> Option<(HeaderName, HeaderValue)> {
    let colon = memchr(b':', line)?;
    let name = HeaderName::from_bytes(line[..colon].trim_ascii()).ok()?;
    let value: Bytes = line[colon + 1..]
        .trim_ascii()
        .iter()
        .map(|byte| blank_if_control(*byte))
        .collect();
    Some((name, HeaderValue::from_maybe_shared(value).ok()?))
}
