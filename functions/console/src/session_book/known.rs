//! The open sessions that a process knows, and since when.

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
    /// The number of the read that began last.
    last_read: u64,
    /// The same when a change failed whose end is not known. Only a list that was asked for later
    /// tells.
    doubt: Option<u64>,
    /// Sessions that are not open any more, the newest last. A session never opens again.
    ended: VecDeque<SessionDigest>,
}

/// The list as it was read or written.
#[derive(Debug, Clone)]
pub(super) struct ReadList {
    pub(super) open: Arc<ConsoleSessions>,
    pub(super) etag: Option<ETag>,
    /// Whether it could be used. One that could not counts as empty, and ends no session for good.
    pub(super) is_usable: bool,
    pub(super) read_at: ReadTime,
}

/// The moment before a read, by its number among the reads and by both clocks: the process may be
/// frozen, as Lambda does, and the wall clock may be set back.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadTime {
    number: u64,
    monotonic: Duration,
    pub(super) wall: Timestamp,
}

impl KnownSessions {
    /// Notes that a read begins, or a change, which reads too.
    pub(super) fn begin_read(&mut self, clock: &impl Clock) -> ReadTime {
        self.last_read += 1;
        ReadTime {
            number: self.last_read,
            monotonic: clock.monotonic(),
            wall: clock.now(),
        }
    }

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
        self.doubt.is_none() && self.is_younger_than(READ_AGAIN_AFTER, clock)
    }

    /// Whether the list was read less than this time ago.
    pub(super) fn is_younger_than(&self, age: Duration, clock: &impl Clock) -> bool {
        let list = self.list.as_ref();
        list.is_some_and(|list| list.read_at.age(clock) < age)
    }

    /// Keeps a list, unless one is known that was asked for later.
    pub(super) fn keep_list(&mut self, newer: ReadList) {
        let number = newer.read_at.number;
        let known = self.list.as_ref();
        if known.is_some_and(|known| number < known.read_at.number) {
            return;
        }
        self.doubt = self.doubt.filter(|doubt| number <= *doubt);
        self.list = Some(newer);
    }

    /// Notes that the list may have changed: reads that have begun do not know.
    pub(super) fn doubt_list(&mut self) {
        self.doubt = Some(self.last_read);
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

    fn read_list(read_at: ReadTime, etag: &str) -> ReadList {
        ReadList {
            open: Arc::default(),
            etag: Some(ETag(etag.to_owned())),
            is_usable: true,
            read_at,
        }
    }

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
        let mut known = KnownSessions::default();
        let [earlier, later] = [(); 2].map(|()| known.begin_read(&clock));
        known.keep_list(read_list(later, "later"));
        known.keep_list(read_list(earlier, "earlier"));
        let etag = known.list().and_then(|list| list.etag.clone());
        assert_eq!(etag, Some(ETag("later".to_owned())));
    }

    /// A read that was on its way while a change failed may have the list of before or after it.
    #[test]
    fn doubt_ends_with_a_list_asked_for_after_it() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000));
        let mut known = KnownSessions::default();
        let [change, during] = [(); 2].map(|()| known.begin_read(&clock));
        known.keep_list(read_list(change, "before"));
        known.doubt_list();
        known.keep_list(read_list(during, "during"));
        assert!(!known.is_recent(&clock));
        let after = known.begin_read(&clock);
        known.keep_list(read_list(after, "after"));
        assert!(known.is_recent(&clock));
    }

    #[test]
    fn age_is_that_of_the_clock_that_went_further() {
        let clock = ManualClock::new(Timestamp::from_millis(1_000_000));
        let read_at = KnownSessions::default().begin_read(&clock);
        clock.set_back(Duration::from_secs(100));
        clock.advance(Duration::from_secs(3));
        assert_eq!(read_at.age(&clock), Duration::from_secs(3));
        let frozen = ReadTime {
            monotonic: clock.monotonic(),
            wall: Timestamp::from_millis(0),
            ..read_at
        };
        assert_eq!(frozen.age(&clock), clock.now().since(frozen.wall));
    }
}
