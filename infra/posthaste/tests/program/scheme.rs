//! A server that is asked with the wrong scheme: the message names the right one.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use crate::common::{Server, failure, run};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

fn check(url: &str, words: &str, right: &str) {
    let (code, text) = failure(&run(&["topics", "--key", "k", "--url", url]));
    let expected = format!("error: the server at {words}\n");
    assert!(
        code == 7 && text.starts_with(&expected) && text.contains(right),
        "{text}"
    );
}

/// Serves each connection in its turn, on a thread that ends with the test.
fn listener(serve: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        listener
            .incoming()
            .for_each(|stream| serve(stream.unwrap()));
    });
    address
}

#[test]
fn https_to_a_server_of_plain_http_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path(), &[]);
    let address = server.url.trim_start_matches("http://");
    let url = format!("https://{address}");
    check(
        &url,
        &format!("{address} answers plain HTTP"),
        &format!("try: http:// instead: --url http://{address}"),
    );
}

#[test]
fn https_to_another_listener_of_plain_http_says_so() {
    let address = listener(|mut stream| {
        // What comes does not matter, and a client may leave before it is answered.
        let _ = stream.read(&mut [0; 1024]);
        let _ = stream
            .write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    });
    check(
        &format!("https://{address}"),
        &format!("{address} answers plain HTTP"),
        "http://",
    );
}

#[test]
fn http_to_a_server_of_tls_says_so() {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    let config =
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], key.into())
            .unwrap();
    let config = Arc::new(config);
    let address = listener(move |stream| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        // A client that does not trust the certificate leaves.
        let _ = StreamOwned::new(connection, stream).read(&mut [0; 1024]);
    });
    check(
        &format!("http://{address}"),
        &format!("{address} speaks TLS"),
        &format!("--url https://{address}"),
    );
}

#[test]
fn a_listener_that_is_no_server_is_unreachable_with_its_reason() {
    let address = listener(drop);
    let (code, text) = failure(&run(&[
        "topics",
        "--key",
        "k",
        "--url",
        &format!("http://{address}"),
    ]));
    assert!(
        code == 7 && text.starts_with("error: failed to reach http://"),
        "{text}"
    );
    assert!(
        text.contains("is `posthaste serve` running there?") && text.contains("POSTHASTE_URL"),
        "{text}"
    );
}
