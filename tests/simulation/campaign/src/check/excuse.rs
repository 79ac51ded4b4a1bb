//! The reasons for which a rule may not hold, and where in a run they count: a mishap excuses what
//! happens between it and its effect, and nothing before or long after.

use std::ops::RangeInclusive;
use std::time::Duration;

use posthaste_core::stored::layout;
use posthaste_testkit::Trick;

use crate::history::{Cause, History, Mishap};

/// A time of a run, by the clock's `monotonic`.
pub(super) type Span = RangeInclusive<Duration>;

/// A reason for which a rule may not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excuse {
    /// A process was killed, or a function panicked: what it had under way is done again.
    Killed,
    /// A process ended in order: it may have waited for open requests, and had its rest cut.
    Restarted,
    /// The clock of the machine was set back: times of day before and after cannot be compared.
    SetBack,
    /// A call by which events move on failed, or its answer was lost, or a queue misbehaved.
    Moved,
    /// Records of the delivery log could not be sent: it never stops deliveries, and counts what it
    /// lost (`LogRecordsLostCount`). On AWS health and what waits are known from records.
    RecordsLost,
    /// Topics could not be read, so that their last good copies stayed in use.
    Unreadable,
    /// The shared states of rates and of open requests could not be read or written.
    Limits,
    /// The states of links could not be read or written.
    Links,
    /// Entries of the audit trail could not be written.
    Trail,
    /// The same of what is known of the health of subscriptions, and of what waits.
    Book,
}

/// Neither another order nor counts of before make anything come again.
const HARMLESS: [Trick; 2] = [Trick::Reorder, Trick::LagCounts];

/// The excuses that make a request come again.
pub(super) const AGAIN: [Excuse; 3] = [Excuse::Killed, Excuse::Moved, Excuse::SetBack];

/// The objects beside the way of events, which move on without them.
const BESIDE: [&str; 7] = [
    layout::TOPICS,
    layout::LINKS,
    layout::RATES,
    layout::SLOTS,
    layout::AUDIT,
    HEALTH,
    WAITING,
];

const HEALTH: &str = "health/";
const WAITING: &str = "waiting/";

impl Excuse {
    fn covers(self, mishap: &Mishap) -> bool {
        let is_call = match mishap.cause {
            Cause::Fault | Cause::Panicked => true,
            Cause::Trick(trick) => !HARMLESS.contains(&trick),
            Cause::Killed | Cause::Restarted | Cause::SetBack => false,
        };
        let is_under = |prefixes: &[&str]| {
            let mut prefixes = prefixes.iter();
            mishap.port == "state" && prefixes.any(|prefix| mishap.key.starts_with(prefix))
        };
        match self {
            Self::Killed => matches!(mishap.cause, Cause::Killed | Cause::Panicked),
            Self::Restarted => mishap.cause == Cause::Restarted,
            Self::SetBack => mishap.cause == Cause::SetBack,
            Self::Moved => is_call && mishap.port != "log" && !is_under(&BESIDE),
            Self::RecordsLost => is_call && mishap.port == "records",
            Self::Unreadable => is_call && is_under(&[layout::TOPICS]),
            Self::Limits => is_call && is_under(&[layout::RATES, layout::SLOTS]),
            Self::Links => is_call && is_under(&[layout::LINKS]),
            Self::Trail => is_call && is_under(&[layout::AUDIT]),
            Self::Book => is_call && is_under(&[HEALTH, WAITING]),
        }
    }
}

impl History {
    /// The mishaps of a time that count as one of these.
    pub(super) fn mishaps_in(&self, span: &Span, excuses: &[Excuse]) -> usize {
        let is_meant = |mishap: &&Mishap| {
            span.contains(&mishap.at) && excuses.iter().any(|excuse| excuse.covers(mishap))
        };
        self.mishaps.iter().filter(is_meant).count()
    }

    /// Whether there was one of these in a time.
    pub(super) fn is_excused(&self, span: &Span, excuses: &[Excuse]) -> bool {
        self.mishaps_in(span, excuses) > 0
    }
}
