//! All endpoints from within: one thread, a listener for each host and port, and one for questions.

use std::cell::RefCell;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use crate::arrived::Arrived;
use crate::endpoints::{Addresses, HUNDREDTH_PATH, LINKS};
use crate::fault::Fault;
use crate::wire::Messages;

/// Time for which an endpoint that flaps is down, and then up.
const FLAP: Duration = Duration::from_secs(4);

/// An address of its own, so that no other program gets the hundredth's port while it does not
/// listen.
const HUNDREDTH: &str = "127.0.0.100:0";

const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";

/// The state that all connections share.
#[derive(Debug, Clone)]
struct Shared {
    arrived: Rc<RefCell<Arrived>>,
    fault: watch::Sender<Fault>,
    /// Whether the hundredth endpoint listens.
    is_up: watch::Sender<bool>,
}

/// Serves for ever.
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "the parent reads where they listen"
)]
pub(crate) fn serve() {
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    let fault = watch::Sender::new(Fault::Nothing);
    let is_up = watch::Sender::new(true);
    let shared = Shared {
        arrived: Rc::default(),
        fault,
        is_up,
    };
    LocalSet::new().block_on(&runtime, async {
        let mut listeners = Vec::new();
        for _ in 0..=LINKS {
            listeners.push(bind("127.0.0.1:0").await);
        }
        let hundredth = bind(HUNDREDTH).await;
        let addresses: Vec<_> = listeners.iter().map(address).collect();
        let (control, healthy) = addresses.split_first().expect("there is one for questions");
        let addresses = Addresses {
            control: *control,
            healthy: healthy.to_vec(),
            hundredth: address(&hundredth),
        };
        println!(
            "{}",
            serde_json::to_string(&addresses).expect("addresses are JSON")
        );
        io::stdout().flush().expect("the parent reads");
        for listener in listeners {
            spawn_local(accept(listener, shared.clone()));
        }
        spawn_local(flap(shared.clone()));
        come_and_go(hundredth, shared).await;
    });
}

fn path(line: &str) -> &str {
    line.split(' ').nth(1).unwrap_or_default()
}

async fn bind(address: &str) -> TcpListener {
    TcpListener::bind(address)
        .await
        .expect("there is a free port")
}

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().expect("it is bound")
}

async fn accept(listener: TcpListener, shared: Shared) {
    while let Ok((stream, _)) = listener.accept().await {
        spawn_local(connection(stream, shared.clone()));
    }
}

/// The hundredth's listener, which is there while it is up. Its connections break when it goes.
async fn come_and_go(mut listener: TcpListener, shared: Shared) {
    let address = address(&listener);
    loop {
        let connections = LocalSet::new();
        let accepting = accept(listener, shared.clone());
        let mut is_up = shared.is_up.subscribe();
        tokio::select! {
            () = connections.run_until(accepting) => return,
            down = is_up.wait_for(|is_up| !is_up) => drop(down.expect("it is shared")),
        }
        drop(connections);
        is_up.wait_for(|is_up| *is_up).await.expect("it is shared");
        listener = bind(&address.to_string()).await;
    }
}

/// Goes by the fault, and down and up while it flaps.
async fn flap(shared: Shared) {
    let mut fault = shared.fault.subscribe();
    loop {
        let now = *fault.borrow_and_update();
        shared.is_up.send_modify(|is_up| {
            *is_up = if now == Fault::Flaps {
                !*is_up
            } else {
                now != Fault::Refuses
            };
        });
        let until = if now == Fault::Flaps {
            FLAP
        } else {
            Duration::MAX
        };
        // Either it is time, or there is another fault.
        let _ = tokio::time::timeout(until, fault.changed()).await;
    }
}

async fn connection(mut stream: TcpStream, shared: Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (reader, mut writer) = stream.split();
    let mut requests = Messages::new(reader);
    while let Some((line, body)) = requests.next().await? {
        if shared.is_slow(line) {
            rest(Fault::SLOW).await;
        }
        // Without an answer it reads on, until the other side has waited long enough.
        if let Some(answer) = shared.answer(&String::from_utf8_lossy(line), body) {
            writer.write_all(&answer).await?;
        }
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a slow endpoint is slow in real time"
)]
async fn rest(length: Duration) {
    tokio::time::sleep(length).await;
}

impl Shared {
    fn is_slow(&self, line: &[u8]) -> bool {
        *self.fault.borrow() == Fault::Slow
            && path(&String::from_utf8_lossy(line)) == HUNDREDTH_PATH
    }

    fn answer(&self, line: &str, body: &[u8]) -> Option<Vec<u8>> {
        let path = path(line);
        let mut arrived = self.arrived.borrow_mut();
        if let Some(fault) = path.strip_prefix("/turn/") {
            self.fault.send_replace(Fault::parse(fault)?);
        } else if path == "/reset" {
            *arrived = Arrived::default();
        } else if path == "/seen" {
            let seen = serde_json::to_string(&arrived.seen()).expect("it is JSON");
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", seen.len());
            return Some((head + &seen).into_bytes());
        } else if path == HUNDREDTH_PATH {
            return match *self.fault.borrow() {
                Fault::Hangs => None,
                Fault::Busy => Some(BUSY.to_vec()),
                Fault::Nothing | Fault::Refuses | Fault::Slow | Fault::Flaps => {
                    arrived.take();
                    Some(TAKEN.to_vec())
                }
            };
        } else {
            let subscription = path
                .strip_prefix("/s")
                .and_then(|number| number.parse().ok());
            arrived.note(subscription.expect("a path of ours"), body);
            return Some(TAKEN.to_vec());
        }
        Some(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_vec())
    }
}
