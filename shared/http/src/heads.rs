//! Heads of incoming responses. Interim responses (`1xx`), of which an endpoint may send any number
//! (RFC 9110, section 15.2), are counted, since hyper skips them without a bound. The bytes are
//! kept until hyper has understood them: if it does not, [`crate::odd_response`] reads them again.

use http::StatusCode;
use memchr::memchr;

use crate::settings::{INTERIM_ANSWERS_MAX, INTERIM_BYTES_MAX, RESPONSE_HEAD_BYTES_MAX};

/// Bytes that a connection keeps for the heads of later responses. Most heads are shorter.
const KEPT_CAPACITY: usize = 2048;

/// The digits of a status (RFC 9112, section 4).
const STATUS_DIGITS: usize = 3;

/// The heads of the responses to one request, as far as they were read.
#[derive(Debug, Default)]
pub(crate) struct ResponseHeads {
    /// All bytes since the request began.
    bytes: Vec<u8>,
    /// The beginning of the line that has no end yet.
    line_at: usize,
    /// The beginning of the response itself.
    answer_at: Option<usize>,
    place: HeadPosition,
    interim_answers: usize,
    is_odd: bool,
}

/// The place of the next line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum HeadPosition {
    /// In a status line, or in an empty line before it.
    #[default]
    StatusLine,
    /// In the rest of an interim response.
    Interim,
    /// In a header of the response itself, or at the end of its head.
    Headers,
    /// In the body, or in bytes that are not HTTP at all.
    Body,
}

impl ResponseHeads {
    /// Begins to read the responses to another request.
    pub(crate) fn begin_request(&mut self) {
        self.forget_read();
        *self = Self {
            bytes: std::mem::take(&mut self.bytes),
            ..Self::default()
        };
    }

    /// Forgets the bytes that were read, once they were understood.
    pub(crate) fn forget_read(&mut self) {
        if !self.bytes.is_empty() {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_CAPACITY);
        }
    }

    /// Takes the next piece. False if the interim responses are beyond their bounds.
    pub(crate) fn add_piece(&mut self, piece: &[u8]) -> bool {
        let mut from = self.bytes.len();
        self.bytes.extend_from_slice(piece);
        while self.place != HeadPosition::Body
            && let Some(length) = memchr(b'\n', &self.bytes[from..])
        {
            self.end_line(from + length);
            from = self.line_at;
        }
        let interim_bytes = self.answer_at.unwrap_or(self.bytes.len());
        self.interim_answers <= INTERIM_ANSWERS_MAX && interim_bytes <= INTERIM_BYTES_MAX
    }

    /// Whether the status of the response itself has been read.
    pub(crate) fn has_status(&self) -> bool {
        self.place == HeadPosition::Headers
    }

    /// Whether there was a line that ends without a carriage return, an empty one before the
    /// status, or more than a head may have. Other programs may divide such a response in another
    /// way.
    pub(crate) fn is_odd(&self) -> bool {
        self.is_odd
    }

    /// The bytes that were read.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn end_line(&mut self, end: usize) {
        let line = &self.bytes[self.line_at..end];
        let (line, is_plain) = match line.strip_suffix(b"\r") {
            Some(line) => (line, true),
            None => (line, false),
        };
        let is_blank_before_status = self.place == HeadPosition::StatusLine && line.is_empty();
        self.is_odd |= !is_plain || is_blank_before_status;
        self.place = match (self.place, line.is_empty()) {
            (HeadPosition::StatusLine, false) => match parse_status(line) {
                Some(status) if is_interim(status) => {
                    self.interim_answers += 1;
                    HeadPosition::Interim
                }
                status => {
                    self.answer_at = Some(self.line_at);
                    status.map_or(HeadPosition::Body, |_| HeadPosition::Headers)
                }
            },
            (HeadPosition::Interim, true) => HeadPosition::StatusLine,
            (HeadPosition::Headers, true) => {
                let head_bytes = end - self.answer_at.unwrap_or_default();
                self.is_odd |= head_bytes > RESPONSE_HEAD_BYTES_MAX;
                HeadPosition::Body
            }
            (place, _) => place,
        };
        self.line_at = end + 1;
    }
}

/// The status of a status line, if it is one: `HTTP/`, a version or none, and three digits. curl
/// takes the same, except for a little.
pub(crate) fn parse_status(line: &[u8]) -> Option<StatusCode> {
    let line = line.trim_ascii_start();
    let (name, rest) = line.split_at_checked(b"HTTP".len())?;
    if !name.eq_ignore_ascii_case(b"HTTP") {
        return None;
    }
    let version = rest.iter().take_while(|byte| !is_blank(**byte)).count();
    let (version, rest) = rest.split_at(version);
    let is_version = version.is_empty()
        || version.strip_prefix(b"/").is_some_and(|version| {
            version
                .iter()
                .all(|byte| byte.is_ascii_digit() || *byte == b'.')
        });
    let after = rest.trim_ascii_start();
    let has_blank = after.len() < rest.len();
    let (digits, rest) = after.split_at_checked(STATUS_DIGITS)?;
    let ends = rest.first().is_none_or(|byte| !byte.is_ascii_digit());
    (is_version && has_blank && ends)
        .then(|| StatusCode::from_bytes(digits).ok())
        .flatten()
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// Whether another response follows. `101` ends the exchange: the endpoint speaks another protocol
/// from there on.
pub(crate) fn is_interim(status: StatusCode) -> bool {
    status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS
}

#[cfg(test)]
mod tests {
    use super::*;

    const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";
    const OK: &str = "HTTP/1.1 200 OK\r\n";

    /// Checks the number of interim responses in `text` and the place after it, for every way to
    /// cut it into pieces.
    fn check(text: &str, interim_answers: usize, place: HeadPosition) {
        for piece in [1, 2, 7, text.len()] {
            let mut heads = ResponseHeads::default();
            for piece in text.as_bytes().chunks(piece) {
                assert!(heads.add_piece(piece), "{text}");
            }
            assert_eq!(
                (heads.interim_answers, heads.place, heads.bytes.as_slice()),
                (interim_answers, place, text.as_bytes()),
                "{text}"
            );
        }
    }

    #[test]
    fn interim_answers_are_counted_up_to_the_answer() {
        check(OK, 0, HeadPosition::Headers);
        check(&format!("{OK}\r\n{HINT}"), 0, HeadPosition::Body);
        check(&format!("{HINT}{OK}"), 1, HeadPosition::Headers);
        check(
            &format!("{HINT}\r\nHTTP/1.0 100 \n\n{OK}"),
            2,
            HeadPosition::Headers,
        );
        check("HTTP/1.1 101 Switching\r\n", 0, HeadPosition::Headers);
        check("HTTP/1.1 200 OK", 0, HeadPosition::StatusLine);
        check(HINT, 1, HeadPosition::StatusLine);
        check("no HTTP at all\r\n", 0, HeadPosition::Body);
    }

    /// Interim responses are refused from the first one above their number.
    #[test]
    fn interim_responses_above_their_number_are_refused() {
        let mut heads = ResponseHeads::default();
        assert!(heads.add_piece(HINT.repeat(INTERIM_ANSWERS_MAX).as_bytes()));
        assert!(!heads.add_piece(b"HTTP/1.1 103 Early Hints\r\n"));
        heads.begin_request();
        assert!(heads.add_piece(b"HTTP/1.1 103 Early Hints\r\n"));
    }

    /// Bytes of interim responses are refused from the first one above their bound.
    #[test]
    fn interim_bytes_above_the_bound_are_refused() {
        let mut heads = ResponseHeads::default();
        let head = "HTTP/1.1 103 Early Hints\r\nlink: ";
        let long = format!("{head}{}", "x".repeat(INTERIM_BYTES_MAX - head.len()));
        assert!(heads.add_piece(long.as_bytes()));
        assert!(!heads.add_piece(b"x"));
        let most = "\r\n".repeat(INTERIM_BYTES_MAX / 2);
        for (before, is_within) in [("", true), ("\n", false)] {
            heads.begin_request();
            assert_eq!(
                heads.add_piece(format!("{before}{most}{OK}").as_bytes()),
                is_within
            );
        }
    }

    #[test]
    fn lines_that_others_may_divide_otherwise_are_odd() {
        let check = |text: &str, expected: bool| {
            let mut heads = ResponseHeads::default();
            heads.add_piece(text.as_bytes());
            assert_eq!(heads.is_odd(), expected, "{text:?}");
        };
        check("HTTP/1.1 200 OK\r\na: b\r\n\r\nbody\n", false);
        check("HTTP/1.1 200 OK\na: b\r\n\r\n", true);
        check("HTTP/1.1 200 OK\r\na: b\n\r\n", true);
        check("HTTP/1.1 200 OK\r\na: b\r\n\n", true);
        check("\r\nHTTP/1.1 200 OK\r\n", true);
        let long = "x".repeat(RESPONSE_HEAD_BYTES_MAX - OK.len());
        check(&format!("{HINT}{OK}{long}\r\n\r\n"), true);
        check(&format!("{HINT}{OK}{}\r\n\r\n", &long[4..]), false);
        check("HTTP/1.1 103 Early\nHints\r\n\r\nHTTP/1.1 200 OK\r\n", true);
    }

    #[test]
    fn long_heads_do_not_keep_their_memory() {
        let mut heads = ResponseHeads::default();
        heads.add_piece(format!("{OK}x: {}", "y".repeat(10_000)).as_bytes());
        heads.begin_request();
        assert!(heads.bytes.is_empty() && heads.bytes.capacity() <= KEPT_CAPACITY);
    }

    #[test]
    fn a_status_line_has_three_digits_after_its_version() {
        let check = |line: &str, expected: Option<u16>| {
            let read = parse_status(line.as_bytes()).map(|status| status.as_u16());
            assert_eq!(read, expected, "{line:?}");
        };
        check("HTTP/1.1 200 OK", Some(200));
        check("HTTP/1.1 200", Some(200));
        check("HTTP/1.0 404 Not Found", Some(404));
        check("HTTP/1.2 200 OK", Some(200));
        check("HTTP/2 204", Some(204));
        check("HTTP 503 Busy", Some(503));
        check("http/1.1 200 OK", Some(200));
        check(" HTTP/1.1 \t 200 OK", Some(200));
        check("HTTP/1.1 999 ?", Some(999));
        check("HTTP/1.1 200OK", Some(200));
        for line in [
            "",
            "HTTP",
            "HTTP/1.1",
            "HTTP/1.1 ",
            "HTTP/1.1 20",
            "HTTP/1.1 20 OK",
            "HTTP/1.1 2000 OK",
            "HTTP/1.1 099 ?",
            "HTTP/1.1 -20",
            "HTTP/1.1200 OK",
            "HTTP200",
            "HTTP/x 200 OK",
            "ICY 200 OK",
            "SSH-2.0-OpenSSH_9.9",
            "<html>",
        ] {
            check(line, None);
        }
    }
}
