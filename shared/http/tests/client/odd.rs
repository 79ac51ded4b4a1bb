//! Odd responses, each beside curl's verdict on the same server. Responses that curl takes are
//! taken, and a connection with an odd response is not kept.

use std::net::SocketAddr;
use std::process::Command;

use futures_util::stream::{self, StreamExt};
use posthaste_core::model::Timestamp;
use posthaste_http::{ANSWER_REST_WAIT, HyperWebhookClient};
use posthaste_ports::WebhookClient;
use posthaste_testkit::ManualClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::{TIMEOUT, brief, on_loopback, post, settle, timeless_client};

/// The curl whose verdicts the table has. Others are only held to the rule.
const CURL: &str = "curl 7.88.1 ";

const CASES_AT_ONCE: usize = 16;

/// The behaviour of an endpoint after its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AfterResponse {
    Close,
    Reset,
    /// Waits for another request.
    Wait,
}

/// A response, and its results with curl and posthaste.
struct CurlCase {
    name: &'static str,
    answer: Vec<u8>,
    end: AfterResponse,
    /// The status that curl 7.88.1 ends with, if it takes the response.
    curl: Option<u16>,
    /// The status that counts, if any does.
    ours: Option<u16>,
    /// Whether the connection is kept for another request.
    is_kept: bool,
}

impl CurlCase {
    /// A response that curl and posthaste take alike, on a connection that is then closed.
    fn taken(name: &'static str, status: u16, answer: impl Into<Vec<u8>>) -> Self {
        Self {
            name,
            answer: answer.into(),
            end: AfterResponse::Close,
            curl: Some(status),
            ours: Some(status),
            is_kept: false,
        }
    }

    /// A response of this status that curl does not take.
    fn lenient(name: &'static str, status: u16, answer: impl Into<Vec<u8>>) -> Self {
        Self {
            curl: None,
            ..Self::taken(name, status, answer)
        }
    }

    /// Bytes that have no status line.
    fn refused(name: &'static str, answer: impl Into<Vec<u8>>) -> Self {
        Self {
            curl: None,
            ours: None,
            ..Self::taken(name, 0, answer)
        }
    }

    fn kept(mut self) -> Self {
        self.is_kept = true;
        self
    }

    fn reset(mut self) -> Self {
        self.end = AfterResponse::Reset;
        self
    }
}

/// `200` with these header lines and a body of two bytes.
fn with(lines: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\nok")
}

/// A status line and a body of two bytes.
fn line(status_line: &str) -> String {
    format!("{status_line}\r\ncontent-length: 2\r\n\r\nok")
}

/// `200` with these headers and this body.
fn framed(headers: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n{body}")
}

fn lines(count: usize, bytes: usize) -> String {
    format!("x-more: {}\r\n", "m".repeat(bytes)).repeat(count)
}

/// Heads: header lines, their number and their size.
fn heads() -> Vec<CurlCase> {
    vec![
        CurlCase::taken("plain", 200, with("")).kept(),
        CurlCase::taken("100 header lines", 200, with(&lines(99, 1))).kept(),
        CurlCase::taken("101 header lines", 200, with(&lines(100, 1))),
        CurlCase::taken("1000 header lines", 200, with(&lines(1000, 1))),
        CurlCase::taken("head of 65 KiB", 200, with(&lines(65, 1024))),
        CurlCase::taken("head of 250 KiB", 200, with(&lines(250, 1024))),
        CurlCase::lenient("head of 1 MiB", 200, with(&lines(1024, 1024))),
        CurlCase::taken("header line of 70 KiB", 200, with(&lines(1, 70 * 1024))),
        CurlCase::lenient("header line of 200 KiB", 200, with(&lines(1, 200 * 1024))),
        CurlCase::taken(
            "folded header",
            200,
            with("x-one: 1\r\n two\r\n\tthree\r\n"),
        ),
        CurlCase::taken("folded header of blanks", 200, with("x-one: 1\r\n  \r\n")),
        CurlCase::lenient("folded first header", 200, with(" x-one: 1\r\n")),
        CurlCase::taken("space before the colon", 200, with("x-one : 1\r\n")),
        CurlCase::taken(
            "space before the colon of the length",
            200,
            "HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\nok",
        ),
        CurlCase::taken("space in a name", 200, with("x one: 1\r\n")),
        CurlCase::lenient("line without a colon", 200, with("no colon\r\n")),
        CurlCase::lenient(
            "first line without a colon",
            200,
            "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        ),
        CurlCase::taken("empty name", 200, with(": 1\r\n")),
        CurlCase::taken("empty value", 200, with("x-one:\r\n")).kept(),
        CurlCase::taken("tab in a value", 200, with("x-one: 1\t2\r\n")).kept(),
        CurlCase::lenient("NUL in a value", 200, with("x-one: 1\0 2\r\n")),
        CurlCase::lenient("NUL in a name", 200, with("x-\0one: 1\r\n")),
        CurlCase::taken(
            "control character in a value",
            200,
            with("x-one: \x01\x1b[31m\r\n"),
        ),
        CurlCase::taken("delete in a value", 200, with("x-one: \x7f\r\n")),
        CurlCase::taken("UTF-8 in a value", 200, with("x-one: ü\r\n")).kept(),
        CurlCase::taken("Latin-1 in a value", 200, {
            let mut answer = with("x-one: ?\r\n").into_bytes();
            let at = answer.iter().position(|byte| *byte == b'?').unwrap();
            answer[at] = 0xfc;
            answer
        })
        .kept(),
        CurlCase::taken("UTF-8 in a name", 200, with("x-ü: 1\r\n")),
        CurlCase::taken("parenthesis in a name", 200, with("x(1): 1\r\n")),
        CurlCase::taken(
            "lines that end with LF",
            200,
            "HTTP/1.1 200 OK\ncontent-length: 2\n\nok",
        ),
        CurlCase::taken("one line that ends with LF", 200, with("x-one: 1\n")),
        CurlCase::taken("CR in a value", 200, with("x-one: 1\r2\r\n")),
        CurlCase::taken("two CR before LF", 200, with("x-one: 1\r\r\n")),
        CurlCase::lenient("blank line first", 200, format!("\r\n{}", with(""))),
        CurlCase::lenient("blank LF line first", 200, format!("\n{}", with(""))),
    ]
}

/// Status lines.
fn status_lines() -> Vec<CurlCase> {
    vec![
        CurlCase::taken("no reason", 200, line("HTTP/1.1 200 ")).kept(),
        CurlCase::taken("no blank after the status", 200, line("HTTP/1.1 200")).kept(),
        CurlCase::taken(
            "UTF-8 in the reason",
            200,
            line("HTTP/1.1 200 Gerne, für Äpfel"),
        )
        .kept(),
        CurlCase::taken(
            "control character in the reason",
            200,
            line("HTTP/1.1 200 O\x01K"),
        ),
        CurlCase::lenient("NUL in the reason", 200, line("HTTP/1.1 200 O\0K")),
        CurlCase::taken("HTTP/1.0", 200, line("HTTP/1.0 200 OK")),
        CurlCase::lenient("HTTP/1.2", 200, line("HTTP/1.2 200 OK")),
        CurlCase::lenient("HTTP/1.9", 200, line("HTTP/1.9 200 OK")),
        CurlCase::lenient("HTTP/0.9", 200, line("HTTP/0.9 200 OK")),
        CurlCase::taken("HTTP/2", 200, line("HTTP/2 200")),
        CurlCase::taken("HTTP/2.0", 200, line("HTTP/2.0 200 OK")),
        CurlCase::lenient("HTTP/3", 200, line("HTTP/3 200")),
        CurlCase::lenient("no version", 200, line("HTTP 200 OK")),
        CurlCase::lenient("HTTP/1", 200, line("HTTP/1 200 OK")),
        CurlCase::taken("lower case", 200, line("http/1.1 200 OK")),
        CurlCase::taken(
            "two blanks before the status",
            200,
            line("HTTP/1.1  200 OK"),
        ),
        CurlCase::lenient("tab before the status", 200, line("HTTP/1.1\t200 OK")),
        CurlCase::lenient(
            "blank before the status line",
            200,
            line(" HTTP/1.1 200 OK"),
        ),
        CurlCase::taken("no blank before the reason", 200, line("HTTP/1.1 200OK")),
        CurlCase::taken("999", 999, line("HTTP/1.1 999 What")).kept(),
        CurlCase::taken("600", 600, line("HTTP/1.1 600 What")).kept(),
        CurlCase::refused("099", line("HTTP/1.1 099 What")),
        CurlCase::refused("two digits", line("HTTP/1.1 20 OK")),
        CurlCase::refused("four digits", line("HTTP/1.1 2000 OK")),
        CurlCase::refused("negative status", line("HTTP/1.1 -20 OK")),
        CurlCase::refused("letters for digits", line("HTTP/1.1 2OO OK")),
        CurlCase::refused("ICY", line("ICY 200 OK")),
        CurlCase::refused("SSH", "SSH-2.0-OpenSSH_9.9\r\n"),
        CurlCase::refused("a page without a head", "<html>hello</html>\r\n\r\n"),
        CurlCase::refused("frames of HTTP/2", "\0\0\x12\x04\0\0\0\0\0\0"),
        CurlCase::refused("nothing", ""),
    ]
}

/// Framing by lengths.
fn lengths() -> Vec<CurlCase> {
    vec![
        CurlCase::taken("no length", 200, framed("x: y", "ok")),
        CurlCase::taken("length twice", 200, with("content-length: 2\r\n")),
        CurlCase::taken("two lengths", 200, with("content-length: 3\r\n")),
        CurlCase::taken(
            "list of equal lengths",
            200,
            framed("content-length: 2, 2", "ok"),
        ),
        CurlCase::taken("list of lengths", 200, framed("content-length: 2, 3", "ok")),
        CurlCase::taken(
            "length with a sign",
            200,
            framed("content-length: +2", "ok"),
        ),
        CurlCase::lenient("negative length", 200, framed("content-length: -2", "ok")),
        CurlCase::taken(
            "length beyond 64 bits",
            200,
            framed("content-length: 99999999999999999999999", "ok"),
        ),
        CurlCase::lenient(
            "length of 2^63",
            200,
            framed("content-length: 9223372036854775807", "ok"),
        ),
        CurlCase::lenient(
            "length in letters",
            200,
            framed("content-length: two", "ok"),
        ),
        CurlCase::lenient("empty length", 200, framed("content-length:", "ok")),
        CurlCase::taken("length in hex", 200, framed("content-length: 0x2", "ok")),
        CurlCase::lenient(
            "shorter than its length",
            200,
            framed("content-length: 100", "ok"),
        ),
        CurlCase::taken(
            "longer than its length",
            200,
            framed("content-length: 2", "okok"),
        ),
        CurlCase::taken(
            "another answer after it",
            200,
            with("") + &line("HTTP/1.1 500 Oops"),
        ),
    ]
}

/// Framing by codings and chunks.
fn codings() -> Vec<CurlCase> {
    let chunked = |body: &str| framed("transfer-encoding: chunked", body);
    vec![
        CurlCase::taken("identity", 200, framed("transfer-encoding: identity", "ok")),
        CurlCase::lenient(
            "gzip, chunked",
            200,
            framed("transfer-encoding: gzip, chunked", "2\r\nok\r\n0\r\n\r\n"),
        ),
        CurlCase::lenient("xchunked", 200, framed("transfer-encoding: xchunked", "ok")),
        CurlCase::taken(
            "chunked and a length",
            200,
            framed(
                "content-length: 3\r\ntransfer-encoding: chunked",
                "2\r\nok\r\n0\r\n\r\n",
            ),
        ),
        CurlCase::taken(
            "chunked twice",
            200,
            framed(
                "transfer-encoding: chunked\r\ntransfer-encoding: chunked",
                "2\r\nok\r\n0\r\n\r\n",
            ),
        ),
        CurlCase::taken(
            "chunked in HTTP/1.0",
            200,
            "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        CurlCase::taken("chunks", 200, chunked("2\r\nok\r\n0\r\n\r\n")).kept(),
        CurlCase::taken(
            "chunk extension",
            200,
            chunked("2;a=b\r\nok\r\n0;c\r\n\r\n"),
        )
        .kept(),
        CurlCase::taken("trailers", 200, chunked("2\r\nok\r\n0\r\nx-one: 1\r\n\r\n")).kept(),
        CurlCase::taken("chunks that end with LF", 200, chunked("2\nok\n0\n\n")),
        CurlCase::lenient(
            "chunk size in letters",
            200,
            chunked("zz\r\nok\r\n0\r\n\r\n"),
        ),
        CurlCase::lenient(
            "chunk size beyond 64 bits",
            200,
            chunked("fffffffffffffffff\r\nok\r\n0\r\n\r\n"),
        ),
        CurlCase::lenient(
            "chunk longer than its size",
            200,
            chunked("2\r\nokok\r\n0\r\n\r\n"),
        ),
        CurlCase::lenient("no last chunk", 200, chunked("2\r\nok\r\n")),
        CurlCase::lenient("no chunk at all", 200, chunked("")),
        CurlCase::taken(
            "bytes after the last chunk",
            200,
            chunked("2\r\nok\r\n0\r\n\r\nok"),
        ),
        CurlCase::lenient(
            "content coding that is none",
            200,
            with("content-encoding: gzip\r\n"),
        )
        .kept(),
        CurlCase::lenient(
            "unknown content coding",
            200,
            with("content-encoding: x-unknown\r\n"),
        )
        .kept(),
    ]
}

/// Statuses that have no body, several responses, and ends.
fn ends() -> Vec<CurlCase> {
    let ok = with("");
    vec![
        CurlCase::taken("204", 204, "HTTP/1.1 204 No Content\r\n\r\n").kept(),
        CurlCase::taken("204 with a body", 204, line("HTTP/1.1 204 No Content")),
        CurlCase::taken(
            "204 with a length of 0",
            204,
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
        )
        .kept(),
        CurlCase::taken(
            "204 with a length and no body",
            204,
            "HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n",
        ),
        CurlCase::taken("304", 304, "HTTP/1.1 304 Not Modified\r\n\r\n").kept(),
        CurlCase::taken(
            "304 with a length",
            304,
            "HTTP/1.1 304 Not Modified\r\ncontent-length: 2\r\n\r\n",
        )
        .kept(),
        CurlCase::taken("302", 302, line("HTTP/1.1 302 Found\r\nlocation: /else")).kept(),
        CurlCase::taken(
            "100, then 200",
            200,
            format!("HTTP/1.1 100 Continue\r\n\r\n{ok}"),
        )
        .kept(),
        CurlCase::taken(
            "103, then 200",
            200,
            format!("HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n{ok}"),
        )
        .kept(),
        CurlCase::taken(
            "103 with a folded header, then 200",
            200,
            format!("HTTP/1.1 103 Early Hints\r\nlink: x\r\n y\r\n\r\n{ok}"),
        ),
        CurlCase::lenient(
            "HTTP/1.2 100, then 200",
            200,
            format!("HTTP/1.2 100 Continue\r\n\r\n{ok}"),
        ),
        CurlCase::taken(
            "101",
            101,
            "HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n\0\0",
        ),
        CurlCase::refused("100 alone", "HTTP/1.1 100 Continue\r\n\r\n"),
        CurlCase::taken("status line alone", 200, "HTTP/1.1 200 OK\r\n"),
        CurlCase::refused("status line without its end", "HTTP/1.1 200 OK"),
        CurlCase::taken("closed in a header", 200, "HTTP/1.1 200 OK\r\ncontent-"),
        CurlCase::taken(
            "closed before the end of the head",
            200,
            "HTTP/1.1 200 OK\r\nx-one: 1\r\n",
        ),
        CurlCase::refused("closed in the status", "HTTP/1.1 20"),
        CurlCase::taken("reset after the answer", 200, ok.clone()).reset(),
        CurlCase::lenient("reset in the body", 200, framed("content-length: 3", "ok")).reset(),
        CurlCase::lenient("reset in place of an end", 200, framed("x: y", "ok")).reset(),
        CurlCase::lenient("reset after the status line", 200, "HTTP/1.1 200 OK\r\n").reset(),
    ]
}

fn cases() -> Vec<CurlCase> {
    [heads(), status_lines(), lengths(), codings(), ends()]
        .into_iter()
        .flatten()
        .collect()
}

/// Serves this response to every request, on every connection.
async fn serve(answer: Vec<u8>, end: AfterResponse) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(follow(stream, answer.clone(), end));
        }
    });
    address
}

async fn follow(mut stream: TcpStream, answer: Vec<u8>, end: AfterResponse) {
    let mut request = Vec::new();
    while !(request.ends_with(b"{}") || request.ends_with(b"[{\"id\":1}]")) {
        if stream.read_buf(&mut request).await.unwrap_or_default() == 0 {
            return;
        }
    }
    // The client may close before it has read all of a long head.
    let _ = stream.write_all(&answer).await;
    match end {
        AfterResponse::Close => {
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut request).await;
        }
        AfterResponse::Reset => stream.set_zero_linger().unwrap(),
        AfterResponse::Wait => {
            let _ = stream.read_to_end(&mut request).await;
        }
    }
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .arg("-q")
        .args(arguments)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The status that curl ends with, if it takes the response.
fn curl_verdict(address: SocketAddr) -> Option<u16> {
    let printed = curl(&[
        "--silent",
        "--noproxy",
        "*",
        "--max-time",
        "20",
        "--data",
        "{}",
        "--compressed",
        "--output",
        "/dev/null",
        "--write-out",
        "%{exitcode} %{http_code}",
        &format!("http://{address}/hook"),
    ]);
    printed.strip_prefix("0 ")?.parse().ok()
}

async fn our_verdict(address: SocketAddr) -> Option<u16> {
    let answer = timeless_client()
        .send(post(&format!("http://{address}/hook")))
        .await;
    Some(brief(answer).ok()?.0)
}

/// curl and the client meet each response on the same server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_takes_what_curl_takes() {
    let is_recorded = curl(&["--version"]).starts_with(CURL);
    let check = async |case: CurlCase| {
        let address = serve(case.answer, case.end).await;
        let ours = our_verdict(address).await;
        let curl = tokio::task::spawn_blocking(move || curl_verdict(address));
        let curl = curl.await.unwrap();
        let is_rule_kept = curl.is_none() || curl == ours;
        let is_as_recorded = ours == case.ours && (!is_recorded || curl == case.curl);
        (!is_rule_kept || !is_as_recorded)
            .then(|| format!("{}: curl {curl:?}, ours {ours:?}", case.name))
    };
    let wrong = stream::iter(cases()).map(check);
    let wrong = wrong.buffer_unordered(CASES_AT_ONCE);
    let wrong: Vec<_> = wrong.filter_map(std::future::ready).collect().await;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The endpoint leaves the connection open, so that another response could come on it.
#[tokio::test]
async fn connection_of_an_odd_answer_is_not_kept() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let mut sent = Vec::new();
    for case in cases()
        .into_iter()
        .filter(|case| case.end == AfterResponse::Close)
    {
        let url = format!(
            "http://{}/hook",
            serve(case.answer, AfterResponse::Wait).await
        );
        let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
        let sender = client.clone();
        let sending = tokio::spawn(async move { sender.send(post(&url)).await });
        sent.push((case.name, case.is_kept, client, sending));
    }
    for wait in [ANSWER_REST_WAIT, TIMEOUT] {
        settle().await;
        clock.advance(wait);
    }
    let mut wrong = Vec::new();
    for (name, is_kept, client, sending) in sent {
        let answer = brief(sending.await.unwrap());
        if is_kept != (client.idle_connections() == 1) {
            wrong.push(format!("{name}: {answer:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
