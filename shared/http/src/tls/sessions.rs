//! TLS sessions, kept for the next connection to their host.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// Most hosts whose sessions are kept. A full handshake costs some 400 µs of CPU, a resumed one a
/// fraction; a user of webhooks has many hosts with few events each. rustls' own store keeps an
/// eighth of the number that it is given, and forgets the oldest host first: with one host more
/// than it has room for, and an event for each in turn, no session is found again.
pub(super) const SESSION_HOSTS_MAX: usize = 10_000;

/// Most tickets that are kept of one host. Each resumes one connection, and common servers send
/// two after a full handshake. A ticket holds the certificates of its server, so it has a few
/// kilobytes; TLS bounds the ticket itself and, in rustls, the certificates at 64 KiB each.
pub(super) const TICKETS_PER_HOST_MAX: usize = 2;

/// Sessions by host. Where there are too many hosts, one by chance makes room. The oldest is the
/// next one that is needed where hosts come in turn.
pub(super) struct TlsSessions {
    hosts_max: usize,
    state: Mutex<SessionsState>,
}

#[derive(Default)]
struct SessionsState {
    hosts: HashMap<ServerName<'static>, HostSessions>,
    /// The names of all hosts, in no order.
    names: Vec<ServerName<'static>>,
    chance: u64,
}

struct HostSessions {
    /// The place of the host in `names`.
    place: usize,
    group: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// The newest last.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

impl TlsSessions {
    pub(super) fn new(hosts_max: usize) -> Arc<Self> {
        Arc::new(Self {
            hosts_max,
            state: Mutex::default(),
        })
    }

    /// Forgets all sessions, and returns the number of hosts that had some.
    pub(super) fn forget_all(&self) -> usize {
        let SessionsState { hosts, names, .. } = std::mem::take(&mut *self.state.lock());
        drop(names);
        hosts.len()
    }

    /// Changes the sessions of a host, which becomes known by it.
    fn change_host(&self, name: ServerName<'static>, change: impl FnOnce(&mut HostSessions)) {
        let forgotten = self.state.lock().change_host(name, self.hosts_max, change);
        // Sessions are large, and wiped when they are dropped.
        drop(forgotten);
    }
}

impl SessionsState {
    fn change_host(
        &mut self,
        name: ServerName<'static>,
        hosts_max: usize,
        change: impl FnOnce(&mut HostSessions),
    ) -> Option<HostSessions> {
        if let Some(kept) = self.hosts.get_mut(&name) {
            change(kept);
            return None;
        }
        let forgotten = if self.hosts.len() >= hosts_max {
            self.forget_one()
        } else {
            None
        };
        let mut kept = HostSessions {
            place: self.names.len(),
            group: None,
            tls12: None,
            tls13: VecDeque::new(),
        };
        change(&mut kept);
        self.names.push(name.clone());
        self.hosts.insert(name, kept);
        forgotten
    }

    /// Forgets a host by chance.
    fn forget_one(&mut self) -> Option<HostSessions> {
        // Splitmix (Steele, Lea and Flood, 2014). Guessing it has no use.
        self.chance = self.chance.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.chance ^ (self.chance >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let count = self.names.len() as u64;
        let place = usize::try_from((mixed ^ (mixed >> 31)).checked_rem(count)?).ok()?;
        let name = self.names.swap_remove(place);
        if let Some(moved) = self.names.get(place)
            && let Some(kept) = self.hosts.get_mut(moved)
        {
            kept.place = place;
        }
        self.hosts.remove(&name)
    }
}

impl ClientSessionStore for TlsSessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.change_host(name, |kept| kept.group = Some(group));
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.state.lock().hosts.get(&name.to_owned())?.group
    }

    fn set_tls12_session(&self, name: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.change_host(name, |kept| kept.tls12 = Some(session));
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.state.lock().hosts.get(&name.to_owned())?.tls12.clone()
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        if let Some(kept) = self.state.lock().hosts.get_mut(name) {
            kept.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        self.change_host(name, |kept| {
            if kept.tls13.len() >= TICKETS_PER_HOST_MAX {
                kept.tls13.pop_front();
            }
            kept.tls13.push_back(ticket);
        });
    }

    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.state.lock().hosts.get_mut(name)?.tls13.pop_back()
    }
}

impl fmt::Debug for TlsSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = self.state.lock().hosts.len();
        f.debug_struct("Sessions")
            .field("hosts", &hosts)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(number: usize) -> ServerName<'static> {
        format!("h{number}.example").try_into().unwrap()
    }

    /// The number of hosts that were still known when their turn came, for each round.
    fn known_in_rounds<const ROUNDS: usize>(hosts: usize, hosts_max: usize) -> [usize; ROUNDS] {
        let sessions = TlsSessions::new(hosts_max);
        std::array::from_fn(|_| {
            let mut known = 0;
            for number in 0..hosts {
                // As rustls does: it looks first, and keeps what the handshake brought.
                known += usize::from(sessions.kx_hint(&name(number)).is_some());
                sessions.set_kx_hint(name(number), NamedGroup::X25519);
                let state = sessions.state.lock();
                assert!(state.hosts.len() <= hosts_max);
                assert_eq!(state.hosts.len(), state.names.len());
            }
            known
        })
    }

    #[test]
    fn as_many_hosts_as_there_is_room_for_are_all_known() {
        assert_eq!(known_in_rounds(1000, 1000), [0, 1000, 1000]);
    }

    #[test]
    fn hosts_in_turn_do_not_push_each_other_out() {
        let rounds: [usize; 6] = known_in_rounds(1250, 1000);
        for known in &rounds[1..] {
            assert!(*known > 700, "{rounds:?}");
        }
    }

    #[test]
    fn forgotten_sessions_make_room() {
        let sessions = TlsSessions::new(2);
        for number in [1, 2, 3, 4] {
            sessions.set_kx_hint(name(number), NamedGroup::X25519);
        }
        assert_eq!((sessions.forget_all(), sessions.forget_all()), (2, 0));
        sessions.set_kx_hint(name(1), NamedGroup::X25519);
        assert!(sessions.kx_hint(&name(1)).is_some());
    }
}
