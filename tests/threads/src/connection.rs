//! In place of connections: what the pool asks of them.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::places::SocketPlace;

/// A moment in the order in which a pool's connections became idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct IdleOrder(pub(crate) u64);

/// A connection that is open until it is dropped.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    pub(crate) address: IpAddr,
    open: Arc<AtomicUsize>,
    _place: SocketPlace,
}

impl HttpConnection {
    pub(crate) fn open(address: IpAddr, open: &Arc<AtomicUsize>, place: SocketPlace) -> Self {
        open.fetch_add(1, Ordering::SeqCst);
        Self {
            address,
            open: Arc::clone(open),
            _place: place,
        }
    }

    #[expect(
        clippy::unused_self,
        reason = "a connection of the product looks at itself"
    )]
    pub(crate) fn is_usable(&mut self) -> bool {
        true
    }
}

impl Drop for HttpConnection {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::SeqCst);
    }
}
