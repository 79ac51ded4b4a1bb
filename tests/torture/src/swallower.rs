//! A host that swallows packets: a connection to it is neither accepted nor refused.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// The address of this machine that swallows them.
pub(crate) const SWALLOWS: &str = "127.0.0.8";

/// The system drops a request to connect while this many wait to be accepted; std asks for 128.
const WAITING_MAX: usize = 4096;

/// A connection on this machine is made sooner, also while it is busy.
const SOON: Duration = Duration::from_millis(200);

/// Listens and accepts nothing. Its queue of connections is full, so that requests for more are
/// dropped.
pub(crate) struct Swallower {
    _listener: TcpListener,
    _waiting: Vec<TcpStream>,
}

impl Swallower {
    /// On this port, at its own address.
    pub(crate) fn on(port: u16) -> Self {
        let listener = TcpListener::bind((SWALLOWS, port)).expect("the port is free there");
        let address: SocketAddr = listener.local_addr().expect("it is bound");
        let connect = || TcpStream::connect_timeout(&address, SOON).ok();
        let waiting: Vec<_> = std::iter::from_fn(connect).take(WAITING_MAX).collect();
        assert!(waiting.len() < WAITING_MAX, "the queue is never full");
        Self {
            _listener: listener,
            _waiting: waiting,
        }
    }
}
