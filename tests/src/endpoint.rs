//! A subscriber's endpoint that answers as a script says, well or badly, and remembers what it
//! received.
//!
//! The server speaks HTTP/1.1 by hand, on threads: one that follows the rules could not misbehave.

mod connection;
mod received;
mod script;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

pub use received::Received;
pub use script::{Answer, Reply};
use script::{Choose, Shared};

/// An endpoint on a free port of 127.0.0.1. Its threads end with the test process.
#[derive(Debug)]
pub struct Endpoint {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Endpoint {
    /// Starts to listen. Paths without a script are answered with 204.
    pub fn start() -> Self {
        Self::sharing(Shared::default())
    }

    /// Starts to listen. Each answer is chosen by a function, which may rest before; nothing is
    /// remembered, so that it can go on for hours.
    pub fn choosing(choose: impl Fn(&Received) -> Answer + Send + Sync + 'static) -> Self {
        Self::sharing(Shared::choosing(Choose(Box::new(choose))))
    }

    fn sharing(shared: Shared) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(shared);
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shared = Arc::clone(&accepting);
                // A broken connection is what some tests are about.
                thread::spawn(move || connection::serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    /// A URL on this endpoint.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Scripts a path: one answer per request, and the last one for all that follow.
    pub fn script(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        self.shared.script(path, answers);
    }

    /// Scripts a path with statuses, and answers its URL.
    pub fn on(&self, path: &str, statuses: &[u16]) -> String {
        self.script(path, statuses.iter().copied().map(Answer::Status));
        self.url(path)
    }

    /// Lets all answers go that are [`Answer::HeldFiles`], now and later.
    pub fn open(&self) {
        self.shared.opened.push(());
    }

    /// Requests that a path has received until now, in order.
    pub fn received(&self, path: &str) -> Vec<Received> {
        self.shared
            .received
            .all()
            .into_iter()
            .filter(|request| request.path == path)
            .collect()
    }

    /// Everything that was received until now, in order.
    pub fn all(&self) -> Vec<Received> {
        self.shared.received.all()
    }

    /// Requests received after the first `count`.
    pub fn since(&self, count: usize) -> Vec<Received> {
        self.shared.received.since(count)
    }

    /// Waits until a path has received this number of requests, and answers them.
    pub fn wait_for(&self, path: &str, count: usize) -> Vec<Received> {
        self.shared
            .received
            .wait_for(&format!("{count} requests to {path}"), |all| {
                let of_path = || all.iter().filter(|request| request.path == path);
                (of_path().count() >= count).then(|| of_path().cloned().collect())
            })
    }

    /// Waits for the first request to a path.
    pub fn wait_for_one(&self, path: &str) -> Received {
        self.wait_for(path, 1).swap_remove(0)
    }
}

/// A URL on 127.0.0.1 without a listener.
pub fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it is bound");
    drop(listener);
    format!("http://{address}/nobody")
}
