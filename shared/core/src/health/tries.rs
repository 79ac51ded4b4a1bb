//! The tries of a subscription's events, counted by the minute.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::settings::ArrivalSettings;
use crate::attempt::OutcomeName;
use crate::model::Timestamp;

/// Minutes that are kept, at most: a day of tries that are rare.
const MINUTES_KEPT_MAX: usize = 120;

/// The age of tries that are never measured.
const TRIES_AGE_MAX: Duration = Duration::from_hours(24);

/// The minutes of which recovery is judged: the last one with tries, and the one before it.
const RECENT_MINUTES: u64 = 2;

/// Arrivals in a row that end an incident while events still wait. One alone may be luck: an
/// endpoint that takes every eleventh request would page with each of them.
const RECOVERED_IN_ROW: u32 = 3;

/// Ends of events that are kept until the next write. More than so many make the oldest event
/// unknown, which the next failed try of it mends.
const ENDED_KEPT_MAX: usize = 256;

/// The age at which an event has ended wherever that was noted: the longest time to live, and an
/// hour.
const UNDELIVERED_AGE_MAX: Duration = Duration::from_hours(25);

/// What became of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryResult {
    /// The event arrived.
    Arrived,
    /// The endpoint did not take it.
    Failed {
        /// The failure's name, where it is known.
        outcome: Option<OutcomeName>,
        /// The status, where there was one.
        status: Option<u16>,
        /// Whether the event was given up.
        is_last: bool,
    },
    /// The event was not tried, and waits.
    Waits,
    /// The event was given up for a reason of its own, such as a subscription that was deleted.
    Ended,
}

/// A try of an event.
#[derive(Debug, Clone, Copy)]
pub struct SeenTry<'a> {
    /// The key of the delivery: one event towards one subscription.
    pub key: &'a str,
    /// The time at which the event was accepted.
    pub accepted_at: Timestamp,
    /// The time of the try.
    pub at: Timestamp,
    /// Whether the event was neither tried nor handed back before.
    pub is_first: bool,
    /// What became of it.
    pub result: TryResult,
}

/// The last try that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    /// The time of the try.
    pub at: Timestamp,
    /// The failure's name, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<OutcomeName>,
    /// The status, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The oldest event that is known to be undelivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Undelivered {
    /// The key of its delivery.
    pub key: String,
    /// The time at which it was accepted. Nothing an operator does changes it.
    pub accepted_at: Timestamp,
}

/// The tries of a minute: the minute since the epoch, those that arrived, and those that failed.
type Minute = (u64, u32, u32);

/// A share of tries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Tries that arrived.
    pub arrived: u32,
    /// Tries that failed.
    pub failed: u32,
    /// The beginning of the minute of the first of them.
    pub from: Option<Timestamp>,
}

/// The tries of a subscription, or some of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tries {
    /// In the order of time.
    minutes: Vec<Minute>,
    /// The number of failures since the last arrival.
    in_row: u32,
    /// The number of arrivals since the last failure.
    arrived_in_row: u32,
    /// The time of the first of the failures in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    row_since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<LastFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_arrived_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<Undelivered>,
    /// The last time at which an event was not at its end after its try.
    #[serde(skip_serializing_if = "Option::is_none")]
    undelivered_at: Option<Timestamp>,
    /// Events that ended, of which an earlier part may know that they had not. Not stored.
    #[serde(skip)]
    ended: Vec<String>,
    #[serde(skip)]
    has_more_ended: bool,
}

impl Share {
    /// The number of tries.
    pub fn tried(self) -> u32 {
        self.arrived.saturating_add(self.failed)
    }

    /// Whether at least this share of them failed.
    fn has_failed(self, percent: u32) -> bool {
        u64::from(self.failed) * 100 >= u64::from(percent) * u64::from(self.tried())
    }

    /// Whether at least this share of them arrived.
    fn has_arrived(self, percent: u32) -> bool {
        u64::from(self.arrived) * 100 >= u64::from(percent) * u64::from(self.tried())
    }

    /// The share that arrived, in whole percent, rounded down. `None` of no tries.
    pub fn arrived_percent(self) -> Option<u8> {
        let tried = u64::from(self.tried());
        let percent = (u64::from(self.arrived) * 100).checked_div(tried)?;
        u8::try_from(percent).ok()
    }
}

impl Tries {
    /// Adds a try.
    pub fn note(&mut self, seen: &SeenTry<'_>) {
        match seen.result {
            TryResult::Arrived => {
                self.count(seen.at.minute(), 1, 0);
                self.in_row = 0;
                self.arrived_in_row = self.arrived_in_row.saturating_add(1);
                self.row_since = None;
                self.last_arrived_at = self.last_arrived_at.max(Some(seen.at));
                self.end(seen);
            }
            TryResult::Failed {
                outcome,
                status,
                is_last,
            } => {
                self.count(seen.at.minute(), 0, 1);
                self.in_row = self.in_row.saturating_add(1);
                self.arrived_in_row = 0;
                self.row_since.get_or_insert(seen.at);
                self.last_failure = Some(LastFailure {
                    at: seen.at,
                    outcome,
                    status,
                });
                if is_last {
                    self.end(seen);
                } else {
                    self.wait(seen);
                }
            }
            TryResult::Waits => self.wait(seen),
            TryResult::Ended => self.end(seen),
        }
    }

    /// Adds the tries of a later part.
    pub fn add(&mut self, later: Self) {
        for (minute, arrived, failed) in &later.minutes {
            self.count(*minute, *arrived, *failed);
        }
        // Records may come late: what failed before the last arrival takes nothing from it.
        let arrived = self.last_arrived_at.map_or(0, Timestamp::minute);
        let has_failed = |(minute, _, failed): &Minute| *failed > 0 && *minute >= arrived;
        let has_failed = later.minutes.iter().any(has_failed);
        let before = if has_failed { 0 } else { self.arrived_in_row };
        self.arrived_in_row = before.saturating_add(later.arrived_in_row);
        if later.last_arrived_at.is_some() {
            self.in_row = later.in_row;
            self.row_since = later.row_since;
        } else {
            self.in_row = self.in_row.saturating_add(later.in_row);
            self.row_since = self.row_since.or(later.row_since);
        }
        self.last_failure = later.last_failure.or(self.last_failure);
        self.last_arrived_at = self.last_arrived_at.max(later.last_arrived_at);
        self.undelivered_at = self.undelivered_at.max(later.undelivered_at);
        let has_ended =
            |event: &Undelivered| later.has_more_ended || later.ended.contains(&event.key);
        let mine = self.oldest.take().filter(|event| !has_ended(event));
        self.oldest = older(mine, later.oldest);
        for key in later.ended {
            self.keep_end(key);
        }
        self.has_more_ended |= later.has_more_ended;
    }

    /// Whether any of them failed, or an event of them waits too long.
    pub fn has_news(&self) -> bool {
        self.oldest.is_some() || self.minutes.iter().any(|(_, _, failed)| *failed > 0)
    }

    /// The tries of the window, and older ones as far as those are too few.
    pub fn measured(&self, now: Timestamp, settings: &ArrivalSettings) -> Share {
        let window = settings.window.as_secs() / 60;
        let oldest = now.minute().saturating_sub(TRIES_AGE_MAX.as_secs() / 60);
        let mut share = Share::default();
        for (minute, arrived, failed) in self.minutes.iter().rev() {
            let is_in_window = minute + window >= now.minute();
            let is_needed = share.tried() < settings.tries_min && *minute >= oldest;
            if !is_in_window && !is_needed {
                break;
            }
            share.add(*minute, *arrived, *failed);
        }
        share
    }

    /// Whether the failures alone make the subscription failing.
    pub fn is_failing(&self, now: Timestamp, settings: &ArrivalSettings) -> bool {
        let share = self.measured(now, settings);
        self.in_row >= settings.failing_in_row
            || (share.tried() >= settings.tries_min && share.has_failed(settings.failing_percent))
    }

    /// Whether nothing has arrived for so long that a hold of the circuit makes it failing.
    pub fn is_without_arrival(&self, now: Timestamp, settings: &ArrivalSettings) -> bool {
        self.row_since
            .is_some_and(|since| now >= since + settings.failing_after)
    }

    /// Whether events arrive again: some in a row, or one where no other waits.
    pub fn is_recovered(&self, settings: &ArrivalSettings) -> bool {
        let wanted = if self.oldest.is_some() {
            RECOVERED_IN_ROW
        } else {
            1
        };
        self.arrived_in_row >= wanted && self.recent().has_arrived(settings.recovered_percent)
    }

    /// Whether the last try arrived, as far as it is not too long ago to be measured. What an
    /// incident's end forgot counts too: the circuit may still hold requests back then.
    pub(super) fn has_arrived_last(&self, now: Timestamp, settings: &ArrivalSettings) -> bool {
        let arrived_at = self.last_arrived_at;
        let is_recent = || arrived_at.is_some_and(|at| now < at + settings.window);
        self.in_row == 0 && (self.measured(now, settings).arrived > 0 || is_recent())
    }

    /// Whether nothing waits, and all that failed is forgotten: no try will come that tells of
    /// recovery.
    pub(super) fn is_forgotten(&self, now: Timestamp) -> bool {
        let is_old = |failure: LastFailure| now >= failure.at + TRIES_AGE_MAX;
        self.oldest.is_none() && self.last_failure.is_none_or(is_old)
    }

    /// The tries of the last minutes that have any: what is known of them may come late.
    fn recent(&self) -> Share {
        let mut share = Share::default();
        let last = self.minutes.last().map(|it| it.0).unwrap_or_default();
        let is_recent = |minute: u64| minute + RECENT_MINUTES > last;
        for (minute, arrived, failed) in self.minutes.iter().rev() {
            if is_recent(*minute) {
                share.add(*minute, *arrived, *failed);
            }
        }
        share
    }

    /// Begins to count anew, because an incident is over.
    pub fn begin_anew(&mut self) {
        self.minutes.clear();
        self.in_row = 0;
        self.arrived_in_row = 0;
        self.row_since = None;
    }

    /// Forgets which events ended, once that is said to what was known before.
    pub(super) fn forget_ends(&mut self) {
        self.ended.clear();
        self.has_more_ended = false;
    }

    /// Forgets what is not measured any more.
    pub fn tidy(&mut self, now: Timestamp, settings: &ArrivalSettings) {
        let from = self.measured(now, settings).from;
        self.minutes
            .retain(|(minute, _, _)| from.is_some_and(|from| *minute >= from.minute()));
        self.oldest = self
            .oldest
            .take()
            .filter(|event| now.since(event.accepted_at) < UNDELIVERED_AGE_MAX);
    }

    /// The number of failures since the last arrival.
    pub fn in_row(&self) -> u32 {
        self.in_row
    }

    /// The time of the first of them.
    pub fn row_since(&self) -> Option<Timestamp> {
        self.row_since
    }

    /// The last try that failed.
    pub fn last_failure(&self) -> Option<LastFailure> {
        self.last_failure
    }

    /// The last time at which an event arrived.
    pub fn last_arrived_at(&self) -> Option<Timestamp> {
        self.last_arrived_at
    }

    /// The oldest event that is known to be undelivered.
    pub fn oldest(&self) -> Option<&Undelivered> {
        self.oldest.as_ref()
    }

    /// The last time at which an event was not at its end after its try.
    pub(super) fn undelivered_at(&self) -> Option<Timestamp> {
        self.undelivered_at
    }

    fn count(&mut self, minute: u64, arrived: u32, failed: u32) {
        match self.minutes.binary_search_by_key(&minute, |it| it.0) {
            Ok(place) => {
                let (_, has_arrived, has_failed) = &mut self.minutes[place];
                *has_arrived = has_arrived.saturating_add(arrived);
                *has_failed = has_failed.saturating_add(failed);
            }
            Err(place) => self.minutes.insert(place, (minute, arrived, failed)),
        }
        if self.minutes.len() > MINUTES_KEPT_MAX {
            self.minutes.remove(0);
        }
    }

    fn wait(&mut self, seen: &SeenTry<'_>) {
        self.undelivered_at = self.undelivered_at.max(Some(seen.at));
        let event = Undelivered {
            key: seen.key.to_owned(),
            accepted_at: seen.accepted_at,
        };
        self.oldest = older(self.oldest.take(), Some(event));
    }

    fn end(&mut self, seen: &SeenTry<'_>) {
        if self.oldest.as_ref().is_some_and(|it| it.key == seen.key) {
            self.oldest = None;
        }
        if !seen.is_first {
            self.keep_end(seen.key.to_owned());
        }
    }

    fn keep_end(&mut self, key: String) {
        if self.ended.len() < ENDED_KEPT_MAX {
            self.ended.push(key);
        } else {
            self.has_more_ended = true;
        }
    }
}

impl Share {
    fn add(&mut self, minute: u64, arrived: u32, failed: u32) {
        self.arrived = self.arrived.saturating_add(arrived);
        self.failed = self.failed.saturating_add(failed);
        let from = Timestamp::from_millis(minute * 60_000);
        self.from = Some(self.from.map_or(from, |first| first.min(from)));
    }
}

/// The older of two events; the first of two that are as old.
fn older(one: Option<Undelivered>, other: Option<Undelivered>) -> Option<Undelivered> {
    match (one, other) {
        (Some(one), Some(other)) if other.accepted_at < one.accepted_at => Some(other),
        (one, other) => one.or(other),
    }
}
