//! The same requests with rustls and nothing around it.

use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::PAYLOAD_BYTES;
use crate::server::{self, Server};

/// Tickets a host in rustls' own store, by which it divides its size.
const TICKETS: usize = 8;

pub(crate) struct RawConnections<'a> {
    server: &'a Server,
    connector: TlsConnector,
}

impl<'a> RawConnections<'a> {
    /// Connections that keep the sessions of so many hosts, or none.
    pub(crate) fn new(server: &'a Server, hosts: Option<usize>) -> Self {
        let mut roots = rustls::RootCertStore::empty();
        let root = CertificateDer::from_pem_file(server.root_file()).unwrap();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let kept = |hosts| Resumption::in_memory_sessions(hosts * TICKETS);
        config.resumption = hosts.map_or_else(Resumption::disabled, kept);
        let connector = TlsConnector::from(Arc::new(config));
        Self { server, connector }
    }

    pub(crate) async fn post(&self, host: usize) {
        let name = server::host(host);
        let stream = TcpStream::connect(self.server.address()).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let server_name = ServerName::try_from(name.clone()).unwrap();
        let mut stream = self.connector.connect(server_name, stream).await.unwrap();
        let head = format!(
            "POST /hook HTTP/1.1\r\nhost: {name}\r\ncontent-length: {PAYLOAD_BYTES}\r\n\r\n"
        );
        let request = [head.as_bytes(), &[b'x'; PAYLOAD_BYTES]].concat();
        stream.write_all(&request).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 204"));
    }
}
