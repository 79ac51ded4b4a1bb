//! How far a run has come, from which the next one goes on.
//!
//! Every object that is released leaves a delete marker in a versioned bucket, for a day or two, and a listing must walk
//! past all of them: at a million it takes minutes. A list that begins where something may still lie walks past none. A new
//! object's due minute is never before the minute in which it was written, so what was found empty stays empty.

use std::time::Duration;

use posthaste_core::model::time::Timestamp;
use posthaste_core::release::set_back::is_scan_due;
use posthaste_core::stored::layout;

use crate::WakeReport;
use crate::account::SharedAccount;
use crate::held::Holding;
use crate::lease::Notes;
use crate::set_back::Look;
use crate::temporary::Sweep;

/// How far before the open minute a list begins: as much as the clocks of two workers may be apart, and an object be
/// written late.
const STEP_BACK_MINUTES: u64 = 10;

/// How often what lies before the list's beginning is looked at: for objects that were written later still.
const SCAN_EVERY: Duration = Duration::from_hours(24);

/// How soon that is tried again if it did not come to its end.
const SCAN_AGAIN_AFTER: Duration = Duration::from_hours(1);

/// Runs that begin further apart than this have an outage between them. It is less than the queue's longest delay,
/// for which a wait is noted ahead, so that what is idle can tell shorter ones from idleness.
const OUTAGE: Duration = Duration::from_mins(10);

/// One run's way through the list.
#[derive(Debug)]
pub(crate) struct Course {
    /// What was done.
    pub(crate) report: WakeReport,
    began: Timestamp,
    /// When the last outage ended, if one is known: deliveries that were due in it were not attempted.
    pub(crate) awake_since: Option<Timestamp>,
    /// Everything due before this minute was tried, by this run or an earlier one.
    reached: Option<u64>,
    /// The oldest minute of what was tried and must be tried again.
    held: Option<u64>,
    scan_at: Option<Timestamp>,
    /// How far the temporary topics were looked at; `None` once all were.
    pub(crate) swept_to: Option<String>,
    /// How far what is held was looked at; `None` once all was.
    pub(crate) held_to: Option<String>,
    /// How far what is parked was looked at for what has expired, under pressure; `None` once all was.
    pub(crate) expired_to: Option<String>,
    /// The look at what is parked for what a clock wrote that was ahead; `None` once all was looked at.
    pub(crate) look: Option<Look>,
    /// What was released.
    pub(crate) account: SharedAccount,
}

impl Course {
    /// A run that begins now, with what the last one left. A minute that has not come yet is from a clock that was ahead.
    pub(crate) fn new(notes: Notes, began: Timestamp) -> Self {
        let is_scan_due = notes.began_at.is_some_and(|last| is_scan_due(last, began));
        let look = is_scan_due.then(|| Look::begin(began));
        Self {
            report: WakeReport::default(),
            began,
            awake_since: awake_since(&notes, began),
            reached: notes.open_from_minute.map(|minute| minute.min(began.minute())),
            held: None,
            scan_at: notes.scan_at,
            swept_to: notes.swept_to,
            held_to: notes.held_to,
            expired_to: notes.expired_to,
            look: look.or(notes.look),
            account: SharedAccount::default(),
        }
    }

    /// The key after which the list begins; `None` for its start.
    pub(crate) fn beginning(&self) -> Option<String> {
        self.reached.map(|minute| layout::parked_before(minute.saturating_sub(STEP_BACK_MINUTES)))
    }

    /// Whether what lies before the beginning must be looked at. A time that is further off than any we set is from a
    /// clock that was ahead.
    pub(crate) fn is_scan_due(&self) -> bool {
        self.scan_at.is_none_or(|at| at <= self.began || at > self.began + SCAN_EVERY)
    }

    /// The start of the list is being looked at; it counts as done once that is said.
    pub(crate) fn scan_begins(&mut self) {
        self.scan_at = Some(self.began + SCAN_AGAIN_AFTER);
    }

    /// Everything from the start was looked at.
    pub(crate) fn was_scanned(&mut self) {
        self.scan_at = Some(self.began + SCAN_EVERY);
    }

    /// Everything from the beginning through now was tried.
    pub(crate) fn was_completed(&mut self) {
        self.reached = self.reached.max(Some(self.began.minute()));
    }

    /// What is held was looked at, and some of it released.
    pub(crate) fn note_held(&mut self, holding: Holding) {
        self.report.held_sent = holding.sent;
        self.report.forced_sent = holding.forced;
        self.report.held_left = holding.left;
        self.held_to = holding.after;
    }

    /// Temporary entities were looked at.
    pub(crate) fn note_swept(&mut self, sweep: Sweep) {
        self.report.deleted_topics = sweep.swept.topics;
        self.report.deleted_subscriptions = sweep.swept.subscriptions;
        self.swept_to = sweep.after;
    }

    /// These were tried, and everything before them.
    pub(crate) fn tried(&mut self, keys: &[String]) {
        let last = keys.iter().rev().find_map(|key| layout::parked_due_minute(key));
        self.reached = self.reached.max(last);
    }

    /// These must be tried again.
    pub(crate) fn hold(&mut self, keys: &[String]) {
        let first = keys.iter().find_map(|key| layout::parked_due_minute(key));
        self.held = self.held.into_iter().chain(first).min();
    }

    /// What the next run must know.
    pub(crate) fn notes(&self) -> Notes {
        let open_from_minute =
            self.reached.map(|reached| self.held.map_or(reached, |held| held.min(reached)));
        Notes {
            open_from_minute,
            scan_at: self.scan_at,
            swept_to: self.swept_to.clone(),
            held_to: self.held_to.clone(),
            expired_to: self.expired_to.clone(),
            began_at: Some(self.began),
            awake_since: self.awake_since,
            look: self.look.clone(),
        }
    }
}

/// The end of the last known outage, for a run that begins now. A time in the future is from a clock that was
/// ahead.
fn awake_since(notes: &Notes, began: Timestamp) -> Option<Timestamp> {
    let was_asleep = notes.began_at.is_some_and(|last| began > last + OUTAGE);
    if was_asleep { Some(began) } else { notes.awake_since.map(|since| since.min(began)) }
}
