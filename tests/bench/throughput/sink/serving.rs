//! The sink from within: one thread, a listener for each host, and one that speaks TLS.

use std::cell::RefCell;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};
use tokio_rustls::TlsAcceptor;

use super::arrived::Arrived;
use super::certificate;
use crate::process::raise_open_files;
use crate::wire::Messages;

/// Longest time for which an answer is held. Shorter than any timeout, so that no attempt fails: an
/// endpoint that fails has its events stored elsewhere, and they must wait in the queue.
const HELD_MAX: Duration = Duration::from_secs(20);

/// The beginning of a request to a collector, whose body is no event.
const OF_COLLECTOR: &[u8] = b"POST /v1/";

const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// The state that all connections share.
#[derive(Debug, Clone)]
struct Shared {
    arrived: Rc<RefCell<Arrived>>,
    is_held: watch::Sender<bool>,
}

/// Serves for ever.
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the parent reads where it listens"
)]
pub(crate) fn serve(hosts: u16, ca_file: &Path) {
    raise_open_files();
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let shared = Shared {
        arrived: Rc::default(),
        is_held: watch::Sender::new(false),
    };
    let acceptor = certificate::acceptor(ca_file);
    LocalSet::new().block_on(&runtime, async {
        let mut addresses = Vec::new();
        for number in 0..hosts {
            let listener = bind(host(number)).await;
            addresses.push(address(&listener));
            spawn_local(accept(listener, None, shared.clone()));
        }
        let tls = bind(Ipv4Addr::LOCALHOST).await;
        println!("{}", json!((addresses, address(&tls))));
        io::stdout().flush().expect("the parent reads");
        accept(tls, Some(acceptor), shared).await;
    });
}

/// The address of a host: 127.0.0.1, 127.0.0.2 and so on.
fn host(number: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(Ipv4Addr::LOCALHOST.to_bits() + u32::from(number))
}

async fn bind(address: Ipv4Addr) -> TcpListener {
    TcpListener::bind((address, 0))
        .await
        .expect("there is a free port")
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("it is bound")
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Shared) {
    while let Ok((stream, _)) = listener.accept().await {
        spawn_local(connection(stream, acceptor.clone(), shared.clone()));
    }
}

async fn connection(
    mut stream: TcpStream,
    tls: Option<TlsAcceptor>,
    shared: Shared,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if let Some(acceptor) = tls {
        let (reader, writer) = tokio::io::split(acceptor.accept(stream).await?);
        return shared.talk(reader, writer).await;
    }
    let (reader, writer) = stream.split();
    shared.talk(reader, writer).await
}

impl Shared {
    async fn talk(
        &self,
        reader: impl AsyncRead + Unpin,
        mut writer: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut requests = Messages::new(reader);
        while let Some((line, body)) = requests.next().await? {
            if line.starts_with(b"GET") {
                let answer = self.answer(&String::from_utf8_lossy(line)).to_string();
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n",
                    answer.len()
                );
                writer.write_all((head + &answer).as_bytes()).await?;
            } else {
                if !line.starts_with(OF_COLLECTOR) {
                    self.take(body).await;
                }
                writer.write_all(TAKEN).await?;
            }
            writer.flush().await?;
        }
        Ok(())
    }

    /// Takes an event, after a while if answers are held.
    async fn take(&self, body: &[u8]) {
        let resets = self.arrived.borrow().resets;
        if *self.is_held.borrow() {
            let mut is_held = self.is_held.subscribe();
            // Either it is released, or it was held for long enough.
            let _ = tokio::time::timeout(HELD_MAX, is_held.wait_for(|is_held| !is_held)).await;
        }
        let mut arrived = self.arrived.borrow_mut();
        if arrived.resets == resets {
            arrived.note(body);
        }
    }

    fn answer(&self, line: &str) -> Value {
        let mut arrived = self.arrived.borrow_mut();
        match line.split(' ').nth(1).unwrap_or_default() {
            "/reset" => arrived.reset(),
            "/took" => return arrived.took(),
            path @ ("/hold" | "/release") => {
                self.is_held.send_replace(path == "/hold");
            }
            _ => {}
        }
        arrived.count()
    }
}
