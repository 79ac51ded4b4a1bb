//! A server with the certificate of many hosts, in a process of its own: it answers 204 and closes,
//! and tells on its output how many handshakes were resumed.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::HandshakeKind;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// The name of the file of its authority, which makes this program the server.
pub(crate) const CERTIFICATE: &str = "sessions-root.pem";

const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

/// Names in the certificate, so that it is as long as those of the web.
const NAMES: usize = 20;

/// The name of a host.
pub(crate) fn host(number: usize) -> String {
    format!("h{number}.hosts.example")
}

/// A running server; ends with this value.
pub(crate) struct Server {
    address: SocketAddr,
    chain_bytes: usize,
    root_file: PathBuf,
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let root_file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(CERTIFICATE);
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg(&root_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        let (address, chain_bytes) = line.trim().split_once(' ').unwrap();
        Self {
            address: address.parse().unwrap(),
            chain_bytes: chain_bytes.parse().unwrap(),
            root_file,
            pipes: RefCell::new((child.stdin.take().unwrap(), output)),
            child,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn chain_bytes(&self) -> usize {
        self.chain_bytes
    }

    pub(crate) fn root_file(&self) -> &Path {
        &self.root_file
    }

    /// The number of handshakes that were resumed since the last call.
    pub(crate) fn take_resumed(&self) -> u32 {
        let (input, output) = &mut *self.pipes.borrow_mut();
        input.write_all(b"\n").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line.trim().parse().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The server's own process.
pub(crate) fn run(root_file: &str) {
    let (acceptor, chain_bytes) = acceptor(root_file);
    let resumed = Arc::new(AtomicU32::new(0));
    let asked = Arc::clone(&resumed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        println!("{} {chain_bytes}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for _ in std::io::stdin().lines() {
                println!("{}", asked.swap(0, Ordering::Relaxed));
            }
        });
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(answer(stream, acceptor.clone(), Arc::clone(&resumed)));
        }
    });
}

/// A leaf and an authority between it and the root, as the web has them.
fn acceptor(root_file: &str) -> (TlsAcceptor, usize) {
    let authority = || {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let authority_named = |name: &str| {
        let mut params = authority();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params
    };
    let key = || KeyPair::generate().unwrap();
    let root = CertifiedIssuer::self_signed(authority_named("Root of the bench"), key()).unwrap();
    let between = CertifiedIssuer::signed_by(authority_named("Between"), key(), &root).unwrap();
    std::fs::write(root_file, root.pem()).unwrap();
    let names = (0..NAMES).map(|number| format!("*.a-longer-name-{number}.example"));
    let names: Vec<_> = names.chain(["*.hosts.example".to_owned()]).collect();
    let leaf_key = key();
    let leaf = CertificateParams::new(names).unwrap();
    let leaf = leaf.signed_by(&leaf_key, &between).unwrap();
    let chain = vec![leaf.der().clone(), between.der().clone()];
    let chain_bytes = chain.iter().map(|it| it.len()).sum();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            chain,
            PrivatePkcs8KeyDer::from(leaf_key.serialize_der()).into(),
        )
        .unwrap();
    config.ticketer = rustls::crypto::ring::Ticketer::new().unwrap();
    (TlsAcceptor::from(Arc::new(config)), chain_bytes)
}

async fn answer(stream: TcpStream, acceptor: TlsAcceptor, resumed: Arc<AtomicU32>) {
    stream.set_nodelay(true).unwrap();
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    if stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed) {
        resumed.fetch_add(1, Ordering::Relaxed);
    }
    let mut buffer = vec![0; 16 * 1024];
    let mut seen = 0;
    loop {
        let Ok(read @ 1..) = stream.read(&mut buffer[seen..]).await else {
            return;
        };
        seen += read;
        let head_bytes = buffer[..seen]
            .windows(4)
            .position(|four| four == b"\r\n\r\n");
        if head_bytes.is_some_and(|head_bytes| seen == head_bytes + 4 + crate::PAYLOAD_BYTES) {
            break;
        }
    }
    if stream.write_all(ANSWER).await.is_ok() {
        let _ = stream.shutdown().await;
    }
}
