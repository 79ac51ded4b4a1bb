//! Idle connections, kept per link for the next request.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::Link;
use posthaste_ports::Clock;

use crate::connection::Connection;
use crate::settings::ClientSettings;

/// Time between checks of idle connections, so that a connection that its peer has closed does not hold a
/// file descriptor until the next request to it.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Idle connections of all links.
pub(crate) struct Pool {
    per_link_max: usize,
    total_max: usize,
    kept: Duration,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    links: HashMap<Link, Vec<Idle>>,
    total: usize,
    is_swept: bool,
}

struct Idle {
    connection: Box<Connection>,
    since: Duration,
}

impl Pool {
    pub(crate) fn new(settings: &ClientSettings) -> Self {
        Self {
            per_link_max: settings.idle_per_link_max,
            total_max: settings.idle_max,
            kept: settings.idle_kept,
            state: Mutex::default(),
        }
    }

    /// The last used connection that is fit for a request that was validated for `addresses`.
    pub(crate) fn take(&self, link: &Link, addresses: &[IpAddr], now: Duration) -> Option<Box<Connection>> {
        loop {
            // A connection that is not fit is dropped, and so closed, outside the lock.
            let mut idle = self.state.lock().pop(link)?;
            let is_young = now.saturating_sub(idle.since) < self.kept;
            if is_young && addresses.contains(&idle.connection.address) && idle.connection.is_usable() {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a usable connection, or closes it where there are enough.
    pub(crate) fn put<C: Clock>(self: &Arc<Self>, link: Link, connection: Box<Connection>, clock: &C) {
        let mut state = self.state.lock();
        if state.total >= self.total_max || self.per_link_max == 0 {
            return;
        }
        let idle = state.links.entry(link).or_default();
        if idle.len() >= self.per_link_max {
            return;
        }
        idle.push(Idle { connection, since: clock.monotonic() });
        state.total += 1;
        if !state.is_swept {
            state.is_swept = true;
            tokio::spawn(sweep(Sweeper(Arc::downgrade(self)), clock.clone()));
        }
    }

    /// Closes the idle connections of one link.
    pub(crate) fn drop_link(&self, link: &Link) {
        let closed = {
            let mut state = self.state.lock();
            let closed = state.links.remove(link).unwrap_or_default();
            state.total -= closed.len();
            closed
        };
        drop(closed);
    }

    /// Closes every idle connection and answers how many there were.
    pub(crate) fn trim(&self) -> usize {
        let (closed, links) = {
            let mut state = self.state.lock();
            (std::mem::take(&mut state.total), std::mem::take(&mut state.links))
        };
        drop(links);
        closed
    }

    /// The number of idle connections.
    pub(crate) fn idle(&self) -> usize {
        self.state.lock().total
    }

    /// Closes what is too old, or was closed by the peer, and answers whether anything is left to sweep.
    fn sweep(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        for idle in state.links.values_mut() {
            idle.retain_mut(|idle| now.saturating_sub(idle.since) < self.kept && idle.connection.is_usable());
        }
        state.links.retain(|_, idle| !idle.is_empty());
        state.total = state.links.values().map(Vec::len).sum();
        // Under the same lock: a connection that comes next must start a sweeper of its own.
        state.is_swept = state.total > 0;
        state.is_swept
    }
}

impl State {
    fn pop(&mut self, link: &Link) -> Option<Idle> {
        let idle = self.links.get_mut(link)?.pop()?;
        self.total -= 1;
        Some(idle)
    }
}

/// The task that sweeps a pool. When the end of its runtime cuts it short, the next connection starts
/// another.
struct Sweeper(Weak<Pool>);

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.state.lock().is_swept = false;
        }
    }
}

async fn sweep<C: Clock>(mut sweeper: Sweeper, clock: C) {
    loop {
        clock.sleep(SWEEP_EVERY).await;
        let Some(pool) = sweeper.0.upgrade() else { return };
        if !pool.sweep(clock.monotonic()) {
            sweeper.0 = Weak::new();
            return;
        }
    }
}
