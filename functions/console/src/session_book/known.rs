//! What a process knows of the open sessions, and since when.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::Timestamp;
use posthaste_core::stored::{ConsoleSessions, SessionDigest};
use posthaste_ports::{Clock, ETag};

/// The age from which the list is read again: a session that another process ended counts for no
/// longer.
pub(crate) const READ_AGAIN_AFTER: Duration = Duration::from_secs(5);

/// The age up to which the list counts while the store fails: operators still see the pages that
/// need no store, and what failed.
pub(crate) const COUNTS_UNREAD_MAX: Duration = Duration::from_secs(65);

/// Most ended sessions that are remembered, so that their cookies cost no read each: five times as
/// many as can be open.
const ENDED_MAX: usize = 1_000;

/// The sessions that a process knows.
#[derive(Debug, Default)]
pub(super) struct KnownSessions {
    list: Option<ReadList>,
    /// Whether the list is to be read whatever its age: what became of a change is not known.
    is_doubtful: bool,
    /// Sessions that are not open any more, the newest last. A session never opens again.
    ended: VecDeque<SessionDigest>,
}

/// The list as it was read or written.
#[derive(Debug, Clone)]
pub(super) struct ReadList {
    pub(super) open: Arc<ConsoleSessions>,
    pub(super) etag: Option<ETag>,
    pub(super) read_at: ReadTime,
}

/// The moment before a read, by both clocks: the process may be frozen, as Lambda does, and the wall
/// clock may be set back.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadTime {
    monotonic: Duration,
    pub(super) wall: Timestamp,
}

impl KnownSessions {
    /// The list, if it was ever read.
    pub(super) fn list(&self) -> Option<&ReadList> {
        self.list.as_ref()
    }

    /// Whether a session is open, by the list of whatever age.
    pub(super) fn has_open(&self, id: SessionDigest) -> bool {
        let list = self.list.as_ref();
        !self.has_ended(id) && list.is_some_and(|list| list.open.find_session(id).is_some())
    }

    /// Whether a session was open once.
    pub(super) fn has_ended(&self, id: SessionDigest) -> bool {
        self.ended.contains(&id)
    }

    /// Whether the list need not be read again.
    pub(super) fn is_recent(&self, clock: &impl Clock) -> bool {
        !self.is_doubtful && self.is_younger_than(READ_AGAIN_AFTER, clock)
    }

    /// Whether the list was read less than this time ago.
    pub(super) fn is_younger_than(&self, age: Duration, clock: &impl Clock) -> bool {
        let list = self.list.as_ref();
        list.is_some_and(|list| list.read_at.age(clock) < age)
    }

    /// Keeps a list, unless a later one is known.
    pub(super) fn keep_list(&mut self, newer: ReadList) {
        let known = self.list.as_ref();
        if known.is_none_or(|known| known.read_at.monotonic <= newer.read_at.monotonic) {
            self.list = Some(newer);
            self.is_doubtful = false;
        }
    }

    /// Notes that the list may have changed.
    pub(super) fn doubt_list(&mut self) {
        self.is_doubtful = true;
    }

    /// Remembers that a session is not open any more.
    pub(super) fn remember_ended(&mut self, id: SessionDigest) {
        if self.has_ended(id) {
            return;
        }
        if self.ended.len() == ENDED_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(id);
    }
}

impl ReadTime {
    /// This moment.
    pub(super) fn now(clock: &impl Clock) -> Self {
        Self {
            monotonic: clock.monotonic(),
            wall: clock.now(),
        }
    }

    /// The time since then: the longer one of both clocks.
    fn age(self, clock: &impl Clock) -> Duration {
        let monotonic = clock.monotonic().saturating_sub(self.monotonic);
        monotonic.max(clock.now().since(self.wall))
    }
}

#[cfg(test)]
mod tests {
    use posthaste_testkit::ManualClock;

    use super::*;

    #[test]
    fn ended_sessions_are_remembered_up_to_a_number() {
        let mut known = KnownSessions::default();
        let digest = |number: usize| SessionDigest::for_id(&number.to_be_bytes());
        for number in 0..ENDED_MAX {
            known.remember_ended(digest(number));
            known.remember_ended(digest(number));
        }
        assert!(known.has_ended(digest(0)));
        known.remember_ended(digest(ENDED_MAX));
        assert!(!known.has_ended(digest(0)) && known.has_ended(digest(1)));
        assert_eq!(known.ended.len(), ENDED_MAX);
    }

    /// A list that was asked for earlier and came later does not replace the newer one.
    #[test]
    fn late_answer_of_an_earlier_read_is_passed_over() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000));
        let earlier = ReadTime::now(&clock);
        clock.advance(Duration::from_millis(1));
        let later = ReadTime::now(&clock);
        let list = |read_at, etag: &str| ReadList {
            open: Arc::default(),
            etag: Some(ETag(etag.to_owned())),
            read_at,
        };
        let mut known = KnownSessions::default();
        known.keep_list(list(later, "later"));
        known.keep_list(list(earlier, "earlier"));
        let etag = known.list().and_then(|list| list.etag.clone());
        assert_eq!(etag, Some(ETag("later".to_owned())));
    }

    #[test]
    fn age_is_that_of_the_clock_that_went_further() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        let read_at = ReadTime::now(&clock);
        clock.set_back(Duration::from_secs(100));
        clock.advance(Duration::from_secs(3));
        assert_eq!(read_at.age(&clock), Duration::from_secs(3));
        let frozen = ReadTime {
            monotonic: clock.monotonic(),
            wall: Timestamp::from_millis(0),
        };
        assert_eq!(frozen.age(&clock), clock.now().since(frozen.wall));
    }
}
