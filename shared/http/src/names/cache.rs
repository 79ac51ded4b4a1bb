//! A short-lived cache of resolved names; one look-up at a time per name.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use posthaste_core::model::SendFailure;
use posthaste_ports::{Clock, EvictedAmount};

use super::{LookupError, NameLookup};

/// Most names remembered at once.
const NAMES_MAX: usize = 10_000;

/// Time that a failed look-up is remembered: long enough that requests which waited for it share it
/// instead of each asking again, one after the other.
const FAILURES_KEPT: Duration = Duration::from_secs(1);

/// Age of an answer from which a failed connection makes it old. However many connections to a host
/// fail, its name is not asked for more often.
const DOUBTED_AFTER: Duration = Duration::from_secs(5);

type CachedAddresses = Result<Arc<[IpAddr]>, SendFailure>;

/// Names and when they were asked for.
pub(crate) struct NameCache<N> {
    names: N,
    kept: Duration,
    entries: Mutex<HashMap<String, NameEntry>>,
}

#[derive(Default)]
struct NameEntry {
    answer: Option<KeptAddresses>,
    /// The turn of the next connection that is opened to one of the addresses.
    turn: usize,
    /// Held by the task that looks the name up.
    asking: Arc<tokio::sync::Mutex<()>>,
}

struct KeptAddresses {
    answer: CachedAddresses,
    asked_at: Duration,
    until: Duration,
}

impl<N: NameLookup> NameCache<N> {
    pub(crate) fn new(names: N, kept: Duration) -> Self {
        Self {
            names,
            kept,
            entries: Mutex::default(),
        }
    }

    /// All addresses of `host`, as of at most the kept time ago.
    pub(crate) async fn resolve(&self, host: &str, clock: &impl Clock) -> CachedAddresses {
        if let Some(answer) = self.fresh_addresses(host, clock.monotonic()) {
            return answer;
        }
        let asking = self.lookup_lock(host, clock.monotonic());
        // If the task that asks is dropped, the guard goes to the next, which asks again.
        let _asking = asking.lock().await;
        if let Some(answer) = self.fresh_addresses(host, clock.monotonic()) {
            return answer;
        }
        let answer = match self.names.lookup(host).await {
            Ok(addresses) if addresses.is_empty() => Err(SendFailure::Resolution {
                does_not_exist: false,
            }),
            Ok(addresses) => Ok(Arc::from(addresses)),
            Err(error) => Err(lookup_failure(host, &error)),
        };
        self.remember_addresses(host, answer.clone(), clock.monotonic());
        answer
    }

    /// The place of the address that a host's next connection starts with: 0, 1, 2 … A host that is
    /// not remembered starts at 0.
    pub(crate) fn next_turn(&self, host: &str) -> usize {
        let mut entries = self.entries.lock();
        let Some(entry) = entries.get_mut(host) else {
            return 0;
        };
        let turn = entry.turn;
        entry.turn = turn.wrapping_add(1);
        turn
    }

    /// Doubts the addresses of a host after a connection to it was refused or failed: it may have
    /// moved. They are used no longer than [`DOUBTED_AFTER`] they were asked for.
    pub(crate) fn doubt_addresses(&self, host: &str) {
        if let Some(entry) = self.entries.lock().get_mut(host)
            && let Some(kept) = &mut entry.answer
        {
            kept.until = kept.until.min(kept.asked_at + DOUBTED_AFTER);
        }
    }

    /// Forgets one name. If it is being looked up, that answer is fresh and stays.
    pub(crate) fn forget_name(&self, host: &str) {
        if let Some(entry) = self.entries.lock().get_mut(host) {
            entry.answer = None;
        }
    }

    /// Forgets every name, and returns how many were known.
    pub(crate) fn flush(&self) -> usize {
        let forgotten = std::mem::take(&mut *self.entries.lock());
        self.names.forget_all();
        forgotten
            .values()
            .filter(|entry| entry.answer.is_some())
            .count()
    }

    /// Forgets expired names. A name that is being looked up is kept, so that it has one look-up at
    /// a time.
    pub(crate) fn trim(&self, now: Duration) -> EvictedAmount {
        let mut entries = self.entries.lock();
        let freed = entries
            .extract_if(|_, entry| !entry.is_fresh(now) && Arc::strong_count(&entry.asking) == 1)
            .map(|(name, entry)| EvictedAmount {
                entries: 1,
                bytes: name.len() + entry.address_bytes(),
            })
            .sum();
        entries.shrink_to_fit();
        freed
    }

    fn fresh_addresses(&self, host: &str, now: Duration) -> Option<CachedAddresses> {
        let entries = self.entries.lock();
        let kept = entries.get(host)?.answer.as_ref()?;
        (now < kept.until).then(|| kept.answer.clone())
    }

    fn lookup_lock(&self, host: &str, now: Duration) -> Arc<tokio::sync::Mutex<()>> {
        let mut entries = self.entries.lock();
        if entries.len() >= NAMES_MAX && !entries.contains_key(host) {
            entries.retain(|_, entry| entry.is_fresh(now));
            if entries.len() >= NAMES_MAX {
                entries.clear();
            }
        }
        entries.entry(host.to_owned()).or_default().asking.clone()
    }

    fn remember_addresses(&self, host: &str, answer: CachedAddresses, now: Duration) {
        let kept = if answer.is_ok() {
            self.kept
        } else {
            self.kept.min(FAILURES_KEPT)
        };
        // A name that was flushed while it was looked up is not remembered.
        if let Some(entry) = self.entries.lock().get_mut(host) {
            entry.answer = Some(KeptAddresses {
                answer,
                asked_at: now,
                until: now + kept,
            });
        }
    }
}

impl NameEntry {
    /// Memory of the addresses.
    fn address_bytes(&self) -> usize {
        let addresses = self
            .answer
            .as_ref()
            .and_then(|kept| kept.answer.as_ref().ok());
        addresses.map_or(0, |addresses| size_of_val(&**addresses))
    }

    fn is_fresh(&self, now: Duration) -> bool {
        self.answer.as_ref().is_some_and(|kept| now < kept.until)
    }
}

fn lookup_failure(host: &str, error: &LookupError) -> SendFailure {
    tracing::debug!(
        host,
        error = error as &dyn std::error::Error,
        "failed to resolve a name"
    );
    SendFailure::Resolution {
        does_not_exist: matches!(error, LookupError::DoesNotExist),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use futures_util::future::join_all;
    use posthaste_core::model::Timestamp;
    use posthaste_testkit::ManualClock;

    use super::*;

    /// Scripted results of look-ups, in turn; `None` is "no such name".
    struct Script(Mutex<VecDeque<Option<&'static str>>>);

    impl NameLookup for Script {
        async fn lookup(&self, _host: &str) -> Result<Vec<IpAddr>, LookupError> {
            tokio::task::yield_now().await;
            let next = self
                .0
                .lock()
                .pop_front()
                .expect("no more look-ups were expected");
            next.map(|address| vec![address.parse().unwrap()])
                .ok_or(LookupError::DoesNotExist)
        }

        fn forget_all(&self) {}
    }

    fn cache(answers: &[Option<&'static str>]) -> (NameCache<Script>, ManualClock) {
        let script = Script(Mutex::new(answers.iter().copied().collect()));
        (
            NameCache::new(script, Duration::from_secs(30)),
            ManualClock::new(Timestamp::EPOCH),
        )
    }

    fn addresses(address: &str) -> Arc<[IpAddr]> {
        Arc::from([address.parse().unwrap()])
    }

    const NO_SUCH_NAME: CachedAddresses = Err(SendFailure::Resolution {
        does_not_exist: true,
    });

    #[tokio::test]
    async fn a_name_is_asked_for_again_when_its_time_is_over() {
        let (cache, clock) = cache(&[Some("192.0.2.1"), Some("192.0.2.2"), Some("192.0.2.3")]);
        assert_eq!(cache.resolve("a", &clock).await, Ok(addresses("192.0.2.1")));
        clock.advance(Duration::from_millis(29_999));
        assert_eq!(cache.resolve("a", &clock).await, Ok(addresses("192.0.2.1")));
        clock.advance(Duration::from_millis(1));
        assert_eq!(cache.resolve("a", &clock).await, Ok(addresses("192.0.2.2")));
        cache.flush();
        assert_eq!(cache.resolve("a", &clock).await, Ok(addresses("192.0.2.3")));
    }

    #[tokio::test]
    async fn forgotten_name_leaves_other_names_cached() {
        let (cache, clock) = cache(&[Some("192.0.2.1"), Some("192.0.2.2"), Some("192.0.2.3")]);
        assert_eq!(cache.resolve("a", &clock).await, Ok(addresses("192.0.2.1")));
        assert_eq!(cache.resolve("b", &clock).await, Ok(addresses("192.0.2.2")));
        cache.forget_name("a");
        cache.forget_name("unknown");
        assert_eq!(cache.resolve("b", &clock).await, Ok(addresses("192.0.2.2")));
        assert_eq!(cache.resolve("a", &clock).await, Ok(addresses("192.0.2.3")));
    }

    #[tokio::test]
    async fn doubted_name_is_asked_for_again_and_not_more_often() {
        let (cache, clock) = cache(&[Some("192.0.2.1"), Some("192.0.2.2"), Some("192.0.2.3")]);
        let check = async |expected: &str| {
            cache.doubt_addresses("unknown");
            assert_eq!(cache.resolve("a", &clock).await, Ok(addresses(expected)));
        };
        check("192.0.2.1").await;
        clock.advance(DOUBTED_AFTER.saturating_sub(Duration::from_millis(1)));
        for _ in 0..100 {
            cache.doubt_addresses("a");
            check("192.0.2.1").await;
        }
        // The doubt stays.
        clock.advance(Duration::from_millis(1));
        check("192.0.2.2").await;
        clock.advance(Duration::from_secs(20));
        check("192.0.2.2").await;
        cache.doubt_addresses("a");
        check("192.0.2.3").await;
        clock.advance(Duration::from_millis(29_999));
        check("192.0.2.3").await;
    }

    /// Connections to a name continue to take turns after the name was looked up again.
    #[tokio::test]
    async fn connections_take_turns_across_lookups() {
        let (cache, clock) = cache(&[Some("192.0.2.1"), Some("192.0.2.1"), Some("192.0.2.2")]);
        cache.resolve("a", &clock).await.unwrap();
        assert_eq!([cache.next_turn("a"), cache.next_turn("a")], [0, 1]);
        clock.advance(Duration::from_secs(30));
        cache.resolve("a", &clock).await.unwrap();
        cache.resolve("b", &clock).await.unwrap();
        assert_eq!(
            [
                cache.next_turn("a"),
                cache.next_turn("b"),
                cache.next_turn("unknown")
            ],
            [2, 0, 0]
        );
    }

    #[tokio::test]
    async fn requests_that_wait_for_one_name_share_its_answer() {
        let (cache, clock) = cache(&[Some("192.0.2.1")]);
        let answers = join_all((0..10).map(|_| cache.resolve("a", &clock))).await;
        assert_eq!(answers, vec![Ok(addresses("192.0.2.1")); 10]);
    }

    #[tokio::test]
    async fn a_failure_is_shared_too_but_soon_forgotten() {
        let (cache, clock) = cache(&[None, Some("192.0.2.1")]);
        let answers = join_all((0..10).map(|_| cache.resolve("a", &clock))).await;
        assert_eq!(answers, vec![NO_SUCH_NAME; 10]);
        clock.advance(FAILURES_KEPT);
        assert_eq!(cache.resolve("a", &clock).await, Ok(addresses("192.0.2.1")));
    }

    #[tokio::test]
    async fn trimming_keeps_what_is_fresh_and_what_is_being_asked_for() {
        let (cache, clock) = cache(&[Some("192.0.2.1"), Some("192.0.2.2")]);
        assert_eq!(
            cache.resolve("old", &clock).await,
            Ok(addresses("192.0.2.1"))
        );
        clock.advance(Duration::from_secs(20));
        assert_eq!(cache.resolve("b", &clock).await, Ok(addresses("192.0.2.2")));
        clock.advance(Duration::from_secs(10));
        let _asking = cache.lookup_lock("c", clock.monotonic());
        let bytes = "old".len() + size_of::<IpAddr>();
        assert_eq!(
            cache.trim(clock.monotonic()),
            EvictedAmount { entries: 1, bytes }
        );
        let mut kept: Vec<_> = cache.entries.lock().keys().cloned().collect();
        kept.sort_unstable();
        assert_eq!(kept, ["b", "c"]);
        // A name that is still being asked for has nothing to forget.
        assert_eq!(cache.flush(), 1);
    }
}
