//! The client asking one name server, scripted, and nothing else.

use std::time::Duration;

use posthaste_core::model::{AddressPolicy, SendFailure};
use posthaste_http::{ClientSettings, HyperWebhookClient};
use posthaste_ports::{WebhookClient, WebhookRequest};
use posthaste_system::SystemClock;
use posthaste_tests::name_server::{NameAnswer, NameServer};
use tokio::net::{TcpListener, TcpSocket};

use crate::endpoint::{Endpoint, NO_CONTENT, OK, exchange};
use crate::{BriefResponse, answered, brief, post, send};

/// A client that may go to loopback and asks this server.
fn asking(server: &NameServer) -> HyperWebhookClient<SystemClock> {
    HyperWebhookClient::new(settings(server), SystemClock).unwrap()
}

fn settings(server: &NameServer) -> ClientSettings {
    ClientSettings {
        dns_server: Some(server.address()),
        // Every request asks.
        names_kept: Duration::ZERO,
        addresses: AddressPolicy {
            allowed: ["127.0.0.0/8", "::1/128"]
                .map(|net| net.parse().unwrap())
                .to_vec(),
            ..AddressPolicy::default()
        },
        ..ClientSettings::default()
    }
}

async fn sent(server: &NameServer, host: &str) -> BriefResponse {
    send(&asking(server), &format!("https://{host}/")).await
}

#[tokio::test]
async fn a_name_goes_where_the_server_says() {
    let server = NameServer::start();
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    server.resolve("hooks.example", &["127.0.0.1"]);
    let url = format!("http://hooks.example:{}/", endpoint.address.port());
    assert_eq!(send(&asking(&server), &url).await, answered(200, "ok"));
    assert_eq!(
        server.asked(),
        ["hooks.example"; 2],
        "once for each kind of address"
    );
}

/// Names that DNS allows and rules for registered names refuse, and names in other alphabets as
/// those rules write them.
#[tokio::test]
async fn name_is_asked_for_as_it_is_written() {
    let check = async |host: &str, asked: &str| {
        let server = NameServer::start();
        let endpoint = Endpoint::start(vec![exchange(OK)]).await;
        server.resolve(asked, &["127.0.0.1"]);
        let url = format!("http://{host}:{}/", endpoint.address.port());
        assert_eq!(
            send(&asking(&server), &url).await,
            answered(200, "ok"),
            "{host}"
        );
        assert_eq!(server.asked(), [asked; 2]);
    };
    check("my_service", "my_service").await;
    check("_a_.-b-.Example", "_a_.-b-.example").await;
    check("a$b~c.example", "a$b~c.example").await;
    check("*.example", "*.example").await;
    check("bücher.example", "xn--bcher-kva.example").await;
    check("my_bücher.example.", "xn--my_bcher-95a.example").await;
}

#[tokio::test]
async fn only_the_word_of_the_server_makes_a_name_unknown() {
    let server = NameServer::start();
    let check = async |answer, does_not_exist| {
        server.answer("hooks.example", answer);
        let expected = Err(SendFailure::Resolution { does_not_exist });
        assert_eq!(sent(&server, "hooks.example").await, expected);
    };
    check(NameAnswer::NoSuchName, true).await;
    check(NameAnswer::Failure, false).await;
    check(NameAnswer::Addresses(vec![]), false).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_says_nothing_about_a_name() {
    let server = NameServer::start();
    server.answer("hooks.example", NameAnswer::Silence);
    let failed = Err(SendFailure::Resolution {
        does_not_exist: false,
    });
    assert_eq!(sent(&server, "hooks.example").await, failed);
}

/// The resolver itself waits 15 s for an answer, so within 10 s only the other family can have
/// helped.
#[tokio::test]
async fn silence_about_one_family_does_not_delay_the_other() {
    let server = NameServer::start();
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    server.answer(
        "hooks.example",
        NameAnswer::OnlyAddresses(vec!["127.0.0.1".parse().unwrap()]),
    );
    let url = format!("http://hooks.example:{}/", endpoint.address.port());
    let request = WebhookRequest {
        timeout: Duration::from_secs(10),
        ..post(&url)
    };
    assert_eq!(
        brief(asking(&server).send(request).await),
        answered(200, "ok")
    );
}

#[tokio::test]
async fn connections_to_a_name_are_spread_over_its_addresses_in_turn() {
    let first = Endpoint::start(vec![exchange(NO_CONTENT); 3]).await;
    let port = first.address.port();
    let listener = TcpListener::bind(("127.0.0.2", port)).await.unwrap();
    let second = Endpoint::on(listener, None, vec![exchange(NO_CONTENT); 3]);
    let server = NameServer::start();
    server.resolve("hooks.example", &["127.0.0.1", "127.0.0.2"]);
    // Each request opens a connection of its own.
    let settings = ClientSettings {
        idle_per_link_max: 0,
        ..settings(&server)
    };
    let client = HyperWebhookClient::new(settings, SystemClock).unwrap();
    let mut seen = Vec::new();
    for _ in 0..4 {
        assert_eq!(
            send(&client, &format!("http://hooks.example:{port}/")).await,
            answered(204, "")
        );
        seen.push((first.connections(), second.connections()));
    }
    assert_eq!(seen, [(1, 0), (1, 1), (2, 1), (2, 2)]);
}

#[tokio::test]
async fn next_address_of_a_name_is_used_after_a_refusal() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let listener = TcpListener::bind(("127.0.0.3", port)).await.unwrap();
    let server = NameServer::start();
    let endpoint = Endpoint::on(listener, None, vec![exchange(OK)]);
    server.resolve(
        "hooks.example",
        &["127.0.0.1", "::1", "127.0.0.2", "127.0.0.3"],
    );
    let url = format!("http://hooks.example:{port}/");
    assert_eq!(send(&asking(&server), &url).await, answered(200, "ok"));
    assert_eq!(endpoint.connections(), 1);
}

/// Names with one address that is not allowed are refused whole.
#[tokio::test]
async fn refused_address_refuses_the_whole_attempt() {
    let server = NameServer::start();
    let check = async |addresses: &[&str]| {
        server.resolve("hooks.example", addresses);
        let refused = Err(SendFailure::AddressRefused);
        assert_eq!(
            sent(&server, "hooks.example").await,
            refused,
            "{addresses:?}"
        );
    };
    check(&["127.0.0.1", "10.0.0.1"]).await;
    check(&["127.0.0.1", "fd00::1"]).await;
}

#[tokio::test]
async fn this_machine_is_not_the_server_s_to_answer() {
    let server = NameServer::start();
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let url = format!("http://localhost:{}/", endpoint.address.port());
    assert_eq!(send(&asking(&server), &url).await, answered(200, "ok"));
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn the_hosts_file_is_not_looked_at() {
    let server = NameServer::start();
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = hosts
        .lines()
        .flat_map(|line| line.split_whitespace().skip(1));
    // No server answers for the names that RFC 6761 reserves for this machine.
    for name in names.filter(|name| !name.ends_with("localhost")) {
        let unknown = Err(SendFailure::Resolution {
            does_not_exist: true,
        });
        assert_eq!(sent(&server, name).await, unknown, "{name}");
    }
}
