//! An endpoint that follows a script, byte by byte.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::HandshakeKind;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::settle;

pub(crate) const NO_CONTENT: &str = "HTTP/1.1 204 No Content\r\n\r\n";
pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A step of the endpoint on a connection. After the last step it closes.
#[derive(Debug, Clone)]
pub(crate) enum EndpointStep {
    /// Reads a whole request.
    Read,
    /// Reads the beginning of a request.
    ReadSome,
    /// Resets the connection.
    Reset,
    /// Writes bytes.
    Write(String),
    /// Writes the same for as long as the client reads.
    Flood(&'static str),
    /// Waits for the test.
    Until(Arc<Notify>),
    /// Waits and never answers.
    Hang,
}

pub(crate) fn write(text: &str) -> EndpointStep {
    EndpointStep::Write(text.to_owned())
}

/// The steps that serve one request.
pub(crate) fn exchange(answer: &str) -> Vec<EndpointStep> {
    vec![EndpointStep::Read, write(answer)]
}

/// A running endpoint.
pub(crate) struct Endpoint {
    pub(crate) address: SocketAddr,
    log: Arc<EndpointLog>,
}

#[derive(Default)]
struct EndpointLog {
    connections: Mutex<Vec<Option<HandshakeKind>>>,
    requests: Mutex<Vec<String>>,
    step_done: Notify,
}

impl Endpoint {
    /// Serves the n-th connection by the n-th script; more connections than scripts are closed at
    /// once.
    pub(crate) async fn start(scripts: Vec<Vec<EndpointStep>>) -> Self {
        Self::on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            None,
            scripts,
        )
    }

    pub(crate) async fn start_tls(acceptor: TlsAcceptor, scripts: Vec<Vec<EndpointStep>>) -> Self {
        Self::on(
            TcpListener::bind("127.0.0.1:0").await.unwrap(),
            Some(acceptor),
            scripts,
        )
    }

    /// An address at which the endpoint sends its first `slow` bytes one by one, each after the
    /// client has read the one before.
    pub(crate) async fn slowly(&self, slow: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = self.address;
        tokio::spawn(async move {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(endpoint).await.unwrap();
            pass_on(client, server, slow).await;
        });
        address
    }

    pub(crate) fn on(
        listener: TcpListener,
        acceptor: Option<TlsAcceptor>,
        scripts: Vec<Vec<EndpointStep>>,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let log = Arc::new(EndpointLog::default());
        tokio::spawn(accept(listener, acceptor, scripts, log.clone()));
        Self { address, log }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook?tenant=a", self.address)
    }

    /// The number of accepted connections.
    pub(crate) fn connections(&self) -> usize {
        self.log.connections.lock().unwrap().len()
    }

    /// The TLS handshake of each connection; `None` for plain connections and failed handshakes.
    pub(crate) fn handshakes(&self) -> Vec<Option<HandshakeKind>> {
        self.log.connections.lock().unwrap().clone()
    }

    /// The requests that were read, as they were on the wire.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.log.requests.lock().unwrap().clone()
    }

    /// Waits until a step was done since the last call.
    pub(crate) async fn step_done(&self) {
        self.log.step_done.notified().await;
    }
}

/// Passes bytes on both ways, the first `slow` of the server's one by one.
async fn pass_on(client: TcpStream, server: TcpStream, slow: usize) {
    client.set_nodelay(true).unwrap();
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let requests = tokio::io::copy(&mut from_client, &mut to_server);
    let answers = async {
        for _ in 0..slow {
            let byte = from_server.read_u8().await?;
            to_client.write_u8(byte).await?;
            settle().await;
        }
        tokio::io::copy(&mut from_server, &mut to_client).await
    };
    // Either end may be closed before the other.
    let _ = tokio::join!(requests, answers);
}

async fn accept(
    listener: TcpListener,
    acceptor: Option<TlsAcceptor>,
    scripts: Vec<Vec<EndpointStep>>,
    log: Arc<EndpointLog>,
) {
    let mut scripts = scripts.into_iter();
    while let Ok((stream, _)) = listener.accept().await {
        let script = scripts.next().unwrap_or_default();
        tokio::spawn(serve(stream, acceptor.clone(), script, log.clone()));
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    script: Vec<EndpointStep>,
    log: Arc<EndpointLog>,
) {
    let at = {
        let mut connections = log.connections.lock().unwrap();
        connections.push(None);
        connections.len() - 1
    };
    let Some(acceptor) = acceptor else {
        return follow(stream, script, &log).await;
    };
    if let Ok(stream) = acceptor.accept(stream).await {
        log.connections.lock().unwrap()[at] = stream.get_ref().1.handshake_kind();
        follow(stream, script, &log).await;
    }
}

/// The endpoint's end of a connection.
trait Stream: AsyncRead + AsyncWrite + Unpin {
    /// Ends it with a reset.
    fn reset(self);
}

impl Stream for TcpStream {
    fn reset(self) {
        self.set_zero_linger().unwrap();
    }
}

impl Stream for TlsStream<TcpStream> {
    fn reset(self) {
        self.into_inner().0.reset();
    }
}

async fn follow(mut stream: impl Stream, script: Vec<EndpointStep>, log: &EndpointLog) {
    for step in script {
        match step {
            EndpointStep::Read => match read_request(&mut stream).await {
                Some(request) => log.requests.lock().unwrap().push(request),
                None => return,
            },
            EndpointStep::ReadSome => {
                if stream.read(&mut [0; 100]).await.is_err() {
                    return;
                }
            }
            EndpointStep::Reset => return stream.reset(),
            EndpointStep::Write(text) => {
                if stream.write_all(text.as_bytes()).await.is_err() {
                    return;
                }
            }
            EndpointStep::Flood(text) => while stream.write_all(text.as_bytes()).await.is_ok() {},
            EndpointStep::Until(told) => told.notified().await,
            EndpointStep::Hang => std::future::pending().await,
        }
        log.step_done.notify_one();
    }
    let _ = stream.shutdown().await;
}

/// A request with its body, if the peer sends one whole.
async fn read_request(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "));
        if body.len() == length.map_or(0, |length| length.parse().unwrap()) {
            return Some(text.into_owned());
        }
    }
}
