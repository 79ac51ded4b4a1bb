//! The deadline over everything, on a clock that the test moves.

use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::{SendFailure, Timestamp};
use posthaste_http::{ANSWER_REST_WAIT, HyperWebhookClient, LookupError, NameLookup};
use posthaste_ports::{WebhookAnswer, WebhookClient, WebhookRequest};
use posthaste_testkit::ManualClock;
use tokio::sync::Notify;

use crate::endpoint::{Endpoint, EndpointStep, OK, exchange, write};
use crate::{BriefResponse, TIMEOUT, answered, brief, on_loopback, post, settle};

/// Sends to `endpoint`, waits for `steps` of its script, then moves the clock to `left` before the
/// deadline.
async fn after(
    script: Vec<EndpointStep>,
    steps: usize,
    left: Duration,
) -> (ManualClock, tokio::task::JoinHandle<WebhookAnswer>) {
    after_request(script, steps, left, |request| request).await
}

/// The same for a request that is changed so.
async fn after_request(
    script: Vec<EndpointStep>,
    steps: usize,
    left: Duration,
    change: impl FnOnce(WebhookRequest) -> WebhookRequest,
) -> (ManualClock, tokio::task::JoinHandle<WebhookAnswer>) {
    let endpoint = Endpoint::start(vec![script]).await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    let request = change(post(&endpoint.url()));
    let sending = tokio::spawn(async move { client.send(request).await });
    for _ in 0..steps {
        endpoint.step_done().await;
    }
    settle().await;
    clock.advance(TIMEOUT.saturating_sub(left));
    settle().await;
    (clock, sending)
}

#[tokio::test]
async fn an_endpoint_that_never_answers_has_timed_out() {
    let (clock, sending) = after(
        vec![EndpointStep::Read, EndpointStep::Hang],
        1,
        Duration::from_millis(1),
    )
    .await;
    assert!(!sending.is_finished());
    clock.advance(Duration::from_millis(1));
    let answer = sending.await.unwrap();
    assert_eq!(answer.took, TIMEOUT);
    assert_eq!(brief(answer), Err(SendFailure::TimedOut));
}

#[tokio::test]
async fn half_a_status_line_is_no_answer() {
    let half = vec![
        EndpointStep::Read,
        write("HTTP/1.1 200 O"),
        EndpointStep::Hang,
    ];
    let (_, sending) = after(half, 2, Duration::ZERO).await;
    assert_eq!(brief(sending.await.unwrap()), Err(SendFailure::TimedOut));
}

/// Checks that a response whose rest stalls counts after this time.
async fn check_stalled(text: &str, needs_body: bool, wait: Duration, expected: BriefResponse) {
    let stalling = vec![EndpointStep::Read, write(text), EndpointStep::Hang];
    let left = TIMEOUT.saturating_sub(wait) + Duration::from_millis(1);
    let (clock, sending) = after_request(stalling, 2, left, |request| WebhookRequest {
        needs_body,
        ..request
    })
    .await;
    assert!(!sending.is_finished(), "{text}");
    clock.advance(Duration::from_millis(1));
    let answer = sending.await.unwrap();
    assert_eq!((answer.took, brief(answer)), (wait, expected), "{text}");
}

#[tokio::test]
async fn status_decides_where_the_rest_of_an_answer_stalls() {
    let check = async |text: &str, status, body: &str| {
        check_stalled(text, false, ANSWER_REST_WAIT, answered(status, body)).await;
    };
    check(
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf",
        200,
        "half",
    )
    .await;
    check("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", 200, "").await;
    check("HTTP/1.1 200 OK\r\n\r\nno end", 200, "no end").await;
    let chunked = "HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";
    check(chunked, 503, "ok").await;
    check("HTTP/1.1 200 OK\r\n", 200, "").await;
    check("HTTP/1.1 200 OK\r\nx-one: 1\r\n", 200, "").await;
    // A response that hyper does not take is read again, for as long.
    check("HTTP/1.1 200 OK\r\nno colon\r\n\r\nno end", 200, "no end").await;
    check("HTTP/1.1 200 OK\r\nno colon\r\n", 200, "").await;
}

#[tokio::test]
async fn body_that_is_needed_is_read_to_the_deadline() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
    check_stalled(half, true, TIMEOUT, answered(200, "half")).await;
    let odd = "HTTP/1.1 200 OK\r\nno colon\r\n\r\nno end";
    check_stalled(odd, true, TIMEOUT, answered(200, "no end")).await;
    check_stalled("HTTP/1.1 200 OK\r\n", true, TIMEOUT, answered(200, "")).await;
    // That of a failure is not.
    let failure = "HTTP/1.1 500 Oops\r\ncontent-length: 100\r\n\r\nhalf";
    check_stalled(failure, true, ANSWER_REST_WAIT, answered(500, "half")).await;
    let odd = "HTTP/1.1 500 Oops\r\nno colon\r\n\r\nno end";
    check_stalled(odd, true, ANSWER_REST_WAIT, answered(500, "no end")).await;
}

#[tokio::test]
async fn timeout_that_is_shorter_ends_the_rest_of_an_answer() {
    for text in [
        "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n",
        "HTTP/1.1 200 OK\r\n",
    ] {
        let script = vec![EndpointStep::Read, write(text), EndpointStep::Hang];
        let short = Duration::from_secs(1);
        let (_, sending) = after_request(script, 2, TIMEOUT.saturating_sub(short), |request| {
            WebhookRequest {
                timeout: short,
                ..request
            }
        })
        .await;
        let answer = sending.await.unwrap();
        assert_eq!((answer.took, brief(answer)), (short, answered(200, "")));
    }
}

#[tokio::test]
async fn connection_of_a_body_that_came_in_time_is_kept() {
    let goes_on = Arc::new(Notify::new());
    let script = vec![
        EndpointStep::Read,
        write("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nha"),
        EndpointStep::Until(goes_on.clone()),
        write("lf"),
        EndpointStep::Read,
    ];
    let endpoint = Endpoint::start(vec![script]).await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    let sender = client.clone();
    let request = post(&endpoint.url());
    let sending = tokio::spawn(async move { sender.send(request).await });
    endpoint.step_done().await;
    settle().await;
    clock.advance(ANSWER_REST_WAIT.saturating_sub(Duration::from_millis(1)));
    settle().await;
    goes_on.notify_one();
    assert_eq!(brief(sending.await.unwrap()), answered(200, "half"));
    assert_eq!(client.idle_connections(), 1);
}

/// Responses that come while the clock stands still took no time.
#[tokio::test]
async fn instant_response_takes_zero_time() {
    let (_, sending) = after(exchange(OK), 2, TIMEOUT).await;
    let answer = sending.await.unwrap();
    assert_eq!(answer.took, Duration::ZERO);
    assert_eq!(brief(answer), answered(200, "ok"));
}

/// A resolver that never answers.
pub(crate) struct Silent;

impl NameLookup for Silent {
    async fn lookup(&self, _host: &str) -> Result<Vec<std::net::IpAddr>, LookupError> {
        std::future::pending().await
    }

    fn forget_all(&self) {}
}

#[tokio::test]
async fn a_name_that_is_never_resolved_has_no_connection_in_time() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::with_names(on_loopback(), clock.clone(), Silent).unwrap();
    // The second waits for the first one's look-up.
    let sending = [0, 1].map(|_| {
        let client = client.clone();
        tokio::spawn(async move { client.send(post("https://hooks.example/")).await })
    });
    settle().await;
    clock.advance(TIMEOUT);
    for sending in sending {
        assert_eq!(
            brief(sending.await.unwrap()),
            Err(SendFailure::ConnectTimedOut)
        );
    }
}

#[tokio::test]
async fn a_request_that_timed_out_goes_on_for_whoever_waits() {
    let answers = Arc::new(Notify::new());
    let slow = vec![
        EndpointStep::Read,
        EndpointStep::Until(answers.clone()),
        write(OK),
    ];
    let (_, sending) = after(slow, 1, Duration::ZERO).await;
    let answer = sending.await.unwrap();
    let late = answer.late.unwrap();
    assert_eq!(answer.result.unwrap_err(), SendFailure::TimedOut);
    answers.notify_one();
    let response = late.await.unwrap();
    assert_eq!(
        (response.status.as_u16(), &*response.body),
        (200, &b"ok"[..])
    );
}

/// The status and the body of a late answer, read until `wait` after its status. `None` if the
/// reading continues.
async fn late_answer(text: &str, needs_body: bool) -> Option<(u16, String)> {
    let answers = Arc::new(Notify::new());
    let script = vec![
        EndpointStep::Read,
        EndpointStep::Until(answers.clone()),
        write(text),
        EndpointStep::Hang,
    ];
    let (clock, sending) = after_request(script, 1, Duration::ZERO, |request| WebhookRequest {
        needs_body,
        ..request
    })
    .await;
    let mut late = tokio::spawn(sending.await.unwrap().late.unwrap());
    answers.notify_one();
    settle().await;
    clock.advance(ANSWER_REST_WAIT);
    settle().await;
    if !late.is_finished() {
        late.abort();
        return None;
    }
    let response = (&mut late).await.unwrap().unwrap();
    let body = String::from_utf8(response.body.to_vec()).unwrap();
    Some((response.status.as_u16(), body))
}

#[tokio::test]
async fn status_decides_where_the_rest_of_a_late_answer_stalls() {
    let half = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
    let taken = Some((200, "half".to_owned()));
    assert_eq!(late_answer(half, false).await, taken);
    assert_eq!(late_answer(half, true).await, None);
    let odd = "HTTP/1.1 200 OK\r\nno colon\r\n\r\nhalf";
    assert_eq!(late_answer(odd, false).await, taken);
    assert_eq!(late_answer(odd, true).await, None);
}

/// The failure of a request whose endpoint begins to flood once the request has timed out.
async fn late_flood(begin: &str, flood: &'static str) -> Result<String, SendFailure> {
    let floods = Arc::new(Notify::new());
    let script = vec![
        EndpointStep::Read,
        EndpointStep::Until(floods.clone()),
        write(begin),
        EndpointStep::Flood(flood),
    ];
    let (_, sending) = after(script, 1, Duration::ZERO).await;
    let late = sending.await.unwrap().late.unwrap();
    floods.notify_one();
    let response = late.await?;
    assert!(!response.body_is_whole);
    Ok(String::from_utf8(response.body.to_vec()).unwrap())
}

#[tokio::test]
async fn flood_of_interim_answers_ends_a_late_answer() {
    let hint = "HTTP/1.1 103 Early Hints\r\n\r\n";
    assert_eq!(late_flood("", hint).await, Err(SendFailure::Closed));
}

#[tokio::test]
async fn late_answer_that_never_ends_ends_with_its_bytes() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n";
    let zeros = "0000000000000000000000000000000000000000000000000000000000000000";
    assert_eq!(late_flood(head, zeros).await, Ok("ok".to_owned()));
}

#[tokio::test]
async fn a_request_that_was_never_sent_does_not_go_on() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::with_names(on_loopback(), clock.clone(), Silent).unwrap();
    let sending = tokio::spawn(async move { client.send(post("https://hooks.example/")).await });
    settle().await;
    clock.advance(TIMEOUT);
    assert!(sending.await.unwrap().late.is_none());
}

#[tokio::test]
async fn a_connect_that_is_never_answered_has_no_connection_in_time() {
    // The only place in its queue of connections to accept is taken, so that the kernel leaves a
    // connect unanswered.
    let listener = tokio::net::TcpSocket::new_v4().unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(0).unwrap();
    let address = listener.local_addr().unwrap();
    let _first = tokio::net::TcpStream::connect(address).await.unwrap();
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    let sending =
        tokio::spawn(async move { client.send(post(&format!("http://{address}/"))).await });
    settle().await;
    clock.advance(TIMEOUT);
    let answer = sending.await.unwrap();
    assert!(answer.late.is_none());
    assert_eq!(brief(answer), Err(SendFailure::ConnectTimedOut));
}
