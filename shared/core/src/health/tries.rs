//! The tries of a subscription's events, counted by the minute.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::ends::{RecentEnds, UNDELIVERED_AGE_MAX, event_digest};
use super::noted::NotedTries;
use super::seen::{SeenTry, TryResult};
use super::stuck::StuckEvents;
use crate::circuit::CLOCKS_APART_MAX;
use crate::model::zero::is_zero;
use crate::model::{ArrivalSettings, OutcomeName, Timestamp};

/// Minutes that are kept, at most: a day of tries that are rare.
const MINUTES_KEPT_MAX: usize = 120;

/// The age of tries that are kept although no decision needs them: an operator is shown the share
/// of the last hour. They are 60 numbers at most, some 1,000 bytes.
const TRIES_SHOWN_FOR: Duration = Duration::from_hours(1);

/// The age of tries that are never measured.
const TRIES_AGE_MAX: Duration = Duration::from_hours(24);

/// The minutes of which recovery is judged: the last one with tries, and the one before it.
const RECENT_MINUTES: u64 = 2;

/// Arrivals in a row that end an incident while events still wait. One alone may be luck: an
/// endpoint that takes every eleventh request would page with each of them.
const RECOVERED_IN_ROW: u32 = 3;

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
pub struct UndeliveredEvent {
    /// The key of its delivery.
    pub key: String,
    /// The time at which it was accepted. Nothing an operator does changes it.
    pub accepted_at: Timestamp,
    /// The time at which it was seen to wait. Not stored: it is of use until what is known of other
    /// tries is added.
    #[serde(skip)]
    pub seen_at: Timestamp,
}

/// The tries of a minute: the minute since the epoch, those that arrived, and those that failed.
type MinuteTries = (u64, u32, u32);

/// A share of tries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArrivalShare {
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
pub struct SubscriptionTries {
    /// In the order of time.
    minutes: Vec<MinuteTries>,
    /// The number of failures since the last arrival.
    in_row: u32,
    /// The number of arrivals since the last failure.
    arrived_in_row: u32,
    /// The number of arrivals since the last failure of an event that does not fail alone.
    #[serde(skip_serializing_if = "is_zero")]
    arrived_beside: u32,
    /// The time of the first of the failures in a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    row_since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<LastFailure>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_arrived_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    oldest: Option<UndeliveredEvent>,
    /// The last time at which an event was not at its end after its try.
    #[serde(skip_serializing_if = "Option::is_none")]
    undelivered_at: Option<Timestamp>,
    /// Events that ended, of which another part may know that they had not.
    #[serde(skip_serializing_if = "RecentEnds::is_empty")]
    ends: RecentEnds,
    /// Events that failed and have not ended.
    #[serde(skip_serializing_if = "StuckEvents::is_empty")]
    stuck: StuckEvents,
    /// The tries themselves, as long as they are few. Not stored.
    #[serde(skip)]
    noted: NotedTries,
}

impl ArrivalShare {
    /// The number of tries.
    pub fn tries(self) -> u32 {
        self.arrived.saturating_add(self.failed)
    }

    /// Whether at least this share of them failed.
    fn has_failed(self, percent: u32) -> bool {
        u64::from(self.failed) * 100 >= u64::from(percent) * u64::from(self.tries())
    }

    /// Whether at least this share of them arrived.
    fn has_arrived(self, percent: u32) -> bool {
        u64::from(self.arrived) * 100 >= u64::from(percent) * u64::from(self.tries())
    }

    /// The share that arrived, in whole percent, rounded down. `None` of no tries.
    pub fn arrived_percent(self) -> Option<u8> {
        let tried = u64::from(self.tries());
        let percent = (u64::from(self.arrived) * 100).checked_div(tried)?;
        u8::try_from(percent).ok()
    }
}

impl SubscriptionTries {
    /// Adds a try.
    pub fn add_try(&mut self, seen: &SeenTry<'_>) {
        self.noted.add_try(seen);
        match seen.result {
            TryResult::Arrived => self.note_arrival(seen),
            TryResult::Failed {
                outcome,
                status,
                is_last,
            } => {
                self.note_failure(seen);
                let failure = LastFailure {
                    at: seen.at,
                    outcome,
                    status,
                };
                self.last_failure = later_failure(self.last_failure, Some(failure));
                if is_last {
                    self.note_end(seen);
                } else if self.note_waiting(seen) {
                    self.stuck.add_failure(seen.key, seen.accepted_at, seen.at);
                }
            }
            TryResult::Waits => {
                self.note_waiting(seen);
            }
            TryResult::Ended => self.note_end(seen),
        }
    }

    fn note_arrival(&mut self, seen: &SeenTry<'_>) {
        self.count_minute(seen.at.minute_rounded_down(), 1, 0);
        self.in_row = 0;
        self.arrived_in_row = self.arrived_in_row.saturating_add(1);
        self.arrived_beside = self.arrived_beside.saturating_add(1);
        self.row_since = None;
        self.last_arrived_at = self.last_arrived_at.max(Some(seen.at));
        self.note_end(seen);
        self.stuck.note_arrival(seen.at);
    }

    fn note_failure(&mut self, seen: &SeenTry<'_>) {
        let minute = seen.at.minute_rounded_down();
        let fails_alone = self.stuck.fails_alone(seen.key);
        if !fails_alone {
            self.count_minute(minute, 0, 1);
            self.in_row = self.in_row.saturating_add(1);
        }
        if self.is_after_arrivals(minute) {
            self.arrived_in_row = 0;
            self.arrived_beside *= u32::from(fails_alone);
        }
        self.row_since.get_or_insert(seen.at);
    }

    /// Whether a failure in this minute takes anything from the arrivals: records may come late,
    /// and what failed before the last arrival does not.
    fn is_after_arrivals(&self, minute: u64) -> bool {
        minute
            >= self
                .last_arrived_at
                .map_or(0, Timestamp::minute_rounded_down)
    }

    /// Adds the tries of a later part, which was not stored: one by one where they are few, and
    /// their sums otherwise.
    pub fn append_later(&mut self, later: Self) {
        if let Some(tries) = later.noted.all_tries() {
            tries.for_each(|seen| self.add_try(&seen));
            return;
        }
        self.noted.forget_order();
        for (minute, arrived, failed) in &later.minutes {
            self.count_minute(*minute, *arrived, *failed);
        }
        let has_failed = later
            .minutes
            .iter()
            .any(|(minute, _, failed)| *failed > 0 && self.is_after_arrivals(*minute));
        for (row, more) in [
            (&mut self.arrived_in_row, later.arrived_in_row),
            (&mut self.arrived_beside, later.arrived_beside),
        ] {
            let before = if has_failed { 0 } else { *row };
            *row = before.saturating_add(more);
        }
        if let Some(arrived_at) = later.last_arrived_at {
            self.in_row = later.in_row;
            self.row_since = later.row_since;
            self.stuck.note_arrival(arrived_at);
        } else {
            self.in_row = self.in_row.saturating_add(later.in_row);
            self.row_since = self.row_since.or(later.row_since);
        }
        self.last_failure = later_failure(self.last_failure, later.last_failure);
        self.last_arrived_at = self.last_arrived_at.max(later.last_arrived_at);
        self.undelivered_at = self.undelivered_at.max(later.undelivered_at);
        let before = self
            .oldest
            .take()
            .filter(|event| !later.ends.has_more() && !later.ends.has_ended(&event.key));
        let after = later
            .oldest
            .filter(|event| !self.ends.may_have(&event.key, event.seen_at));
        self.oldest = older_event(before, after);
        if later.ends.has_more() {
            // They are known again by their next tries.
            self.stuck = StuckEvents::default();
        }
        self.stuck.end_all(later.ends.event_digests());
        self.stuck.append_later(later.stuck, &self.ends);
        self.ends.append_later(later.ends);
    }

    /// Whether any of them failed, or an event of them waits too long, or ended after an earlier
    /// try, of which nothing may be known yet.
    pub fn has_news(&self) -> bool {
        self.oldest.is_some()
            || !self.ends.is_empty()
            || self.minutes.iter().any(|(_, _, failed)| *failed > 0)
    }

    /// The tries of the window, and older ones as far as those are too few.
    pub fn measured_share(&self, now: Timestamp, settings: &ArrivalSettings) -> ArrivalShare {
        let window = settings.window.as_secs() / 60;
        let oldest = now
            .minute_rounded_down()
            .saturating_sub(TRIES_AGE_MAX.as_secs() / 60);
        let mut share = ArrivalShare::default();
        for (minute, arrived, failed) in self.minutes.iter().rev() {
            let is_in_window = minute + window >= now.minute_rounded_down();
            let is_needed = share.tries() < settings.tries_min && *minute >= oldest;
            if !is_in_window && !is_needed {
                break;
            }
            share.add_minute(*minute, *arrived, *failed);
        }
        share
    }

    /// The tries from the minute of this time on, as far as they are kept.
    pub fn share_since(&self, since: Timestamp) -> ArrivalShare {
        let first = since.minute_rounded_down();
        let mut share = ArrivalShare::default();
        for (minute, arrived, failed) in self.minutes.iter().filter(|(minute, ..)| *minute >= first)
        {
            share.add_minute(*minute, *arrived, *failed);
        }
        share
    }

    /// Whether the failures alone make the subscription failing.
    pub fn is_failing(&self, now: Timestamp, settings: &ArrivalSettings) -> bool {
        let share = self.measured_share(now, settings);
        self.in_row >= settings.failing_in_row
            || (share.tries() >= settings.tries_min && share.has_failed(settings.failing_percent))
    }

    /// Whether nothing has arrived for so long that a hold of the circuit makes it failing.
    pub fn is_without_arrival(&self, now: Timestamp, settings: &ArrivalSettings) -> bool {
        self.row_since
            .is_some_and(|since| now >= since + settings.failing_after)
    }

    /// Whether events arrive again: some in a row, or one where no other waits, or nearly all
    /// beside some that fail alone.
    pub fn is_recovered(&self, settings: &ArrivalSettings) -> bool {
        let wanted = if self.oldest.is_some() {
            RECOVERED_IN_ROW
        } else {
            1
        };
        let has_arrived = self.arrived_in_row >= wanted || self.is_well_beside(settings);
        has_arrived && self.recent_share().has_arrived(settings.recovered_percent)
    }

    /// Whether so many events arrived beside those that fail alone that, each counted once, nearly
    /// all arrive. Tries of the latter come between the arrivals as long as they wait.
    fn is_well_beside(&self, settings: &ArrivalSettings) -> bool {
        let share = ArrivalShare {
            arrived: self.arrived_beside,
            failed: self.stuck.count(),
            from: None,
        };
        share.failed > 0 && share.has_arrived(settings.recovered_percent)
    }

    /// Whether the last try arrived, as far as it is not too long ago to be measured. What an
    /// incident's end forgot counts too: the circuit may still hold requests back then.
    pub(super) fn has_arrived_last(&self, now: Timestamp, settings: &ArrivalSettings) -> bool {
        if self.row_since.is_some() {
            return false;
        }
        self.last_arrived_at
            .is_some_and(|at| now < at + settings.window)
            || self.measured_share(now, settings).arrived > 0
    }

    /// Whether nothing waits, and all that failed is forgotten: no try will come that tells of
    /// recovery.
    pub(super) fn is_forgotten(&self, now: Timestamp) -> bool {
        self.oldest.is_none()
            && self
                .last_failure
                .is_none_or(|failure| now >= failure.at + TRIES_AGE_MAX)
    }

    /// The tries of the last minutes that have any: what is known of them may come late.
    fn recent_share(&self) -> ArrivalShare {
        let mut share = ArrivalShare::default();
        let last = self.minutes.last().map(|it| it.0).unwrap_or_default();
        for (minute, arrived, failed) in self.minutes.iter().rev() {
            if *minute + RECENT_MINUTES > last {
                share.add_minute(*minute, *arrived, *failed);
            }
        }
        share
    }

    /// Notes that an incident begins: only what arrives from now on can end it.
    pub(super) fn begin_incident(&mut self) {
        self.arrived_beside = 0;
    }

    /// Begins to count anew, because an incident is over.
    pub fn begin_anew(&mut self) {
        self.minutes.clear();
        self.in_row = 0;
        self.arrived_in_row = 0;
        self.arrived_beside = 0;
        self.row_since = None;
        self.stuck.begin_anew();
    }

    /// Forgets what is of use only until parts are added.
    pub(super) fn finish_adding(&mut self) {
        self.noted = NotedTries::default();
        self.ends.shrink_to_kept();
        if let Some(oldest) = &mut self.oldest {
            oldest.seen_at = Timestamp::EPOCH;
        }
    }

    /// The last time at which an event failed, or ended after an earlier try.
    pub(super) fn known_at(&self) -> Option<Timestamp> {
        let failed_at = self.last_failure.map(|failure| failure.at);
        failed_at.max(self.ends.last_at())
    }

    /// Forgets what is neither measured nor shown any more, and what a clock noted that was ahead:
    /// it would count as the latest until that time has come.
    pub fn forget_outdated(&mut self, now: Timestamp, settings: &ArrivalSettings) {
        let latest = now + CLOCKS_APART_MAX;
        self.last_failure = self.last_failure.filter(|failure| failure.at <= latest);
        self.last_arrived_at = self.last_arrived_at.filter(|at| *at <= latest);
        self.minutes
            .retain(|(minute, _, _)| *minute <= latest.minute_rounded_down());
        let measured = self.measured_share(now, settings).from;
        let measured = measured.map_or(u64::MAX, Timestamp::minute_rounded_down);
        let shown = now
            .minute_rounded_down()
            .saturating_sub(TRIES_SHOWN_FOR.as_secs() / 60);
        self.minutes
            .retain(|(minute, _, _)| *minute >= measured.min(shown));
        self.oldest = self
            .oldest
            .take()
            .filter(|event| now.since(event.accepted_at) < UNDELIVERED_AGE_MAX);
        self.stuck.forget_outdated(now);
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
    pub fn oldest_undelivered(&self) -> Option<&UndeliveredEvent> {
        self.oldest.as_ref()
    }

    /// The last time at which an event was not at its end after its try.
    pub(super) fn undelivered_at(&self) -> Option<Timestamp> {
        self.undelivered_at
    }

    fn count_minute(&mut self, minute: u64, arrived: u32, failed: u32) {
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

    /// Notes that an event waits; whether it does: what is said of it may come late.
    fn note_waiting(&mut self, seen: &SeenTry<'_>) -> bool {
        if self.ends.may_have(seen.key, seen.at) {
            return false;
        }
        self.undelivered_at = self.undelivered_at.max(Some(seen.at));
        let event = UndeliveredEvent {
            key: seen.key.to_owned(),
            accepted_at: seen.accepted_at,
            seen_at: seen.at,
        };
        self.oldest = older_event(self.oldest.take(), Some(event));
        true
    }

    fn note_end(&mut self, seen: &SeenTry<'_>) {
        if self.oldest.as_ref().is_some_and(|it| it.key == seen.key) {
            self.oldest = None;
        }
        self.stuck.end_event(seen.key);
        if !seen.is_first {
            self.ends.add_end(event_digest(seen.key), seen.at);
        }
    }
}

impl ArrivalShare {
    fn add_minute(&mut self, minute: u64, arrived: u32, failed: u32) {
        self.arrived = self.arrived.saturating_add(arrived);
        self.failed = self.failed.saturating_add(failed);
        let from = Timestamp::from_millis(minute * 60_000);
        self.from = Some(self.from.map_or(from, |first| first.min(from)));
    }
}

/// The failure of the later time: records may come late.
fn later_failure(one: Option<LastFailure>, other: Option<LastFailure>) -> Option<LastFailure> {
    one.into_iter()
        .chain(other)
        .max_by_key(|failure| failure.at)
}

/// The older of two events; the first of two that are as old. One that was seen twice waited until
/// it was last seen.
fn older_event(
    one: Option<UndeliveredEvent>,
    other: Option<UndeliveredEvent>,
) -> Option<UndeliveredEvent> {
    match (one, other) {
        (Some(one), Some(other)) if other.key == one.key => Some(UndeliveredEvent {
            seen_at: one.seen_at.max(other.seen_at),
            ..one
        }),
        (Some(one), Some(other)) if other.accepted_at < one.accepted_at => Some(other),
        (one, other) => one.or(other),
    }
}
