//! Connections without end: silent ones do not keep others out, nor do those to slow endpoints, and
//! the operator of the server always gets in.

use std::io::{ErrorKind, Read, Write};
use std::iter::repeat_n;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use posthaste_tests::api::CLOUD_EVENT;
use posthaste_tests::binary::posthaste;
use posthaste_tests::endpoint::{Answer, Endpoint};
use posthaste_tests::events::{cloud_event, subscription_with};
use posthaste_tests::home::Home;
use posthaste_tests::patience::wait_until;
use posthaste_tests::server::Server;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};
use serde_json::{Map, json};
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;

/// Places beside those of ordinary requests.
const OPERATORS_MAX: usize = 64;

/// Most silent connections of one address.
const SILENT_PER_ADDRESS_MAX: usize = 64;

/// The answer to a client that asks before it sends.
const GO_ON: &[u8; 25] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Connections that say nothing, each address having so many.
fn silent(
    server: &Server,
    addresses: impl Iterator<Item = Ipv4Addr>,
    each: usize,
) -> Vec<TcpStream> {
    raise_limit();
    let to: SocketAddr = server
        .url()
        .strip_prefix("http://")
        .and_then(|to| to.parse().ok())
        .expect("an address");
    let runtime = Runtime::new().expect("a runtime starts");
    let connect = |from: Ipv4Addr| {
        runtime.block_on(async move {
            let socket = TcpSocket::new_v4().expect("there are descriptors left");
            socket
                .bind((from, 0).into())
                .expect("all of 127.0.0.0/8 is this machine");
            let stream = socket
                .connect(to)
                .await
                .expect("the server takes connections");
            let stream = stream
                .into_std()
                .expect("a socket is one without a runtime");
            stream.set_nonblocking(false).expect("a socket can block");
            stream
        })
    };
    addresses
        .flat_map(|from| repeat_n(from, each))
        .map(connect)
        .collect()
}

/// Every socket is a descriptor of this process.
fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )
    .expect("a limit may be raised to its maximum");
}

fn from(third: u8) -> impl Iterator<Item = Ipv4Addr> {
    (1..=70).map(move |fourth| Ipv4Addr::new(127, 9, third, fourth))
}

/// The count of a metric for this reason.
fn cut(server: &Server, reason: &str) -> usize {
    // With the admin key, because the places of others may be taken.
    let text = server.api().manage("GET", "/metrics", None).expect(200);
    let text = String::from_utf8(text.body).expect("metrics are text");
    let name = format!("posthaste_connections_cut_total{{reason=\"{reason}\"}} ");
    text.lines()
        .find_map(|line| line.strip_prefix(&name)?.parse().ok())
        .unwrap_or(0)
}

#[test]
fn silent_connections_keep_nobody_out() {
    let home = Home::new();
    let server = Server::start(home.path(), &["--connections-max", "300"]);
    let topic = server.api().create_topic("orders", &json!({}));
    // Each address has no more than it may have, and all of them more than there are places.
    let sockets = silent(&server, from(0), 6);
    let connections_max = 300 + OPERATORS_MAX;
    assert!(sockets.len() > connections_max);
    for _ in 0..10 {
        // A connection of its own each time: what is kept open already proves nothing.
        let fresh = posthaste_tests::api::Api::new(server.url().to_owned(), "none");
        fresh
            .send("GET", "/health", &[], b"")
            .expect("health is answered")
            .expect(200);
    }
    server.api().show("/topics/orders");
    topic.publish(&cloud_event("1"));
    // The server closed them for others, or, if it took seconds to open them all, because they said
    // nothing.
    let went = [cut(&server, "full"), cut(&server, "head")];
    assert!(
        went.iter().sum::<usize>() >= sockets.len() - connections_max,
        "{went:?}"
    );
    drop(sockets);
}

#[test]
fn silent_connections_keep_nobody_out_when_open_files_run_out() {
    let home = Home::new();
    let server = home.serve();
    let topic = server.api().create_topic("orders", &json!({}));
    let pid = Pid::from_raw(
        server
            .pid()
            .try_into()
            .expect("a process's number is small"),
    );
    prlimit(
        pid,
        Resource::Nofile,
        Rlimit {
            current: Some(100),
            maximum: Some(100),
        },
    )
    .expect("a limit may be lowered");
    let sockets = silent(&server, from(4), 3);
    server
        .api()
        .send("GET", "/health", &[], b"")
        .expect("health is answered")
        .expect(200);
    topic.publish(&cloud_event("1"));
    assert!(cut(&server, "full") > 0);
    drop(sockets);
}

/// Silent connections of one address are bounded, and end within seconds.
#[test]
fn silent_connections_of_one_address_are_bounded_and_end() {
    let home = Home::new();
    let server = Server::start(home.path(), &["--trusted-proxies", "127.9.3.0/24"]);
    let proxies = silent(&server, from(3).take(1), 200);
    let crowd = silent(&server, from(2).take(1), 200);
    let expected = crowd.len() - SILENT_PER_ADDRESS_MAX;
    wait_until(
        "connections that are closed for their address's sake",
        || (cut(&server, "address") > 0).then_some(()),
    );
    // The rest, those of the proxy included, have seconds.
    let all = proxies.len() + crowd.len();
    wait_until(
        "connections that are closed because they said nothing",
        || (cut(&server, "address") + cut(&server, "head") == all).then_some(()),
    );
    // Fewer than expected where the first ones ended before the last ones came.
    assert!(cut(&server, "address") <= expected && cut(&server, "full") == 0);
    for mut socket in proxies.into_iter().chain(crowd) {
        let end = socket.read(&mut [0]);
        let is_closed = matches!(&end, Ok(0))
            || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
        assert!(is_closed);
    }
}

#[test]
fn operators_are_answered_while_all_request_places_are_taken() {
    let home = Home::new();
    let server = Server::start(home.path(), &["--connections-max", "3"]);
    let topic = server.api().create_topic("orders", &json!({}));
    let event = cloud_event("1").to_string();
    // Requests whose bodies do not come. Each has a place when it is asked to send on.
    let begin = |_| {
        let address = server
            .url()
            .strip_prefix("http://")
            .expect("it is plain http");
        let mut stream = TcpStream::connect(address).expect("the server listens");
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .expect("a timeout is no zero");
        let key = &topic.keys[0];
        let length = event.len();
        let head = format!(
            "POST /topics/orders/events HTTP/1.1\r\nhost: h\r\naeg-sas-key: {key}\r\n\
             content-type: {CLOUD_EVENT}\r\ncontent-length: {length}\r\nexpect: 100-continue\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("the server reads");
        let mut go_on = [0; GO_ON.len()];
        stream.read_exact(&mut go_on).expect("the server answers");
        assert_eq!(&go_on, GO_ON);
        stream
    };
    let held: Vec<TcpStream> = (0..3).map(begin).collect();
    let publish = || {
        topic
            .send(CLOUD_EVENT, event.as_bytes())
            .expect("the server answers")
    };
    let refused = wait_until("a publish that finds no place", || {
        Some(publish()).filter(|it| it.status == 503)
    });
    assert_eq!(refused.header("retry-after"), Some("1"));
    let problem = refused.problem(503);
    assert_eq!(problem["type"], "urn:posthaste:problem:back-pressure");
    assert!(
        problem["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("--connections-max")),
        "{problem}"
    );
    server
        .api()
        .send("GET", "/health", &[], b"")
        .expect("health is answered")
        .expect(200);
    assert!(server.api().metric("posthaste_requests_turned_away_total") >= 1.0);
    server.api().show("/topics/orders");
    for path in ["/topics", "/metrics"] {
        let wrong = [("authorization", "Bearer wrong")];
        let answer = server.api().send("GET", path, &wrong, b"");
        answer.expect("the server answers").problem(503);
    }
    for mut stream in held {
        stream
            .write_all(event.as_bytes())
            .expect("the server reads");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("the server answers");
        assert_eq!(&answer, b"HTTP/1.1 200");
    }
    publish().expect(200);
}

/// 150 slow endpoints want far more connections than 256 open files allow. They have those that are
/// theirs, 22 at once, and operators and producers have the others.
#[test]
fn slow_endpoints_take_no_descriptor_of_anybody_else() {
    const ENDPOINTS: usize = 150;
    const AT_ONCE: usize = 22;
    let home = Home::new();
    let mut limited = Command::new("sh");
    let script = "ulimit -n 256; exec \"$0\" \"$@\"";
    limited.args(["-c", script]).arg(posthaste());
    let server = Server::start_by(limited, home.path(), &[]);
    let endpoints: Vec<_> = (0..ENDPOINTS).map(|_| Endpoint::start()).collect();
    let subscriptions = endpoints.iter().enumerate().map(|(at, endpoint)| {
        endpoint.script("/a", [Answer::Held(204)]);
        let patient = json!({ "endpoint": { "timeout": "PT1M" } });
        (
            format!("s{at}"),
            subscription_with(&endpoint.url("/a"), &patient),
        )
    });
    let settings = subscriptions.collect::<Map<_, _>>();
    let topic = server
        .api()
        .create_topic("orders", &json!({ "subscriptions": settings }));
    let received = || {
        let all = endpoints.iter().map(|endpoint| endpoint.all().len());
        all.sum::<usize>()
    };
    for id in 0..10 {
        topic.publish(&cloud_event(&id.to_string()));
    }
    wait_until("all connections are taken", || {
        (received() >= AT_ONCE).then_some(())
    });
    topic.publish(&cloud_event("last"));
    server
        .api()
        .send("GET", "/health", &[], b"")
        .expect("health is answered")
        .expect(200);
    assert_eq!(received(), AT_ONCE);
    endpoints.iter().for_each(Endpoint::open);
    wait_until("all events arrive", || {
        (received() == ENDPOINTS * 11).then_some(())
    });
}
