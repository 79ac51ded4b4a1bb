//! The places that connections take, and the choice of the one to close when there are too many. A
//! connection that has not sent a request costs its client nothing, and neither does one that does
//! not read its answer, so neither keeps another one out.

mod table;

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_ports::Clock;
use tokio::sync::Notify;

use self::table::{ConnectionSignals, ConnectionTable, CutReason};
use super::limits::{ConnectionLimits, OPERATORS_MAX};

/// Time after which a connection without the head of a request counts as silent. It is long enough
/// for a burst of connections that all send a request, however busy this machine is.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// Longest wait for the head of a connection's first request.
pub(super) const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// All places of a server.
#[derive(Debug)]
pub(super) struct ClientPlaces {
    limits: ConnectionLimits,
    table: Mutex<ConnectionTable>,
    /// A connection has ended, or a request was answered.
    pub(super) freed: Notify,
}

impl ClientPlaces {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            table: Mutex::default(),
            freed: Notify::new(),
        })
    }

    /// A place for a connection. Waits only while every connection is being answered and its client
    /// reads.
    pub(super) async fn take_place(self: &Arc<Self>, address: IpAddr) -> ClientPlace {
        let from = (!self.is_trusted(address)).then(|| client_network(address));
        let max = self.limits.requests_max.saturating_add(OPERATORS_MAX);
        loop {
            let admitted = self.table.lock().admit(from, max);
            if let Some((id, signals, cut)) = admitted {
                cut.into_iter().for_each(CutReason::count_cut);
                return ClientPlace {
                    places: Arc::clone(self),
                    id,
                    address: address.to_canonical(),
                    signals,
                };
            }
            self.freed.notified().await;
        }
    }

    /// Closes a connection because there are no file descriptors left. Returns false if there is
    /// none to close.
    pub(super) fn make_room(&self) -> bool {
        let cut = self.table.lock().make_room();
        cut.inspect(|cut| cut.count_cut()).is_some()
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.limits
            .trusted_proxies
            .iter()
            .any(|proxies| proxies.contains(&address.to_canonical()))
    }
}

/// The network of one subscriber: an IPv4 address, or a whole /64 of IPv6.
fn client_network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct ClientPlace {
    places: Arc<ClientPlaces>,
    id: u64,
    /// The address of the other end.
    pub(super) address: IpAddr,
    signals: Arc<ConnectionSignals>,
}

impl ClientPlace {
    /// Completes when the connection is to be closed.
    pub(super) async fn wait_for_cut<C: Clock>(&self, clock: &C) {
        tokio::select! {
            () = self.signals.cut.notified() => {}
            () = self.wait_for_silence(clock) => CutReason::Head.count_cut(),
        }
    }

    /// Completes if the first request has not come in time.
    async fn wait_for_silence<C: Clock>(&self, clock: &C) {
        let timers = async {
            clock.sleep(SILENT_AFTER).await;
            let cut = self.places.table.lock().turn_silent(self.id);
            cut.into_iter().for_each(CutReason::count_cut);
            clock
                .sleep(FIRST_HEAD_TIMEOUT.saturating_sub(SILENT_AFTER))
                .await;
        };
        tokio::select! {
            biased;
            () = self.signals.spoke.notified() => std::future::pending().await,
            () = timers => {}
        }
    }

    /// Marks a request as being answered, until the result is dropped. `None` if all places for
    /// requests are taken. Requests of operators always have a place.
    pub(super) fn begin_request(self: &Arc<Self>, is_operators: bool) -> Option<AnsweringRequest> {
        let (has_place, cut) = self.places.table.lock().begin_request(
            self.id,
            is_operators,
            self.places.limits.requests_max,
        );
        cut.into_iter().for_each(CutReason::count_cut);
        has_place.then(|| AnsweringRequest(Arc::clone(self)))
    }

    /// Marks an answer as not read by its client, until the result is dropped. The connection may
    /// be closed for another one.
    pub(super) fn mark_stalled(self: &Arc<Self>) -> StalledResponse {
        self.places.table.lock().set_stalled(self.id, true);
        self.places.freed.notify_one();
        StalledResponse(Arc::clone(self))
    }

    /// Counts a connection that is closed because its client reads nothing.
    pub(super) fn count_unread() {
        CutReason::Unread.count_cut();
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        self.places.table.lock().remove_connection(self.id);
        self.places.freed.notify_one();
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct AnsweringRequest(Arc<ClientPlace>);

impl Drop for AnsweringRequest {
    fn drop(&mut self) {
        self.0.places.table.lock().end_request(self.0.id);
        self.0.places.freed.notify_one();
    }
}

/// An answer that its client does not read.
#[derive(Debug)]
pub(super) struct StalledResponse(Arc<ClientPlace>);

impl Drop for StalledResponse {
    fn drop(&mut self) {
        self.0.places.table.lock().set_stalled(self.0.id, false);
    }
}

#[cfg(test)]
mod tests;
