//! The places that connections take, and which of them goes when there are too many. A connection that has not sent a
//! request costs its client nothing, so it never keeps another one out.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use posthaste_ports::Clock;
use tokio::sync::Notify;

/// Most ordinary requests at once, if nothing else is said.
const REQUESTS_MAX: usize = 4096;

/// Places beyond those of ordinary requests: for health checks, for metrics, and for whoever has the admin key.
pub const OPERATORS_MAX: usize = 64;

/// A connection counts as silent when it has not sent the head of a request for so long. A burst of connections that speak
/// at once is not cut short, however busy this machine is.
const SILENT_AFTER: Duration = Duration::from_secs(1);

/// How long a connection has for the head of its first request.
pub(super) const FIRST_HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// Most silent connections of one address, but for proxies that are trusted.
const SILENT_PER_ADDRESS_MAX: usize = 64;

/// Counts connections that were closed for the sake of others, or because they said nothing.
const CUT_COUNT: &str = "ConnectionCutCount";

/// How many connections there may be.
#[derive(Debug, Clone)]
pub struct ConnectionLimits {
    /// Most ordinary requests at once. There may be a few more connections, for those who operate the server.
    pub requests_max: usize,
    /// Addresses of proxies: they have the connections of many clients.
    pub trusted_proxies: Vec<IpNet>,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self { requests_max: REQUESTS_MAX, trusted_proxies: Vec::new() }
    }
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// All places are taken, or all file descriptors.
    Full,
    /// Its address has too many silent ones.
    Address,
    /// The head of its first request did not come in time.
    Head,
}

impl Cut {
    fn count(self) {
        let reason = match self {
            Self::Full => "full",
            Self::Address => "address",
            Self::Head => "head",
        };
        metrics::counter!(CUT_COUNT, "reason" => reason).increment(1);
    }
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It has just come, and has sent no request.
    New,
    /// It still has sent none.
    Silent,
    /// It has sent a request, and it is being answered.
    Busy { is_operators: bool },
    /// It may send another one.
    Idle,
}

/// What a connection is told.
#[derive(Debug, Default)]
struct Signals {
    cut: Notify,
    /// Its first request has come.
    spoke: Notify,
}

#[derive(Debug)]
struct Connection {
    /// Where it comes from, or nowhere for a trusted proxy.
    from: Option<IpAddr>,
    state: State,
    /// When it came to this state, in turns of the table.
    since: u64,
    signals: Arc<Signals>,
}

/// Every connection by its number.
#[derive(Debug, Default)]
struct Table {
    connections: BTreeMap<u64, Connection>,
    turn: u64,
    /// How many ordinary requests are being answered.
    ordinary: usize,
}

impl Table {
    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Takes a connection in. With `max` there already the one goes that has been silent for longest, else the one that
    /// has waited longest for its next request; nobody comes in where all are being answered.
    fn admit(&mut self, from: Option<IpAddr>, max: usize) -> Option<(u64, Arc<Signals>, Option<Cut>)> {
        let is_full = self.connections.len() >= max;
        if is_full {
            self.make_room()?;
        }
        let (id, signals) = (self.next_turn(), Arc::new(Signals::default()));
        let connection = Connection { from, state: State::New, since: id, signals: Arc::clone(&signals) };
        self.connections.insert(id, connection);
        Some((id, signals, is_full.then_some(Cut::Full)))
    }

    /// Closes the connection that can go best; `None` where all are being answered.
    fn make_room(&mut self) -> Option<Cut> {
        let waiting = |state| match state {
            State::New | State::Silent => Some(0),
            State::Idle => Some(1),
            State::Busy { .. } => None,
        };
        let rank = |(id, it): (&u64, &Connection)| waiting(it.state).map(|rank| (rank, it.since, *id));
        let (_, _, victim) = self.connections.iter().filter_map(rank).min()?;
        self.cut(victim);
        Some(Cut::Full)
    }

    fn cut(&mut self, id: u64) {
        if let Some(connection) = self.connections.remove(&id) {
            connection.signals.cut.notify_one();
        }
    }

    /// Notes that a connection has said nothing yet. With too many such of its address the oldest of them goes.
    fn turn_silent(&mut self, id: u64) -> Option<Cut> {
        let connection = self.connections.get_mut(&id).filter(|it| it.state == State::New)?;
        connection.state = State::Silent;
        let from = connection.from?;
        let is_like = |it: &Connection| it.state == State::Silent && it.from == Some(from);
        let mut alike = self.connections.iter().filter(|(_, it)| is_like(it)).map(|(id, _)| *id);
        let oldest = alike.next()?;
        if alike.count() < SILENT_PER_ADDRESS_MAX {
            return None;
        }
        self.cut(oldest);
        Some(Cut::Address)
    }

    /// Begins to answer a request; whether there is a place for it.
    fn begin(&mut self, id: u64, is_operators: bool, max: usize) -> bool {
        let since = self.next_turn();
        let Some(connection) = self.connections.get_mut(&id) else { return false };
        connection.signals.spoke.notify_one();
        let has_place = is_operators || self.ordinary < max;
        connection.state = if has_place { State::Busy { is_operators } } else { State::Idle };
        connection.since = since;
        self.ordinary += usize::from(has_place && !is_operators);
        has_place
    }

    fn end(&mut self, id: u64) {
        let since = self.next_turn();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        if let State::Busy { is_operators } = connection.state {
            (connection.state, connection.since) = (State::Idle, since);
            self.ordinary -= usize::from(!is_operators);
        }
    }

    fn leave(&mut self, id: u64) {
        self.end(id);
        self.connections.remove(&id);
    }
}

/// All places of a server.
#[derive(Debug)]
pub(super) struct Places {
    limits: ConnectionLimits,
    table: Mutex<Table>,
    /// A connection has ended, or a request was answered.
    pub(super) freed: Notify,
}

impl Places {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default(), freed: Notify::new() })
    }

    /// A place for a connection. Waits only while every connection is being answered.
    pub(super) async fn take(self: &Arc<Self>, address: IpAddr) -> Place {
        let from = (!self.is_trusted(address)).then(|| network(address));
        let max = self.limits.requests_max.saturating_add(OPERATORS_MAX);
        loop {
            let admitted = self.table().admit(from, max);
            if let Some((id, signals, cut)) = admitted {
                cut.into_iter().for_each(Cut::count);
                return Place { places: Arc::clone(self), id, signals };
            }
            self.freed.notified().await;
        }
    }

    /// Closes a connection because there are no file descriptors left. Whether there was one that can go.
    pub(super) fn make_room(&self) -> bool {
        let cut = self.table().make_room();
        cut.inspect(|cut| cut.count()).is_some()
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.limits.trusted_proxies.iter().any(|proxies| proxies.contains(&address.to_canonical()))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What counts as one address: with IPv6 a whole /64, which is what one subscriber has.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// The place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    id: u64,
    signals: Arc<Signals>,
}

impl Place {
    /// Completes when the connection is to be closed.
    pub(super) async fn cut<C: Clock>(&self, clock: &C) {
        tokio::select! {
            () = self.signals.cut.notified() => {}
            () = self.silence(clock) => Cut::Head.count(),
        }
    }

    /// Completes when the first request has not come in time.
    async fn silence<C: Clock>(&self, clock: &C) {
        let timers = async {
            clock.sleep(SILENT_AFTER).await;
            let cut = self.places.table().turn_silent(self.id);
            cut.into_iter().for_each(Cut::count);
            clock.sleep(FIRST_HEAD_TIMEOUT.saturating_sub(SILENT_AFTER)).await;
        };
        tokio::select! {
            biased;
            () = self.signals.spoke.notified() => std::future::pending().await,
            () = timers => {}
        }
    }

    /// A request that is being answered until what is returned is dropped; nothing where all places for requests are
    /// taken. Those of operators always have one.
    pub(super) fn begin(self: &Arc<Self>, is_operators: bool) -> Option<Answering> {
        let has_place = self.places.table().begin(self.id, is_operators, self.places.limits.requests_max);
        has_place.then(|| Answering(Arc::clone(self)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.table().leave(self.id);
        self.places.freed.notify_one();
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(super) struct Answering(Arc<Place>);

impl Drop for Answering {
    fn drop(&mut self) {
        self.0.places.table().end(self.0.id);
        self.0.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests;
