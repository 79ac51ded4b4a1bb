//! What is known of all subscriptions whose tries fail, or did a short time ago: one object.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::incident::{DelayedEvent, DueNotice, LinkIncident, SubscriptionIncident};
use super::missed::{MissedEnd, MissedEvents};
use super::tries::SubscriptionTries;
use crate::model::{ArrivalSettings, SubscriptionName, Timestamp, TopicName};

/// Most subscriptions in the book. Any beyond count as healthy: 2,000 entries of some 500 bytes
/// are read and written as one object in some ten milliseconds.
pub const SUBSCRIPTIONS_IN_BOOK_MAX: usize = 2000;

/// The writes that the book remembers, so that a repeated one is counted once: more than one writer
/// makes within the minutes after which its messages come back.
const RUNS_KEPT_MAX: usize = 32;

/// A subscription in the book.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionHealth {
    /// Its tries.
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
                let known = known.and_then(|missed| missed.end.as_mut());
                let is_same = |known: &&mut MissedEnd| {
                    (known.disabled_at, known.found_at) == (end.disabled_at, end.found_at)
                };
                if let Some(known) = known.filter(is_same) {
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
                let is_known = |known: &LinkIncident| known.since == incident.since;
                if self.links.get(link).is_some_and(is_known) {
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
        let of_link = |health: &SubscriptionHealth| {
            let incident = health.incident.as_ref();
            incident.is_some_and(|incident| incident.link.as_deref() == Some(link))
        };
        for health in self.subscriptions.values_mut().filter(|it| of_link(it)) {
            health.incident = None;
            health.tries.begin_anew();
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
