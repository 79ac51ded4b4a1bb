//! A sink in a process of its own: reads requests of known size, answers 204.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The argument that makes this program the sink.
pub(crate) const ARGUMENT: &str = "--sink";

const NO_CONTENT: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// A running sink; ends with this value.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    certificate: Option<PathBuf>,
    child: Child,
}

impl Sink {
    pub(crate) fn start(is_tls: bool) -> Self {
        let certificate =
            is_tls.then(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sink.pem"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(ARGUMENT)
            .args(&certificate)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            address: line.trim().parse().unwrap(),
            certificate,
            child,
        }
    }

    pub(crate) fn url(&self) -> String {
        let scheme = if self.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}/hooks/billing?tenant=a", self.address)
    }

    pub(crate) fn root_file(&self) -> Option<PathBuf> {
        self.certificate.clone()
    }

    pub(crate) fn connector(&self) -> Option<TlsConnector> {
        let mut roots = rustls::RootCertStore::empty();
        roots
            .add(CertificateDer::from_pem_file(self.certificate.as_ref()?).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Some(TlsConnector::from(Arc::new(config)))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The sink's own process.
pub(crate) fn run() {
    let certificate = std::env::args()
        .skip_while(|argument| argument != ARGUMENT)
        .nth(1);
    let acceptor = certificate.map(|path| acceptor(&path));
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            println!("{}", listener.local_addr().unwrap());
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    match acceptor {
                        Some(acceptor) => answer(acceptor.accept(stream).await.unwrap()).await,
                        None => answer(stream).await,
                    }
                });
            }
        });
}

fn acceptor(path: &str) -> TlsAcceptor {
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(path, made.cert.pem()).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Serves one connection: a response follows each request's bytes, one request at a time.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let mut buffer = vec![0; 16 * 1024];
    let mut seen = 0;
    while let Ok(1..) = stream
        .read(&mut buffer[seen..])
        .await
        .inspect(|read| seen += read)
    {
        let head_bytes = buffer[..seen]
            .windows(4)
            .position(|four| four == b"\r\n\r\n");
        if head_bytes.is_some_and(|head_bytes| seen == head_bytes + 4 + crate::PAYLOAD_BYTES) {
            seen = 0;
            if stream.write_all(NO_CONTENT).await.is_err() {
                return;
            }
        }
    }
}
