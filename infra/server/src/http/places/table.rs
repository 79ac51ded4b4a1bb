//! Every connection and its state: which one is accepted, and which one is closed for it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::Notify;

/// Most silent connections of one address, except for trusted proxies.
pub(super) const SILENT_PER_ADDRESS_MAX: usize = 64;

/// Metric: connections that were closed for others, or because they sent or read nothing.
const CUT_COUNT: &str = "ConnectionCutCount";

/// Reason for closing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutReason {
    /// All places are taken, or all file descriptors.
    Full,
    /// Too many connections of the same address are silent.
    Address,
    /// The head of its first request did not come in time.
    Head,
    /// The client read nothing of an answer for too long.
    Unread,
}

impl CutReason {
    pub(super) fn count_cut(self) {
        let reason = match self {
            Self::Full => "full",
            Self::Address => "address",
            Self::Head => "head",
            Self::Unread => "unread",
        };
        metrics::counter!(CUT_COUNT, "reason" => reason).increment(1);
    }
}

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// New, without a request.
    New,
    /// Silent: no request in time.
    Silent,
    /// Being answered.
    Busy { is_operators: bool },
    /// Answered; another request may come.
    Idle,
}

/// The signals to and from a connection.
#[derive(Debug, Default)]
pub(super) struct ConnectionSignals {
    pub(super) cut: Notify,
    /// The first request has come.
    pub(super) spoke: Notify,
}

#[derive(Debug)]
pub(super) struct TrackedConnection {
    /// Source address; `None` for a trusted proxy.
    pub(super) from: Option<IpAddr>,
    pub(super) state: ConnectionState,
    /// True while the client does not read what is written.
    is_stalled: bool,
    /// Time of the last change of state, in turns of the table.
    since: u64,
    signals: Arc<ConnectionSignals>,
}

impl TrackedConnection {
    /// The rank among those that may be closed for another one: the least goes first. `None` if it
    /// is being answered and read.
    fn rank_for_end(&self) -> Option<u8> {
        match self.state {
            ConnectionState::New | ConnectionState::Silent => Some(0),
            ConnectionState::Idle => Some(1),
            ConnectionState::Busy { .. } => self.is_stalled.then_some(2),
        }
    }
}

/// Every connection by its number.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    pub(super) connections: BTreeMap<u64, TrackedConnection>,
    turn: u64,
    /// Number of ordinary requests that are being answered.
    pub(super) ordinary: usize,
}

impl ConnectionTable {
    fn next_turn(&mut self) -> u64 {
        self.turn += 1;
        self.turn
    }

    /// Accepts a connection. If there are `max` already, one is closed: the one that has been
    /// silent for longest, else the one that has waited longest for its next request, else the
    /// oldest whose answer is not read. Returns `None` while all are being answered and read.
    pub(super) fn admit(
        &mut self,
        from: Option<IpAddr>,
        max: usize,
    ) -> Option<(u64, Arc<ConnectionSignals>, Option<CutReason>)> {
        let is_full = self.connections.len() >= max;
        if is_full {
            self.make_room()?;
        }
        let id = self.next_turn();
        let signals = Arc::new(ConnectionSignals::default());
        let connection = TrackedConnection {
            from,
            state: ConnectionState::New,
            is_stalled: false,
            since: id,
            signals: Arc::clone(&signals),
        };
        self.connections.insert(id, connection);
        Some((id, signals, is_full.then_some(CutReason::Full)))
    }

    /// Closes the connection whose end does least harm. Returns `None` if all are being answered
    /// and read.
    pub(super) fn make_room(&mut self) -> Option<CutReason> {
        let ranked = self
            .connections
            .iter()
            .filter_map(|(id, it)| Some((it.rank_for_end()?, it.since, *id)));
        let (_, _, victim) = ranked.min()?;
        self.cut_connection(victim);
        Some(CutReason::Full)
    }

    fn cut_connection(&mut self, id: u64) {
        let Some(connection) = self.connections.remove(&id) else {
            return;
        };
        connection.signals.cut.notify_one();
        self.free_place(connection.state);
    }

    /// Records that a connection has sent nothing yet. With too many such of its address, the
    /// oldest of them is closed.
    pub(super) fn turn_silent(&mut self, id: u64) -> Option<CutReason> {
        let connection = self
            .connections
            .get_mut(&id)
            .filter(|it| it.state == ConnectionState::New)?;
        connection.state = ConnectionState::Silent;
        let from = connection.from?;
        let mut alike = self
            .connections
            .iter()
            .filter(|(_, it)| it.state == ConnectionState::Silent && it.from == Some(from))
            .map(|(id, _)| *id);
        let oldest = alike.next()?;
        if alike.count() < SILENT_PER_ADDRESS_MAX {
            return None;
        }
        self.cut_connection(oldest);
        Some(CutReason::Address)
    }

    /// Starts to answer a request. Returns false if there is no place for it. If there are `max`
    /// ordinary ones already, the oldest whose answer is not read is closed.
    pub(super) fn begin_request(
        &mut self,
        id: u64,
        is_operators: bool,
        max: usize,
    ) -> (bool, Option<CutReason>) {
        let since = self.next_turn();
        let Some(connection) = self.connections.get_mut(&id) else {
            return (false, None);
        };
        connection.signals.spoke.notify_one();
        connection.state = ConnectionState::Idle;
        connection.since = since;
        let is_crowded = !is_operators && self.ordinary >= max;
        let cut = if is_crowded { self.end_unread() } else { None };
        let has_place = !is_crowded || cut.is_some();
        // The connection that was closed is another one: this one is not `Busy` yet.
        if let Some(connection) = self.connections.get_mut(&id).filter(|_| has_place) {
            connection.state = ConnectionState::Busy { is_operators };
            self.ordinary += usize::from(!is_operators);
        }
        (has_place, cut)
    }

    /// Closes the oldest ordinary connection whose answer is not read, if there is one.
    fn end_unread(&mut self) -> Option<CutReason> {
        let ordinary = ConnectionState::Busy {
            is_operators: false,
        };
        let unread = self
            .connections
            .iter()
            .filter(|(_, it)| it.is_stalled && it.state == ordinary);
        let (_, victim) = unread.map(|(id, it)| (it.since, *id)).min()?;
        self.cut_connection(victim);
        Some(CutReason::Full)
    }

    pub(super) fn set_stalled(&mut self, id: u64, is_now: bool) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.is_stalled = is_now;
        }
    }

    pub(super) fn end_request(&mut self, id: u64) {
        let since = self.next_turn();
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let state = connection.state;
        if let ConnectionState::Busy { .. } = state {
            connection.state = ConnectionState::Idle;
            connection.since = since;
            self.free_place(state);
        }
    }

    /// Gives back the place for requests that a connection in this state had.
    fn free_place(&mut self, state: ConnectionState) {
        if let ConnectionState::Busy {
            is_operators: false,
        } = state
        {
            self.ordinary -= 1;
        }
    }

    pub(super) fn remove_connection(&mut self, id: u64) {
        self.end_request(id);
        self.connections.remove(&id);
    }
}
