//! Idle connections.

#[path = "../../../shared/http/src/pool.rs"]
mod code;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use posthaste_core::model::{Link, Timestamp};
use posthaste_ports::Clock;
use shuttle::future::{block_on, spawn, yield_now};

use crate::connection::HttpConnection;
use crate::search::Search;
use crate::settings::ClientSettings;
use code::ConnectionPool;

pub(crate) const SEARCH: Search = Search::new("shared/http/src/pool.rs", run);

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const NOW: Duration = Duration::from_secs(1);
const IDLE_MAX: usize = 2;

/// Places for as many connections as are used at once.
const PLACES: usize = 3;

/// A clock that stands still, on which every sleep is a turn of others.
#[derive(Debug, Clone, Copy)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        NOW
    }

    async fn sleep(&self, _: Duration) {
        yield_now().await;
    }
}

fn link(host: &str) -> Link {
    Link {
        is_tls: true,
        host: host.into(),
        port: 443,
    }
}

/// One request: with an idle connection, or with a new one. There may be no place for it while another
/// connection is just being closed.
async fn request(pool: &Arc<ConnectionPool>, host: &str, open: &Arc<AtomicUsize>) {
    let link = link(host);
    let connection = if let Some((idle, taken)) = pool.take_idle(&link, &[ADDRESS], NOW) {
        pool.drop_idle_since_before(&link, taken);
        idle
    } else {
        let Some(place) = pool.take_place() else {
            return;
        };
        Box::new(HttpConnection::open(ADDRESS, open, place))
    };
    assert!(open.load(Ordering::SeqCst) <= PLACES, "too many are open");
    yield_now().await;
    pool.put_idle(link, connection, &Still);
    assert!(pool.idle_count() <= IDLE_MAX, "too many are idle");
}

/// Three senders to two links, a link that is dropped, and the sweeper.
fn run() {
    let settings = ClientSettings {
        idle_per_link_max: 2,
        idle_max: IDLE_MAX,
        idle_kept: Duration::from_secs(50),
        connections_max: PLACES,
    };
    let pool = Arc::new(ConnectionPool::new(&settings));
    let open = Arc::new(AtomicUsize::new(0));
    let senders: Vec<_> = [["a", "b"], ["b", "a"], ["a", "a"]]
        .into_iter()
        .map(|hosts| {
            let pool = Arc::clone(&pool);
            let open = Arc::clone(&open);
            spawn(async move {
                for host in hosts {
                    request(&pool, host, &open).await;
                }
            })
        })
        .collect();
    let dropping = Arc::clone(&pool);
    let drops = spawn(async move { dropping.drop_link(&link("a")) });
    block_on(async {
        for sender in senders {
            sender.await.expect("it ends");
        }
        drops.await.expect("it ends");
    });
    // What the pool counts is what is open, and all places come back.
    let idle = open.load(Ordering::SeqCst);
    assert_eq!((pool.idle_count(), pool.trim()), (idle, idle));
    assert_eq!(open.load(Ordering::SeqCst), 0);
    let all: Vec<_> = (0..=PLACES).map_while(|_| pool.take_place()).collect();
    assert_eq!(all.len(), PLACES);
}
