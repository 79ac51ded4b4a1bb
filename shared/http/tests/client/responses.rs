//! Responses of an endpoint, and the result of each.

use http::Method;
use posthaste_core::model::{RESPONSE_BODY_BYTES_MAX, SendFailure};
use posthaste_http::{INTERIM_ANSWERS_MAX, INTERIM_BYTES_MAX, RESPONSE_HEADERS_MAX};
use posthaste_ports::{WebhookClient, WebhookRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::endpoint::{Endpoint, EndpointStep, NO_CONTENT, OK, exchange, write};
use crate::{BriefResponse, answered, client, post, send, timeless_client};

const CLOSED: BriefResponse = Err(SendFailure::Closed);

/// Sends a request to an endpoint of this script; true if its connection was kept.
async fn check(mut script: Vec<EndpointStep>, expected: BriefResponse, is_kept: bool) {
    if is_kept {
        // The endpoint waits for another request instead of closing.
        script.push(EndpointStep::Read);
    }
    let endpoint = Endpoint::start(vec![script.clone()]).await;
    let client = timeless_client();
    assert_eq!(send(&client, &endpoint.url()).await, expected, "{script:?}");
    assert_eq!(
        (endpoint.connections(), client.idle_connections()),
        (1, is_kept.into()),
        "{script:?}"
    );
}

#[tokio::test]
async fn the_request_is_on_the_wire_as_it_was_asked_for() {
    let endpoint = Endpoint::start(vec![[exchange(OK), exchange(OK)].concat()]).await;
    let client = client();
    send(&client, &endpoint.url()).await.unwrap();
    let options = WebhookRequest {
        method: Method::OPTIONS,
        body: Vec::new(),
        ..post(&endpoint.url())
    };
    client.send(options).await.result.unwrap();
    let requests = endpoint
        .requests()
        .join("\n---\n")
        .replace(&endpoint.address.to_string(), "ADDRESS");
    insta::assert_snapshot!(requests.replace('\r', "␍"), @r#"
    POST /hook?tenant=a HTTP/1.1␍
    host: ADDRESS␍
    content-type: application/json␍
    webhook-id: e1␍
    accept-encoding: identity␍
    content-length: 10␍
    ␍
    [{"id":1}]
    ---
    OPTIONS /hook?tenant=a HTTP/1.1␍
    host: ADDRESS␍
    content-type: application/json␍
    webhook-id: e1␍
    accept-encoding: identity␍
    ␍
    "#);
}

#[tokio::test]
async fn an_answer_is_its_status_and_body() {
    check(exchange(OK), answered(200, "ok"), true).await;
    check(exchange(NO_CONTENT), answered(204, ""), true).await;
    let chunked =
        "HTTP/1.1 503 Busy\r\ntransfer-encoding: chunked\r\n\r\n2\r\nla\r\n3\r\nter\r\n0\r\n\r\n";
    check(exchange(chunked), answered(503, "later"), true).await;
    check(
        exchange("HTTP/1.1 200\r\nconnection: close\r\n\r\nuntil the end"),
        answered(200, "until the end"),
        false,
    )
    .await;
    check(
        exchange("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok"),
        answered(200, "ok"),
        false,
    )
    .await;
    let informed =
        format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n{OK}");
    check(exchange(&informed), answered(200, "ok"), true).await;
}

const HINT: &str = "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n";

#[tokio::test]
async fn interim_answers_count_up_to_their_bound() {
    let most = HINT.repeat(INTERIM_ANSWERS_MAX);
    // The next request has as many.
    let twice = [
        exchange(&format!("{most}{OK}")),
        exchange(&format!("{most}{NO_CONTENT}")),
    ];
    let endpoint = Endpoint::start(vec![twice.concat()]).await;
    let client = client();
    assert_eq!(send(&client, &endpoint.url()).await, answered(200, "ok"));
    assert_eq!(send(&client, &endpoint.url()).await, answered(204, ""));
    assert_eq!(endpoint.connections(), 1);
    check(exchange(&format!("{most}{HINT}{OK}")), CLOSED, false).await;
}

#[tokio::test]
async fn endless_interim_answers_are_a_socket_failure() {
    for flood in [HINT, "HTTP/1.1 100\r\n\r\n", "HTTP/1.1 199 \n\n"] {
        check(
            vec![EndpointStep::Read, EndpointStep::Flood(flood)],
            CLOSED,
            false,
        )
        .await;
    }
    let wide = "HTTP/1.1 103 Early Hints\r\n".to_owned() + &"link: x\r\n".repeat(90) + "\r\n";
    let many = wide.repeat(INTERIM_BYTES_MAX / wide.len() + 1);
    check(exchange(&format!("{many}{OK}")), CLOSED, false).await;
}

#[tokio::test]
async fn chunk_that_never_begins_ends_the_answer() {
    let zeros = vec![
        EndpointStep::Read,
        write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"),
        EndpointStep::Flood("0000000000000000000000000000000000000000000000000000000000000000"),
    ];
    check(zeros, answered(200, "ok"), false).await;
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_not_followed() {
    let elsewhere = Endpoint::start(vec![exchange(OK)]).await;
    let redirect = format!(
        "HTTP/1.1 302 Found\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n",
        elsewhere.url()
    );
    check(exchange(&redirect), answered(302, ""), true).await;
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn connection_that_ends_before_an_answer_was_closed() {
    check(vec![], CLOSED, false).await;
    check(vec![EndpointStep::Read], CLOSED, false).await;
    check(exchange("HTTP/1.1 200 OK"), CLOSED, false).await;
}

#[tokio::test]
async fn answer_that_is_not_http_counts_as_closed() {
    check(exchange("SSH-2.0-OpenSSH_9.9\r\n"), CLOSED, false).await;
    check(exchange("<html>hello</html>\r\n\r\n"), CLOSED, false).await;
    check(exchange("\0\0\x12\x04\0\0\0\0\0\0"), CLOSED, false).await;
}

#[tokio::test]
async fn huge_heads_count_by_their_status() {
    let endless = |begin: &str, more: &'static str| {
        vec![EndpointStep::Read, write(begin), EndpointStep::Flood(more)]
    };
    let lines = endless("HTTP/1.1 200 OK\r\n", "x-more: and more\r\n");
    check(lines, answered(200, ""), false).await;
    let line = endless("HTTP/1.1 500 Oops\r\nx: ", "endless");
    check(line, answered(500, ""), false).await;
    check(endless("HTTP/1.1 200 O", "K"), CLOSED, false).await;
    let head = |count: usize| {
        format!(
            "HTTP/1.1 204 No Content\r\n{}\r\n",
            "x-one: 1\r\n".repeat(count)
        )
    };
    check(
        exchange(&head(RESPONSE_HEADERS_MAX)),
        answered(204, ""),
        true,
    )
    .await;
    check(
        exchange(&head(RESPONSE_HEADERS_MAX + 1)),
        answered(204, ""),
        false,
    )
    .await;
}

#[tokio::test]
async fn an_endless_body_is_read_to_its_limit() {
    let endless = vec![
        EndpointStep::Read,
        write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"),
        EndpointStep::Flood("5\r\nworld\r\n"),
    ];
    let first = "world".repeat(RESPONSE_BODY_BYTES_MAX)[..RESPONSE_BODY_BYTES_MAX].to_owned();
    check(endless, answered(200, &first), false).await;
    let exactly = |bytes: usize| {
        exchange(&format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n{}",
            "x".repeat(bytes)
        ))
    };
    let all = "x".repeat(RESPONSE_BODY_BYTES_MAX);
    check(exactly(RESPONSE_BODY_BYTES_MAX), answered(200, &all), true).await;
    check(
        exactly(RESPONSE_BODY_BYTES_MAX + 1),
        answered(200, &all),
        false,
    )
    .await;
}

#[tokio::test]
async fn a_broken_body_counts_by_its_head() {
    check(
        exchange("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort"),
        answered(200, "short"),
        false,
    )
    .await;
    let chunked = "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\n";
    check(exchange(chunked), answered(201, "ok"), false).await;
    check(
        exchange("HTTP/1.1 500 Oops\r\ncontent-length: 9\r\n\r\n"),
        answered(500, ""),
        false,
    )
    .await;
}

#[tokio::test]
async fn response_tells_whether_its_body_is_whole() {
    let check = async |answer: &str, expected: bool| {
        let endpoint = Endpoint::start(vec![exchange(answer)]).await;
        let response = client().send(post(&endpoint.url())).await.result.unwrap();
        assert_eq!(response.body_is_whole, expected, "{answer}");
    };
    check(NO_CONTENT, true).await;
    check(
        "HTTP/1.1 200\r\nconnection: close\r\n\r\nuntil the end",
        true,
    )
    .await;
    check("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nshort", false).await;
    check("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n", false).await;
    check(
        "HTTP/1.1 201 Created\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        false,
    )
    .await;
    let more = RESPONSE_BODY_BYTES_MAX + 1;
    check(
        &format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {more}\r\n\r\n{}",
            "x".repeat(more)
        ),
        false,
    )
    .await;
}

#[tokio::test]
async fn odd_answer_has_its_headers_and_its_body() {
    let check = async |answer: &str, value: &str, body: &str, is_whole: bool| {
        let endpoint = Endpoint::start(vec![exchange(answer)]).await;
        let response = client().send(post(&endpoint.url())).await.result.unwrap();
        let values: Vec<_> = response.headers.get_all("x-one").iter().collect();
        assert_eq!(values, [value], "{answer}");
        let read = (&*response.body, response.body_is_whole);
        assert_eq!(read, (body.as_bytes(), is_whole), "{answer}");
    };
    let odd = |headers: &str, body: &str| {
        format!("HTTP/1.1 503 Busy\r\nX-One : 1\r\n{headers}\r\n\r\n{body}")
    };
    check(&odd(" 2\r\n\t3", "body"), "1 2 3", "body", true).await;
    check(&odd("content-length: 2", "body"), "1", "bo", true).await;
    check(&odd("content-length: 5", "body"), "1", "body", false).await;
    check(&odd("content-length: 2, 3", "body"), "1", "body", false).await;
    let chunked = "transfer-encoding: chunked";
    check(
        &odd(chunked, "2\r\nbo\r\n2;x\r\ndy\r\n0\r\ny: z\r\n\r\n"),
        "1",
        "body",
        true,
    )
    .await;
    check(&odd(chunked, "2\r\nbo\r\n"), "1", "bo", false).await;
    check(&odd(chunked, "2\r\nbody\r\n"), "1", "bo", false).await;
    let long = "x".repeat(RESPONSE_BODY_BYTES_MAX);
    check(&odd("y: z", &long), "1", &long, true).await;
    check(&odd("y: z", &(long.clone() + "x")), "1", &long, false).await;
    check(
        "HTTP/1.1 503 Busy\r\nX-One: 1\0\x1b2\r\n\r\n",
        "1  2",
        "",
        true,
    )
    .await;
}

/// curl decodes what a server compresses without being asked, if it is told to.
#[tokio::test]
async fn compressed_answer_is_read_as_its_text() {
    // `printf later | gzip -n`
    const LATER: [u8; 25] = [
        31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 73, 44, 73, 45, 2, 0, 73, 178, 3, 236, 5, 0, 0, 0,
    ];
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.readable().await.unwrap();
        let head = "HTTP/1.1 503 Busy\r\ncontent-encoding: gzip\r\ncontent-length: 25\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&LATER).await.unwrap();
        stream.read_to_end(&mut Vec::new()).await.unwrap();
    });
    assert_eq!(send(&client(), &url).await, answered(503, "later"));
}

/// A body that is larger than the sockets' buffers.
fn large(request: WebhookRequest, mebibytes: usize) -> WebhookRequest {
    WebhookRequest {
        body: vec![bytes::Bytes::from(vec![b'x'; 1 << 20]); mebibytes],
        ..request
    }
}

const TOO_LARGE: &str = "HTTP/1.1 413 Content Too Large\r\ncontent-type: text/plain\r\ncontent-length: 8\r\n\r\ntoo much";

/// The client continues to write after the endpoint has closed, so that its writes fail.
#[tokio::test]
async fn answer_before_the_request_was_read_outlives_the_connection() {
    for mebibytes in [1, 2, 8, 32] {
        // Reads nothing; reads the beginning; reads nothing and resets.
        let scripts = [
            vec![write(TOO_LARGE)],
            vec![EndpointStep::ReadSome, write(TOO_LARGE)],
            vec![
                EndpointStep::ReadSome,
                write(TOO_LARGE),
                EndpointStep::Reset,
            ],
            vec![write(TOO_LARGE), EndpointStep::Reset],
        ];
        for script in scripts {
            let endpoint = Endpoint::start(vec![script.clone()]).await;
            let client = client();
            let answer = client.send(large(post(&endpoint.url()), mebibytes)).await;
            assert_eq!(
                crate::brief(answer),
                answered(413, "too much"),
                "{mebibytes} {script:?}"
            );
            assert_eq!((endpoint.connections(), client.idle_connections()), (1, 0));
        }
    }
}

/// The early response of a balancer that has no place left.
#[tokio::test]
async fn answer_before_the_request_was_sent_counts() {
    let busy = "HTTP/1.1 503 Busy\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    for script in [vec![write(busy)], vec![write(busy), EndpointStep::Reset]] {
        for _ in 0..20 {
            check(script.clone(), answered(503, ""), false).await;
        }
    }
}

#[tokio::test]
async fn an_answer_that_comes_before_the_request_was_read_counts() {
    let too_large = "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
    let endpoint = Endpoint::start(vec![vec![write(too_large), EndpointStep::Hang]]).await;
    let client = client();
    let answer = client.send(large(post(&endpoint.url()), 32)).await;
    assert_eq!(crate::brief(answer), answered(413, ""));
    assert_eq!(client.idle_connections(), 0);
}
