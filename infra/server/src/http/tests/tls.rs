//! The rules of connections over TLS: they are those of plain HTTP.

use super::*;
use crate::http::places::FIRST_HEAD_TIMEOUT;
use crate::tls::TlsFiles;
use posthaste_tests::authority::Authority;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate, and the connector that trusts it.
fn secured() -> (Arc<ServerTls>, TlsConnector) {
    let authority = Authority::new();
    let folder = tempfile::tempdir().unwrap();
    let [certificate, key] = authority.issue(&["127.0.0.1"]).write(folder.path());
    let tls = ServerTls::open(TlsFiles { certificate, key }, START).unwrap();
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.pem().as_bytes()).unwrap();
    roots.add(root).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    (Arc::new(tls), TlsConnector::from(Arc::new(config)))
}

async fn shake(connector: &TlsConnector, address: SocketAddr) -> TlsStream<TcpStream> {
    let stream = TcpStream::connect(address).await.unwrap();
    let name = "127.0.0.1".try_into().unwrap();
    connector.connect(name, stream).await.unwrap()
}

async fn until_asleep(clock: &ManualClock, sleepers: usize) {
    while clock.sleepers() != sleepers {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn tls_client_that_leaves_in_the_tarpit_publishes_nothing() {
    let (tls, connector) = secured();
    let world = World::with_tls(10_000, Some(tls)).await;
    let request = event_request();
    // It says goodbye in TLS, and the connection stays.
    let mut closing = shake(&connector, world.address).await;
    closing.write_all(request.as_bytes()).await.unwrap();
    closing.flush().await.unwrap();
    world.until_waiting(1).await;
    closing.shutdown().await.unwrap();
    let mut answer = String::new();
    closing.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    world.until_waiting(0).await;
    // It is gone, without a word.
    let mut leaving = shake(&connector, world.address).await;
    leaving.write_all(request.as_bytes()).await.unwrap();
    leaving.flush().await.unwrap();
    world.until_waiting(1).await;
    drop(leaving);
    world.until_waiting(0).await;
    assert_eq!(world.published().await, 0);
    let mut staying = shake(&connector, world.address).await;
    staying.write_all(request.as_bytes()).await.unwrap();
    staying.flush().await.unwrap();
    world.until_waiting(1).await;
    world.clock.advance(TARPIT);
    let mut answer = String::new();
    staying.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(world.published().await, 1);
}

/// A handshake that does not come is like the head of a request that does not come, also one that
/// stops in the middle. Meanwhile others are answered.
#[tokio::test]
async fn silent_handshake_ends_in_time_and_holds_nobody_up() {
    let (tls, connector) = secured();
    let server = Small::with_tls(Some(tls)).await;
    let at_rest = server.clock.sleepers();
    // Five bytes of a record, and none of what they announce.
    for begun in [&b""[..], b"\x16\x03\x01\x02\x00"] {
        let mut silent = TcpStream::connect(server.address).await.unwrap();
        silent.write_all(begun).await.unwrap();
        until_asleep(&server.clock, at_rest + 1).await;
        let mut other = shake(&connector, server.address).await;
        let request = b"GET /small HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
        other.write_all(request).await.unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let second = Duration::from_secs(1);
        for step in [second, FIRST_HEAD_TIMEOUT.saturating_sub(second)] {
            until_asleep(&server.clock, at_rest + 1).await;
            server.clock.advance(step);
        }
        assert_eq!(silent.read(&mut [0]).await.unwrap_or(0), 0);
        until_asleep(&server.clock, at_rest).await;
    }
}

/// Bytes that TLS holds back to be sent do not count as sent: the client took none of them.
#[tokio::test]
async fn tls_client_that_does_not_read_keeps_no_other_out() {
    let (tls, connector) = secured();
    let server = Small::with_tls(Some(tls)).await;
    let ask = async |path: &str| {
        let mut client = shake(&connector, server.address).await;
        let request = format!("GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        client.flush().await.unwrap();
        let mut begin = [0; 12];
        client.read_exact(&mut begin).await.unwrap();
        (String::from_utf8(begin[9..].to_vec()).unwrap(), client)
    };
    let (status, mut slow) = ask("/large").await;
    assert_eq!(status, "200");
    assert_eq!(ask("/small").await.0, "503");
    let taken = async {
        while ask("/small").await.0 != "200" {
            server.clock.advance(Duration::from_secs(1));
        }
    };
    tokio::time::timeout(Duration::from_secs(20), taken)
        .await
        .unwrap();
    let mut rest = Vec::new();
    let end = slow.read_to_end(&mut rest).await;
    assert!(end.is_err() || rest.len() < LARGE_BYTES, "{}", rest.len());
}
