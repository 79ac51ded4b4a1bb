//! Idle connections, kept per link for the next request.

use std::collections::HashMap;
use std::mem::take;
use std::net::IpAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::Link;
use posthaste_ports::Clock;

use crate::connection::{HttpConnection, IdleOrder};
use crate::places::{SocketPlace, SocketPlaces};
use crate::settings::ClientSettings;

/// Time between checks of idle connections, so that a connection that its peer has closed does not
/// hold a file descriptor until the next request to it.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Part of all idle connections that is closed where one more would be too many. A search through
/// all of them finds the oldest, so each search closes several.
const CLOSED_PART: usize = 32;

/// Idle connections of all links.
pub(crate) struct ConnectionPool {
    per_link_max: usize,
    total_max: usize,
    kept: Duration,
    places: SocketPlaces,
    state: Mutex<PoolState>,
}

#[derive(Default)]
struct PoolState {
    /// The idle connections of each link, the one used last at the end.
    links: HashMap<Link, Vec<IdleConnection>>,
    total: usize,
    kept_ever: u64,
    is_swept: bool,
}

struct IdleConnection {
    connection: Box<HttpConnection>,
    since: Duration,
    /// The place in the order in which all became idle.
    place: IdleOrder,
}

impl ConnectionPool {
    pub(crate) fn new(settings: &ClientSettings) -> Self {
        Self {
            per_link_max: settings.idle_per_link_max,
            total_max: settings.idle_max,
            kept: settings.idle_kept,
            places: SocketPlaces::new(settings.connections_max),
            state: Mutex::default(),
        }
    }

    /// A place for a new connection. Where there is none, the connections that have been idle for
    /// longest are closed. `None` if all are in use.
    pub(crate) fn take_place(&self) -> Option<SocketPlace> {
        loop {
            if let Some(place) = self.places.take() {
                return Some(place);
            }
            let closed = {
                let mut state = self.state.lock();
                let part = state.total.div_ceil(CLOSED_PART);
                (part > 0).then(|| state.pop_oldest(part))
            };
            drop(closed?);
        }
    }

    /// The last used connection that is fit for a request that was validated for `addresses`, and
    /// the moment at which it was taken.
    pub(crate) fn take_idle(
        &self,
        link: &Link,
        addresses: &[IpAddr],
        now: Duration,
    ) -> Option<(Box<HttpConnection>, IdleOrder)> {
        loop {
            // A connection that is not fit is dropped, and so closed, outside the lock.
            let (mut idle, taken) = self.state.lock().pop(link)?;
            let is_young = now.saturating_sub(idle.since) < self.kept;
            if is_young
                && addresses.contains(&idle.connection.address)
                && idle.connection.is_usable()
            {
                return Some((idle.connection, taken));
            }
        }
    }

    /// Keeps a usable connection, unless its link has enough. Where there are too many in all, it
    /// closes those that have been idle for longest, as Go's `http.Transport` does.
    pub(crate) fn put_idle<C: Clock>(
        self: &Arc<Self>,
        link: Link,
        connection: Box<HttpConnection>,
        clock: &C,
    ) {
        let closed = {
            let mut state = self.state.lock();
            let of_link = state.links.get(&link).map_or(0, Vec::len);
            if self.total_max == 0 || of_link >= self.per_link_max {
                return;
            }
            let is_full = state.total >= self.total_max;
            let closed = if is_full {
                state.pop_oldest(self.total_max.div_ceil(CLOSED_PART))
            } else {
                vec![]
            };
            state.push(link, connection, clock.monotonic());
            if !state.is_swept {
                state.is_swept = true;
                tokio::spawn(sweep_pool(PoolSweeper(Arc::downgrade(self)), clock.clone()));
            }
            closed
        };
        drop(closed);
    }

    /// Closes the connections of a link that were idle at `taken` already: another of them was
    /// silent since.
    pub(crate) fn drop_idle_since_before(&self, link: &Link, taken: IdleOrder) {
        let closed = {
            let mut state = self.state.lock();
            let PoolState { links, total, .. } = &mut *state;
            let Some(idle) = links.get_mut(link) else {
                return;
            };
            let older = idle.partition_point(|idle| idle.place < taken);
            let closed: Vec<_> = idle.drain(..older).collect();
            if idle.is_empty() {
                links.remove(link);
            }
            *total -= closed.len();
            closed
        };
        drop(closed);
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

    /// Closes every idle connection and returns how many there were.
    pub(crate) fn trim(&self) -> usize {
        let (closed, links) = {
            let mut state = self.state.lock();
            (take(&mut state.total), take(&mut state.links))
        };
        drop(links);
        closed
    }

    /// The number of idle connections.
    pub(crate) fn idle_count(&self) -> usize {
        self.state.lock().total
    }

    /// Closes connections that are too old or were closed by the peer, and returns whether any are
    /// left to sweep.
    fn sweep_idle(&self, now: Duration) -> bool {
        let mut state = self.state.lock();
        for idle in state.links.values_mut() {
            idle.retain_mut(|idle| {
                now.saturating_sub(idle.since) < self.kept && idle.connection.is_usable()
            });
        }
        state.links.retain(|_, idle| !idle.is_empty());
        state.total = state.links.values().map(Vec::len).sum();
        // Under the same lock: a connection that comes next must start a sweeper of its own.
        state.is_swept = state.total > 0;
        state.is_swept
    }
}

impl PoolState {
    fn pop(&mut self, link: &Link) -> Option<(IdleConnection, IdleOrder)> {
        let idle = self.links.get_mut(link)?.pop()?;
        self.total -= 1;
        Some((idle, IdleOrder(self.kept_ever)))
    }

    fn push(&mut self, link: Link, connection: Box<HttpConnection>, since: Duration) {
        let place = IdleOrder(self.kept_ever);
        self.links.entry(link).or_default().push(IdleConnection {
            connection,
            since,
            place,
        });
        self.total += 1;
        self.kept_ever += 1;
    }

    /// Takes out the `count` connections that have been idle for longest, or all. There must be
    /// one.
    fn pop_oldest(&mut self, count: usize) -> Vec<IdleConnection> {
        let mut places: Vec<_> = self
            .links
            .values()
            .flatten()
            .map(|idle| idle.place)
            .collect();
        let index = count.min(places.len()) - 1;
        let last = *places.select_nth_unstable(index).1;
        let mut oldest = Vec::with_capacity(count);
        for idle in self.links.values_mut() {
            let old = idle.partition_point(|idle| idle.place <= last);
            oldest.extend(idle.drain(..old));
        }
        self.links.retain(|_, idle| !idle.is_empty());
        self.total -= oldest.len();
        oldest
    }
}

/// The task that sweeps a pool. When the end of its runtime cuts it short, the next connection
/// starts another.
struct PoolSweeper(Weak<ConnectionPool>);

impl Drop for PoolSweeper {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.state.lock().is_swept = false;
        }
    }
}

async fn sweep_pool<C: Clock>(mut sweeper: PoolSweeper, clock: C) {
    loop {
        clock.sleep(SWEEP_EVERY).await;
        let Some(pool) = sweeper.0.upgrade() else {
            return;
        };
        if !pool.sweep_idle(clock.monotonic()) {
            sweeper.0 = Weak::new();
            return;
        }
    }
}
