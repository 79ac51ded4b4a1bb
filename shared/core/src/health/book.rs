//! The book of all subscriptions whose tries fail, or did a short time ago: one object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::incident::{DelayedEvent, DueNotice, LinkIncident, SubscriptionIncident};
use super::missed::{MissedEnd, MissedEvents, MissedFacts};
use super::tries::SubscriptionTries;
use crate::model::{
    ArrivalSettings, KeepingMissed, MISSED_TOLD_BEFORE, MISSED_TOLD_PERCENT, SubscriptionName,
    Timestamp, TopicName,
};

/// Most subscriptions in the book. Any beyond count as healthy: an entry takes some 500 bytes, and up
/// to 1,500 once it has failed for an hour, so that one object of at most 3 MB is read and written.
pub const SUBSCRIPTIONS_IN_BOOK_MAX: usize = 2000;

/// The writes that the book remembers, so that a repeated one is counted once: more than one writer
/// makes within the minutes after which its messages come back.
const RUNS_KEPT_MAX: usize = 32;

/// A subscription in the book.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionHealth {
    /// The tries of the subscription.
    #[serde(default)]
    pub tries: SubscriptionTries,
    /// The incident that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incident: Option<SubscriptionIncident>,
    /// The event of which an operator is told that it is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delayed: Option<DelayedEvent>,
}

/// The book: the subscriptions that are failing, or were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HealthBook {
    #[serde(default)]
    pub(super) subscriptions: BTreeMap<String, SubscriptionHealth>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) links: BTreeMap<String, LinkIncident>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    runs: Vec<String>,
    /// Dead letters of what disabled subscriptions miss.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) missed: BTreeMap<String, MissedEvents>,
}

/// The key of a subscription in the book: both names, folded.
pub fn book_key(topic: &TopicName, subscription: &SubscriptionName) -> String {
    [&*topic.folded(), ".", &subscription.folded()].concat()
}

impl SubscriptionHealth {
    /// Whether it fails, and was tried since then: what is not tried says nothing any more.
    pub fn has_failed_since(
        &self,
        since: Timestamp,
        now: Timestamp,
        settings: &ArrivalSettings,
    ) -> bool {
        let is_open = self
            .incident
            .as_ref()
            .is_some_and(|incident| incident.recovered_at.is_none());
        let is_failing = is_open || self.tries.is_failing(now, settings);
        is_failing && self.tries.known_at().is_some_and(|at| at >= since)
    }

    /// The link that its incident is laid to, if it is in one and a link is the cause.
    pub(super) fn failing_link(&self) -> Option<&String> {
        self.incident.as_ref()?.link.as_ref()
    }
}

impl HealthBook {
    /// A subscription; `None` of one of which no failure is known.
    pub fn subscription(&self, key: &str) -> Option<&SubscriptionHealth> {
        self.subscriptions.get(key)
    }

    /// All subscriptions by their keys.
    pub fn subscriptions(&self) -> impl Iterator<Item = (&str, &SubscriptionHealth)> {
        self.subscriptions
            .iter()
            .map(|(key, health)| (key.as_str(), health))
    }

    /// The links that are failing.
    pub fn failing_links(&self) -> impl Iterator<Item = (&str, &LinkIncident)> {
        self.links
            .iter()
            .map(|(link, incident)| (link.as_str(), incident))
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.subscriptions.is_empty() && self.links.is_empty() && self.missed.is_empty()
    }

    /// Whether these tries would change the book.
    pub fn is_changed_by(&self, tries: &BTreeMap<String, SubscriptionTries>) -> bool {
        tries
            .iter()
            .any(|(key, tries)| tries.has_news() || self.subscriptions.contains_key(key))
    }

    /// Adds tries that one writer gathered; whether anything changed. Those of a `run` that was
    /// added before are left out.
    pub fn add_tries(&mut self, tries: BTreeMap<String, SubscriptionTries>, run: &str) -> bool {
        if self.runs.iter().any(|known| known == run) || !self.is_changed_by(&tries) {
            return false;
        }
        for (key, mut tries) in tries {
            let is_full = self.subscriptions.len() >= SUBSCRIPTIONS_IN_BOOK_MAX;
            match self.subscriptions.get_mut(&key) {
                Some(known) => {
                    known.tries.append_later(tries);
                    known.tries.finish_adding();
                }
                None if tries.has_news() && !is_full => {
                    tries.finish_adding();
                    let health = SubscriptionHealth {
                        tries,
                        ..SubscriptionHealth::default()
                    };
                    self.subscriptions.insert(key, health);
                }
                None => {}
            }
        }
        if self.runs.len() >= RUNS_KEPT_MAX {
            self.runs.remove(0);
        }
        self.runs.push(run.to_owned());
        true
    }

    /// The notices that are to be sent.
    pub fn due_notices(&self) -> Vec<DueNotice> {
        let mut due = Vec::new();
        for (link, incident) in &self.links {
            let link = link.clone();
            let incident = incident.clone();
            if !incident.told {
                due.push(DueNotice::LinkFailing { link, incident });
            } else if incident.recovered_at.is_some() {
                due.push(DueNotice::LinkRecovered { link, incident });
            }
        }
        for (key, health) in &self.subscriptions {
            if let Some(incident) = health.incident.clone().filter(|it| it.link.is_none()) {
                let key = key.clone();
                if !incident.told {
                    due.push(DueNotice::Failing { key, incident });
                } else if incident.recovered_at.is_some() {
                    due.push(DueNotice::Recovered { key, incident });
                }
            }
            if let Some(delayed) = health.delayed.filter(|it| !it.told) {
                let key = key.clone();
                due.push(DueNotice::Delayed { key, delayed });
            }
        }
        for (key, missed) in &self.missed {
            if let Some(end) = missed.end.filter(|end| !end.told) {
                let key = key.clone();
                due.push(DueNotice::MissedEnds { key, end });
            }
        }
        due
    }

    /// Marks a notice as sent. An incident that is over is forgotten, and its subscriptions are
    /// counted anew.
    pub fn mark_told(&mut self, notice: &DueNotice) {
        match notice {
            DueNotice::Failing { key, incident } => {
                if let Some(known) = self.incident_of(key, incident) {
                    known.told = true;
                }
            }
            DueNotice::Recovered { key, incident } => {
                if self.incident_of(key, incident).is_some() {
                    self.end_incident(key);
                }
            }
            DueNotice::Delayed { key, delayed } => {
                let known = self.subscriptions.get_mut(key);
                let known = known.and_then(|health| health.delayed.as_mut());
                if let Some(known) = known.filter(|it| it.accepted_at == delayed.accepted_at) {
                    known.told = true;
                }
            }
            DueNotice::MissedEnds { key, end } => {
                let known = self.missed.get_mut(key);
                if let Some(known) = known.and_then(|missed| missed.end.as_mut())
                    && known.disabled_at == end.disabled_at
                    && known.found_at == end.found_at
                {
                    known.told = true;
                }
            }
            DueNotice::LinkFailing { link, incident } => {
                let known = self.links.get_mut(link);
                if let Some(known) = known.filter(|it| it.since == incident.since) {
                    known.told = true;
                }
            }
            DueNotice::LinkRecovered { link, incident } => {
                let known = self.links.get(link);
                if known.is_some_and(|it| it.since == incident.since) {
                    self.end_link(link);
                }
            }
        }
    }

    /// Forgets a subscription, because it is gone, or its operator stopped it.
    pub fn forget_subscription(&mut self, key: &str) {
        self.subscriptions.remove(key);
    }

    pub(super) fn end_incident(&mut self, key: &str) {
        if let Some(health) = self.subscriptions.get_mut(key) {
            health.incident = None;
            health.tries.begin_anew();
        }
    }

    fn end_link(&mut self, link: &str) {
        self.links.remove(link);
        for health in self.subscriptions.values_mut() {
            if health.failing_link().is_some_and(|it| it == link) {
                health.incident = None;
                health.tries.begin_anew();
            }
        }
    }

    fn incident_of(
        &mut self,
        key: &str,
        incident: &SubscriptionIncident,
    ) -> Option<&mut SubscriptionIncident> {
        let known = self.subscriptions.get_mut(key)?.incident.as_mut();
        known.filter(|known| known.since == incident.since && known.link.is_none())
    }
}

/// The events that disabled subscriptions miss: deadletter counts dead letters when it has written
/// them, and notes a subscription for which there is no room. wake decides about notices, and
/// forgets a subscription that is not disabled any more.
impl HealthBook {
    /// The events that a subscription misses and that were kept; `None` where nothing is known.
    pub fn missed_by(&self, key: &str) -> Option<&MissedEvents> {
        self.missed.get(key)
    }

    /// The keys of all subscriptions that miss what is kept.
    pub fn missing_subscriptions(&self) -> impl Iterator<Item = &str> {
        self.missed.keys().map(String::as_str)
    }

    /// Bytes of dead letters for which there is room, of `bytes_max` for those of all disabled
    /// subscriptions. A subscription beyond the number that the book takes has none.
    pub fn room_for_missed(&self, key: &str, bytes_max: Option<u64>) -> u64 {
        if !self.has_room_for(key) {
            return 0;
        }
        bytes_max.map_or(u64::MAX, |max| max.saturating_sub(self.missed_bytes()))
    }

    /// Counts dead letters that were written, of `bytes_max` for those of all. Those of a
    /// subscription beyond the number that the book takes are not counted.
    pub fn add_missed(&mut self, key: &str, events: u64, bytes: u64, bytes_max: Option<u64>) {
        if !self.has_room_for(key) {
            return;
        }
        let known = self.missed.entry(key.to_owned()).or_default();
        known.events = known.events.saturating_add(events);
        known.bytes = known.bytes.saturating_add(bytes);
        let all = u128::from(self.missed_bytes()) * 100;
        let has_little_room =
            bytes_max.is_some_and(|max| all >= u128::from(max) * u128::from(MISSED_TOLD_PERCENT));
        for known in self.missed.values_mut() {
            known.has_little_room = has_little_room;
        }
    }

    /// Notes that something was skipped for want of room, so that an operator is told of a
    /// subscription of which nothing was kept too; whether that is new.
    pub fn note_skipped(&mut self, key: &str) -> bool {
        if !self.has_room_for(key) {
            return false;
        }
        let known = self.missed.entry(key.to_owned()).or_default();
        !std::mem::replace(&mut known.was_skipped, true)
    }

    /// Forgets what is not disabled any more, and finds the ends of which an operator is to be
    /// told. What no facts are known of stays as it is. An end by room is followed by one by time
    /// when that is near.
    pub fn decide_missed(&mut self, facts: &BTreeMap<String, MissedFacts>, now: Timestamp) {
        self.missed
            .retain(|key, _| facts.get(key) != Some(&MissedFacts::Other));
        for (key, missed) in &mut self.missed {
            let Some(MissedFacts::Disabled(disabled_at, keeping)) = facts.get(key).copied() else {
                continue;
            };
            let former = missed.end.take_if(|end| end.disabled_at != disabled_at);
            missed.was_skipped &= former.is_none();
            let at = match keeping {
                KeepingMissed::Never => continue,
                KeepingMissed::Until(at) => Some(at),
                KeepingMissed::Always => None,
            };
            let is_time_near = at.is_some_and(|at| at <= now + MISSED_TOLD_BEFORE);
            let is_found = match &missed.end {
                None => is_time_near || missed.has_little_room || missed.was_skipped,
                Some(end) => end.by_room && is_time_near,
            };
            if is_found {
                missed.end = Some(MissedEnd {
                    disabled_at,
                    found_at: now,
                    at,
                    by_room: !is_time_near,
                    told: false,
                });
            }
        }
    }

    /// Whether the book has, or has room for, what this subscription misses.
    fn has_room_for(&self, key: &str) -> bool {
        self.missed.len() < SUBSCRIPTIONS_IN_BOOK_MAX || self.missed.contains_key(key)
    }

    fn missed_bytes(&self) -> u64 {
        let bytes = self.missed.values().map(|missed| missed.bytes);
        bytes.fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::DISABLED_KEPT;

    const DAY_MS: u64 = 86_400_000;
    const DISABLED_AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);
    const TOLD_AT: Timestamp = Timestamp::from_millis(1_700_000_000_000 + 6 * DAY_MS);
    const END: Timestamp = Timestamp::from_millis(1_700_000_000_000 + 7 * DAY_MS);

    fn facts(key: &str, keeping: KeepingMissed) -> BTreeMap<String, MissedFacts> {
        let disabled = MissedFacts::Disabled(DISABLED_AT, keeping);
        BTreeMap::from([(key.to_owned(), disabled)])
    }

    #[test]
    fn dead_letters_of_all_share_the_room() {
        let mut book = HealthBook::default();
        assert_eq!(book.room_for_missed("a", Some(100)), 100);
        book.add_missed("a", 2, 60, Some(100));
        book.add_missed("b", 1, 29, Some(100));
        assert_eq!(book.room_for_missed("c", Some(100)), 11);
        assert!(!book.missed_by("a").unwrap().has_little_room);
        book.add_missed("b", 1, 1, Some(100));
        let missed = ["a", "b"].map(|key| *book.missed_by(key).unwrap());
        assert_eq!(missed.map(|it| (it.events, it.bytes)), [(2, 60), (2, 30)]);
        assert_eq!(missed.map(|it| it.has_little_room), [true, true]);
        book.add_missed("b", 1, 90, Some(100));
        assert_eq!(book.room_for_missed("a", Some(100)), 0);
        assert_eq!(book.room_for_missed("a", None), u64::MAX);
    }

    #[test]
    fn subscription_beyond_the_room_of_the_book_has_none() {
        let mut book = HealthBook::default();
        for n in 0..SUBSCRIPTIONS_IN_BOOK_MAX {
            book.add_missed(&format!("orders.{n}"), 1, 1, None);
        }
        assert_eq!(book.room_for_missed("orders.x", None), 0);
        assert_eq!(book.room_for_missed("orders.7", None), u64::MAX);
        book.add_missed("orders.x", 1, 1, None);
        assert!(!book.note_skipped("orders.x"));
        assert_eq!(book.missed_by("orders.x"), None);
        book.add_missed("orders.7", 1, 1, None);
        assert_eq!(book.missed_by("orders.7").unwrap().events, 2);
    }

    #[test]
    fn subscription_of_which_nothing_was_kept_is_told_of_once() {
        let mut book = HealthBook::default();
        book.add_missed("a", 1, 80, Some(100));
        assert!(book.note_skipped("b"));
        assert!(!book.note_skipped("b"));
        let skipped = *book.missed_by("b").unwrap();
        assert_eq!((skipped.events, skipped.bytes), (0, 0));
        assert_eq!(book.room_for_missed("b", Some(100)), 20);
        let facts = facts("b", KeepingMissed::Always);
        book.decide_missed(&facts, DISABLED_AT);
        book.mark_told(&book.due_notices()[0]);
        book.decide_missed(&facts, END);
        assert_eq!(book.due_notices(), []);
    }

    /// A large dead letter finds no room, and then a smaller one of another subscription does.
    #[test]
    fn skipped_subscription_is_told_of_whatever_others_keep() {
        for other in ["a", "b"] {
            let mut book = HealthBook::default();
            book.add_missed("a", 1, 80, Some(100));
            assert!(book.note_skipped("b"));
            book.add_missed(other, 1, 5, Some(100));
            assert!(!book.note_skipped("b"), "{other}");
            book.decide_missed(&facts("b", KeepingMissed::Always), DISABLED_AT);
            let end = book.missed_by("b").unwrap().end.unwrap();
            assert!(end.by_room, "{other}");
        }
    }

    /// Events that the subscription missed before have an end of their own.
    #[test]
    fn skipped_subscription_that_is_disabled_again_begins_anew() {
        let mut book = HealthBook::default();
        book.note_skipped("a");
        book.decide_missed(&facts("a", KeepingMissed::Always), DISABLED_AT);
        book.mark_told(&book.due_notices()[0]);
        let again = MissedFacts::Disabled(END, KeepingMissed::Always);
        book.decide_missed(&[("a".to_owned(), again)].into(), END);
        assert_eq!(book.due_notices(), []);
        assert!(book.note_skipped("a"));
    }

    #[test]
    fn end_by_time_is_told_a_day_before() {
        let mut book = HealthBook::default();
        book.add_missed("a", 1, 1, None);
        let facts = facts("a", KeepingMissed::Until(END));
        book.decide_missed(&facts, Timestamp::from_millis(TOLD_AT.as_millis() - 1));
        assert_eq!(book.due_notices(), []);
        book.decide_missed(&facts, TOLD_AT);
        let due = book.due_notices();
        let end = MissedEnd {
            disabled_at: DISABLED_AT,
            found_at: TOLD_AT,
            at: Some(END),
            by_room: false,
            told: false,
        };
        assert_eq!(book.missed_by("a").unwrap().end, Some(end));
        assert_eq!(due.len(), 1);
        book.mark_told(&due[0]);
        book.decide_missed(&facts, END);
        assert_eq!(book.due_notices(), []);
    }

    #[test]
    fn end_of_the_room_is_told_whatever_the_time() {
        for (keeping, expected) in [
            (KeepingMissed::Until(END), 1),
            (KeepingMissed::Always, 1),
            (KeepingMissed::Never, 0),
        ] {
            let mut book = HealthBook::default();
            book.add_missed("a", 1, 90, Some(100));
            book.decide_missed(&facts("a", keeping), DISABLED_AT);
            assert_eq!(book.due_notices().len(), expected, "{keeping:?}");
        }
    }

    #[test]
    fn end_by_room_is_followed_once_by_the_end_by_time() {
        let mut book = HealthBook::default();
        book.add_missed("a", 1, 90, Some(100));
        let facts = facts("a", KeepingMissed::Until(END));
        let mut told = Vec::new();
        let mut by_room = None;
        for now in [DISABLED_AT, DISABLED_AT + MISSED_TOLD_BEFORE, TOLD_AT, END] {
            book.decide_missed(&facts, now);
            // A late mark of the first notice does not mark the second.
            if let Some(notice) = &by_room {
                book.mark_told(notice);
            }
            for notice in book.due_notices() {
                book.mark_told(&notice);
                by_room.get_or_insert_with(|| notice.clone());
                let end = book.missed_by("a").unwrap().end.unwrap();
                told.push((end.found_at, end.at, end.by_room));
            }
        }
        let expected = [(DISABLED_AT, Some(END), true), (TOLD_AT, Some(END), false)];
        assert_eq!(told, expected);
    }

    #[test]
    fn subscription_that_is_enabled_is_forgotten() {
        let mut book = HealthBook::default();
        book.add_missed("a", 1, 60, None);
        book.add_missed("b", 1, 30, None);
        let facts = BTreeMap::from([("a".to_owned(), MissedFacts::Other)]);
        book.decide_missed(&facts, DISABLED_AT);
        assert_eq!(book.missing_subscriptions().collect::<Vec<_>>(), ["b"]);
        assert_eq!(book.room_for_missed("a", Some(100)), 70);
    }

    #[test]
    fn subscription_that_is_disabled_again_has_an_end_of_its_own() {
        let mut book = HealthBook::default();
        book.add_missed("a", 1, 1, None);
        book.decide_missed(&facts("a", KeepingMissed::Until(END)), END);
        book.mark_told(&book.due_notices()[0]);
        let again = MissedFacts::Disabled(END, KeepingMissed::Until(END + DISABLED_KEPT));
        let again = BTreeMap::from([("a".to_owned(), again)]);
        book.decide_missed(&again, END);
        assert_eq!(book.missed_by("a").unwrap().end, None);
        book.decide_missed(&again, END + DISABLED_KEPT);
        assert_eq!(book.due_notices().len(), 1);
    }
}
