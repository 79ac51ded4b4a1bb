//! Addresses that a request goes to.

use std::time::Duration;

use posthaste_core::model::{SendFailure, Timestamp};
use posthaste_http::{ClientSettings, HyperWebhookClient, LookupError};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;
use tokio::net::{TcpListener, TcpSocket};

use crate::endpoint::{Endpoint, OK, exchange};
use crate::{BriefResponse, ScriptedNames, answered, client, on_loopback, send, settle};

const REFUSED: BriefResponse = Err(SendFailure::AddressRefused);

async fn resolved(
    settings: ClientSettings,
    url: &str,
    answer: Result<&[&str], LookupError>,
) -> BriefResponse {
    let names = ScriptedNames::new(vec![answer]);
    send(
        &HyperWebhookClient::with_names(settings, SystemClock, names).unwrap(),
        url,
    )
    .await
}

/// A port on 127.0.0.1 without a listener, which no other program can take.
fn refusing() -> (TcpSocket, u16) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

#[tokio::test]
async fn a_refused_address_is_never_connected_to() {
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let port = endpoint.address.port();
    let client = HyperWebhookClient::new(ClientSettings::default(), SystemClock).unwrap();
    for url in [
        "http://127.0.0.1",
        "https://127.0.0.1",
        "https://localhost",
        "https://[::ffff:127.0.0.1]",
    ] {
        assert_eq!(
            send(&client, &format!("{url}:{port}/")).await,
            REFUSED,
            "{url}"
        );
    }
    settle().await;
    assert_eq!(endpoint.connections(), 0);
}

#[tokio::test]
async fn a_name_is_judged_by_what_it_resolves_to() {
    let check = async |url, addresses: &[&str]| {
        assert_eq!(
            resolved(ClientSettings::default(), url, Ok(addresses)).await,
            REFUSED,
            "{url} {addresses:?}"
        );
    };
    check("https://rebound.example/", &["127.0.0.1"]).await;
    check("https://half.example/", &["93.184.215.14", "10.0.0.1"]).await;
    check("https://half.example/", &["2606:2800:21f::1", "::1"]).await;
    check("https://metadata.example/", &["169.254.169.254"]).await;
    check("https://metadata.example/", &["64:ff9b::169.254.169.254"]).await;
    check("http://plain.example/", &["93.184.215.14"]).await;
    check("https://port.example:6379/", &["93.184.215.14"]).await;
}

/// Hosts with one public address get no plain http, not even at their allowed addresses.
#[tokio::test]
async fn public_address_bars_plain_http_to_allowed_ones() {
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let url = format!("http://sink.example:{}/", endpoint.address.port());
    assert_eq!(
        resolved(on_loopback(), &url, Ok(&["127.0.0.1", "93.184.215.14"])).await,
        REFUSED
    );
    assert_eq!(endpoint.connections(), 0);
    assert_eq!(
        resolved(on_loopback(), &url, Ok(&["127.0.0.1"])).await,
        answered(200, "ok")
    );
}

/// Names that do not exist are told from names that were not resolved.
#[tokio::test]
async fn missing_name_differs_from_failed_resolution() {
    let url = "https://hooks.example/";
    let failed = |does_not_exist| Err(SendFailure::Resolution { does_not_exist });
    assert_eq!(
        resolved(on_loopback(), url, Err(LookupError::DoesNotExist)).await,
        failed(true)
    );
    let servfail = LookupError::NoAnswer("servfail".into());
    assert_eq!(
        resolved(on_loopback(), url, Err(servfail)).await,
        failed(false)
    );
    assert_eq!(resolved(on_loopback(), url, Ok(&[])).await, failed(false));
}

#[tokio::test]
async fn a_refused_port_is_told_from_other_failures() {
    let (_socket, port) = refusing();
    assert_eq!(
        send(&client(), &format!("http://127.0.0.1:{port}/")).await,
        Err(SendFailure::Refused)
    );
}

/// A host that has moved, and one name server that says so.
#[tokio::test]
async fn refused_connection_makes_the_next_attempt_ask_again() {
    let (_socket, port) = refusing();
    let endpoint = Endpoint::on(
        TcpListener::bind(("127.0.0.2", port)).await.unwrap(),
        None,
        vec![exchange(OK)],
    );
    let names = ScriptedNames::new(vec![Ok(&["127.0.0.1"]), Ok(&["127.0.0.2"])]);
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::with_names(on_loopback(), clock.clone(), names).unwrap();
    let url = format!("http://moved.example:{port}/");
    // A storm of attempts asks once.
    for _ in 0..20 {
        assert_eq!(send(&client, &url).await, Err(SendFailure::Refused));
    }
    clock.advance(Duration::from_secs(5));
    assert_eq!(send(&client, &url).await, answered(200, "ok"));
    assert_eq!(endpoint.connections(), 1);
}

#[tokio::test]
async fn form_of_ipv6_of_an_allowed_address_is_reached() {
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let url = format!("http://sink.example:{}/", endpoint.address.port());
    assert_eq!(
        resolved(on_loopback(), &url, Ok(&["::ffff:127.0.0.1"])).await,
        answered(200, "ok")
    );
}

#[tokio::test]
async fn next_address_is_used_after_a_refusal() {
    let (_socket, port) = refusing();
    let endpoint = Endpoint::on(
        TcpListener::bind(("127.0.0.2", port)).await.unwrap(),
        None,
        vec![exchange(OK)],
    );
    let url = format!("http://sink.example:{port}/");
    let addresses: &[&str] = &["127.0.0.1", "127.0.0.2"];
    assert_eq!(
        resolved(on_loopback(), &url, Ok(addresses)).await,
        answered(200, "ok")
    );
    assert_eq!(endpoint.connections(), 1);
}

#[tokio::test]
async fn localhost_is_reached_where_one_loopback_net_is_allowed() {
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let url = format!("http://localhost:{}/", endpoint.address.port());
    assert_eq!(send(&client(), &url).await, answered(200, "ok"));
}
