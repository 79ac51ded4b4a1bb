//! TLS: the authorities that the client trusts, and the result of a failed handshake.

use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::{CertificateFault, SendFailure, Timestamp};
use posthaste_http::{ClientSettings, HyperWebhookClient, LookupError, NameLookup};
use posthaste_ports::{EvictableCache, WebhookClient};
use posthaste_system::SystemClock;
use posthaste_testkit::ManualClock;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::HandshakeKind;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::TlsAcceptor;

use crate::endpoint::{Endpoint, EndpointStep, OK, exchange, write};
use crate::{TIMEOUT, answered, brief, on_loopback, post, send, settle};

/// An authority of our own.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Settings of a client that trusts this authority.
    pub(crate) fn trusted(&self, test: &str) -> ClientSettings {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{test}.pem"));
        std::fs::write(&path, self.0.pem()).unwrap();
        ClientSettings {
            extra_root_file: Some(path),
            ..on_loopback()
        }
    }

    pub(crate) fn acceptor(&self, params: &CertificateParams) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate.der().clone()],
                PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
            )
            .unwrap();
        config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

pub(crate) fn certificate_for(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).unwrap()
}

pub(crate) fn https(endpoint: &Endpoint) -> String {
    endpoint.url().replace("http://", "https://")
}

#[tokio::test]
async fn a_trusted_endpoint_is_reached_and_its_connection_kept() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&certificate_for("127.0.0.1"));
    let endpoint = Endpoint::start_tls(acceptor, vec![[exchange(OK), exchange(OK)].concat()]).await;
    let client = HyperWebhookClient::new(authority.trusted("kept"), SystemClock).unwrap();
    assert_eq!(send(&client, &https(&endpoint)).await, answered(200, "ok"));
    assert_eq!(send(&client, &https(&endpoint)).await, answered(200, "ok"));
    assert_eq!(endpoint.handshakes(), [Some(HandshakeKind::Full)]);
}

#[tokio::test]
async fn a_second_connection_resumes_the_session() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&certificate_for("localhost"));
    let close = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    let endpoint = Endpoint::start_tls(acceptor, vec![exchange(close), exchange(close)]).await;
    let client = HyperWebhookClient::new(authority.trusted("resumed"), SystemClock).unwrap();
    let url = format!("https://localhost:{}/", endpoint.address.port());
    assert_eq!(send(&client, &url).await, answered(204, ""));
    assert_eq!(send(&client, &url).await, answered(204, ""));
    assert_eq!(
        endpoint.handshakes(),
        [Some(HandshakeKind::Full), Some(HandshakeKind::Resumed)]
    );
}

/// More hosts than rustls' own store keeps when it is given as many sessions.
const HOSTS: usize = 200;

/// Every name is this machine's.
struct Loopback;

impl NameLookup for Loopback {
    async fn lookup(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }

    fn forget_all(&self) {}
}

#[tokio::test]
async fn sessions_of_many_hosts_are_resumed_until_memory_is_scarce() {
    let authority = Authority::new();
    let acceptor = authority.acceptor(&certificate_for("*.hosts.example"));
    let close = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    let endpoint = Endpoint::start_tls(acceptor, vec![exchange(close); 2 * HOSTS + 1]).await;
    let trusted = authority.trusted("many");
    let client = HyperWebhookClient::with_names(trusted, SystemClock, Loopback).unwrap();
    let port = endpoint.address.port();
    let url = |number: usize| format!("https://h{number}.hosts.example:{port}/");
    for number in (0..HOSTS).chain(0..HOSTS) {
        assert_eq!(send(&client, &url(number)).await, answered(204, ""));
    }
    let handshakes = endpoint.handshakes();
    let (first, second) = handshakes.split_at(HOSTS);
    assert_eq!(first, [Some(HandshakeKind::Full); HOSTS]);
    assert_eq!(second, [Some(HandshakeKind::Resumed); HOSTS]);
    client.trim();
    assert_eq!(send(&client, &url(0)).await, answered(204, ""));
    assert_eq!(
        endpoint.handshakes().last(),
        Some(&Some(HandshakeKind::Full))
    );
}

/// A handshake in many small segments is no flood.
#[tokio::test]
async fn handshake_that_comes_byte_by_byte_connects() {
    const SLOW: usize = 100;
    let authority = Authority::new();
    let acceptor = authority.acceptor(&certificate_for("127.0.0.1"));
    let endpoint = Endpoint::start_tls(acceptor, vec![exchange(OK)]).await;
    let client = HyperWebhookClient::new(authority.trusted("slowly"), SystemClock).unwrap();
    let url = format!("https://{}/", endpoint.slowly(SLOW).await);
    let mut polls = 0;
    let mut sending = pin!(send(&client, &url));
    let sent = poll_fn(|cx| {
        polls += 1;
        sending.as_mut().poll(cx)
    });
    assert_eq!(sent.await, answered(200, "ok"));
    // One for each byte, one more after some of them, and those of the rest.
    assert!(polls < 2 * SLOW, "{polls}");
}

#[tokio::test]
async fn a_certificate_that_does_not_hold_is_refused_by_its_fault() {
    let trusted = Authority::new();
    let stranger = Authority::new();
    let settings = trusted.trusted("refused");
    let check = async |acceptor: TlsAcceptor, fault| {
        let endpoint = Endpoint::start_tls(acceptor, vec![exchange(OK)]).await;
        let client = HyperWebhookClient::new(settings.clone(), SystemClock).unwrap();
        let expected = Err(SendFailure::Certificate(fault));
        assert_eq!(send(&client, &https(&endpoint)).await, expected);
        assert_eq!(endpoint.requests(), Vec::<String>::new());
    };
    check(
        stranger.acceptor(&certificate_for("127.0.0.1")),
        CertificateFault::UnknownIssuer,
    )
    .await;
    check(
        trusted.acceptor(&certificate_for("other.example")),
        CertificateFault::OtherName,
    )
    .await;
    let mut expired = certificate_for("127.0.0.1");
    expired.not_before = rcgen::date_time_ymd(2020, 1, 1);
    expired.not_after = rcgen::date_time_ymd(2021, 1, 1);
    check(trusted.acceptor(&expired), CertificateFault::Expired).await;
    let mut not_yet = certificate_for("127.0.0.1");
    not_yet.not_before = rcgen::date_time_ymd(4000, 1, 1);
    check(trusted.acceptor(&not_yet), CertificateFault::NotYetValid).await;
}

#[tokio::test]
async fn an_endpoint_that_does_not_speak_tls_is_told_from_a_bad_one() {
    let endpoint = Endpoint::start(vec![vec![
        write("HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n"),
        EndpointStep::Hang,
    ]])
    .await;
    let client = HyperWebhookClient::new(on_loopback(), SystemClock).unwrap();
    assert_eq!(
        send(&client, &https(&endpoint)).await,
        Err(SendFailure::NotTls)
    );
}

#[tokio::test]
async fn a_connection_closed_in_the_handshake_is_a_socket_failure() {
    let endpoint = Endpoint::start(vec![vec![]]).await;
    let client = HyperWebhookClient::new(on_loopback(), SystemClock).unwrap();
    assert_eq!(
        send(&client, &https(&endpoint)).await,
        Err(SendFailure::Socket)
    );
}

#[tokio::test]
async fn a_handshake_that_stalls_has_no_connection_in_time() {
    let endpoint = Endpoint::start(vec![vec![write(""), EndpointStep::Hang]]).await;
    let clock = ManualClock::new(Timestamp::EPOCH);
    let client = HyperWebhookClient::new(on_loopback(), clock.clone()).unwrap();
    let request = post(&https(&endpoint));
    let sending = tokio::spawn(async move { client.send(request).await });
    endpoint.step_done().await;
    settle().await;
    clock.advance(TIMEOUT.saturating_sub(Duration::from_millis(1)));
    settle().await;
    assert!(!sending.is_finished());
    clock.advance(Duration::from_millis(1));
    assert_eq!(
        brief(sending.await.unwrap()),
        Err(SendFailure::ConnectTimedOut)
    );
}
