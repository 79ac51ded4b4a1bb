//! Looks at endpoints without a request.

use std::time::Duration;

use posthaste_core::api::doctor::{CertificateTimes, ConnectedEndpoint, EndpointFault};
use posthaste_core::model::{CertificateFault, EndpointUrl, Link, SendFailure, Timestamp};
use posthaste_http::{ClientSettings, HyperWebhookClient, LookupError};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;
use rustls::HandshakeKind;

use crate::deadline::Silent;
use crate::endpoint::{Endpoint, EndpointStep, OK, exchange, write};
use crate::tls::{Authority, certificate_for, https};
use crate::{ScriptedNames, TIMEOUT, answered, client, on_loopback, send, settle};

fn link(url: &str) -> Link {
    EndpointUrl::parse(url).unwrap().link()
}

fn failure(look: Result<ConnectedEndpoint, EndpointFault>) -> SendFailure {
    look.unwrap_err().failure
}

#[tokio::test]
async fn look_connects_and_sends_no_request() {
    let endpoint = Endpoint::start(vec![vec![EndpointStep::Hang]]).await;
    let seen = client().look_at(&link(&endpoint.url()), TIMEOUT).await;
    let here = [endpoint.address.ip()];
    let expected = ConnectedEndpoint {
        addresses: here.to_vec(),
        connected: here[0],
        certificate: None,
    };
    assert_eq!(seen, Ok(expected));
    assert_eq!(endpoint.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn look_tells_the_validity_of_a_certificate() {
    let authority = Authority::new();
    let mut params = certificate_for("127.0.0.1");
    params.not_before = rcgen::date_time_ymd(2026, 1, 2);
    params.not_after = rcgen::date_time_ymd(2096, 3, 4);
    let endpoint =
        Endpoint::start_tls(authority.acceptor(&params), vec![vec![EndpointStep::Hang]]).await;
    let client = HyperWebhookClient::new(authority.trusted("validity"), SystemClock).unwrap();
    let seen = client.look_at(&link(&https(&endpoint)), TIMEOUT).await;
    let time = |text: &str| Timestamp::parse(text).unwrap();
    let expected = CertificateTimes {
        from: time("2026-01-02T00:00:00Z"),
        until: time("2096-03-04T00:00:00Z"),
    };
    assert_eq!(seen.unwrap().certificate, Some(expected));
}

/// A session that is resumed would not verify the certificate again.
#[tokio::test]
async fn look_makes_a_whole_handshake_after_a_request() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&certificate_for("localhost"));
    let close = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    let looked_at = vec![write(""), EndpointStep::Hang];
    let endpoint = Endpoint::start_tls(acceptor, vec![exchange(close), looked_at]).await;
    let client = HyperWebhookClient::new(authority.trusted("whole"), SystemClock).unwrap();
    let url = format!("https://localhost:{}/", endpoint.address.port());
    assert_eq!(send(&client, &url).await, answered(204, ""));
    // The steps of the request are over.
    settle().await;
    endpoint.step_done().await;
    let seen = client.look_at(&link(&url), TIMEOUT).await;
    assert!(seen.is_ok_and(|seen| seen.certificate.is_some()));
    // The endpoint has ended the handshake.
    endpoint.step_done().await;
    let full = Some(HandshakeKind::Full);
    assert_eq!(endpoint.handshakes(), [full, full]);
}

#[tokio::test]
async fn look_says_each_fault_of_a_certificate() {
    let authority = Authority::new();
    let mut expired = certificate_for("127.0.0.1");
    expired.not_before = rcgen::date_time_ymd(2020, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let endpoint = Endpoint::start_tls(authority.acceptor(&expired), vec![exchange(OK)]).await;
    let client = HyperWebhookClient::new(authority.trusted("look-expired"), SystemClock).unwrap();
    let fault = client
        .look_at(&link(&https(&endpoint)), TIMEOUT)
        .await
        .unwrap_err();
    let expected = SendFailure::Certificate(CertificateFault::Expired);
    assert_eq!(fault.failure, expected);
    let text = fault.text.unwrap();
    assert!(text.contains("2021-01-01"), "{text}");
}

#[tokio::test]
async fn refused_address_is_not_connected_to_and_named() {
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let client = HyperWebhookClient::new(ClientSettings::default(), SystemClock).unwrap();
    let fault = client
        .look_at(&link(&endpoint.url()), TIMEOUT)
        .await
        .unwrap_err();
    let refusal = fault.refusal.unwrap().to_string();
    assert!(
        refusal.starts_with("the address 127.0.0.1 is not public"),
        "{refusal}"
    );
    assert_eq!(fault.failure, SendFailure::AddressRefused);
    assert_eq!(endpoint.connections(), 0);
}

/// One public address beside an allowed one refuses the host, as it does for a request.
#[tokio::test]
async fn host_with_one_refused_address_is_not_connected_to() {
    let endpoint = Endpoint::start(vec![exchange(OK)]).await;
    let script = ScriptedNames::new(vec![Ok(&["127.0.0.1", "192.168.0.1"])]);
    let client = HyperWebhookClient::with_names(on_loopback(), SystemClock, script).unwrap();
    let url = format!("http://a.example:{}/", endpoint.address.port());
    let look = client.look_at(&link(&url), TIMEOUT).await;
    assert_eq!(failure(look), SendFailure::AddressRefused);
    assert_eq!(endpoint.connections(), 0);
}

#[tokio::test]
async fn unknown_name_is_a_fault_of_resolution() {
    let script = ScriptedNames::new(vec![Err(LookupError::DoesNotExist)]);
    let client = HyperWebhookClient::with_names(on_loopback(), SystemClock, script).unwrap();
    let look = client.look_at(&link("https://no.example/"), TIMEOUT).await;
    let expected = SendFailure::Resolution {
        does_not_exist: true,
    };
    assert_eq!(failure(look), expected);
}

#[tokio::test]
async fn name_servers_that_are_silent_are_a_fault_of_resolution() {
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::with_names(on_loopback(), clock.clone(), Silent).unwrap();
    let link = link("https://a.example/");
    let looking = tokio::spawn(async move { client.look_at(&link, TIMEOUT).await });
    settle().await;
    clock.advance(TIMEOUT);
    let expected = SendFailure::Resolution {
        does_not_exist: false,
    };
    assert_eq!(failure(looking.await.unwrap()), expected);
}

#[tokio::test]
async fn endpoint_that_stalls_in_the_handshake_ends_with_the_time() {
    let endpoint = Endpoint::start(vec![vec![write(""), EndpointStep::Hang]]).await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    let link = link(&https(&endpoint));
    let looking = tokio::spawn(async move { client.look_at(&link, TIMEOUT).await });
    endpoint.step_done().await;
    settle().await;
    clock.advance(TIMEOUT.saturating_sub(Duration::from_millis(1)));
    settle().await;
    assert!(!looking.is_finished());
    clock.advance(Duration::from_millis(1));
    let look = looking.await.unwrap();
    assert_eq!(failure(look), SendFailure::ConnectTimedOut);
}
