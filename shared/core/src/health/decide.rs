//! The incidents that begin and end now.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::book::{HealthBook, SubscriptionHealth};
use super::incident::{DelayedEvent, LinkIncident, SubscriptionIncident};
use super::state::is_held_off;
use crate::circuit::TargetCondition;
use crate::model::{ArrivalSettings, Timestamp};

/// The number of failing subscriptions of one link from which on the link is taken for the cause,
/// whatever its circuit says: behind one gateway, they fail together.
const SUBSCRIPTIONS_TOGETHER_MIN: usize = 5;

/// The time for which a subscription stays in the book after its last failure, or the last end of
/// an event that was tried before: its failure may be told of later.
const KNOWN_FOR: Duration = Duration::from_hours(1);

/// The state of a subscription in the book, as its record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordedStatus {
    /// Events are delivered.
    Active,
    /// It is paused, pending or disabled, or it does not exist any more.
    Stopped,
    /// The record of the subscription cannot be read.
    Unknown,
}

/// Facts about a subscription that are known elsewhere.
#[derive(Debug, Clone)]
pub struct HealthFacts {
    /// The state that its record says.
    pub standing: RecordedStatus,
    /// The link of its endpoint.
    pub link: String,
    /// The circuit's condition of the subscription.
    pub own: Option<TargetCondition>,
    /// The circuit's condition of the link.
    pub of_link: Option<TargetCondition>,
}

impl HealthFacts {
    fn is_held_off(&self) -> bool {
        let conditions = [&self.own, &self.of_link];
        conditions.into_iter().flatten().any(is_held_off)
    }

    fn is_link_held_off(&self) -> bool {
        self.of_link.as_ref().is_some_and(is_held_off)
    }
}

impl HealthBook {
    /// Opens the incidents that begin, and closes those that are over. `links` has the conditions
    /// of links. What no facts are known of stays as it is.
    pub fn update_incidents(
        &mut self,
        facts: &BTreeMap<String, HealthFacts>,
        links: &BTreeMap<String, TargetCondition>,
        now: Timestamp,
        settings: &ArrivalSettings,
    ) {
        self.forget_stopped(facts);
        self.close_links(links, now, settings);
        self.close_incidents(now, settings);
        self.open_incidents(facts, now, settings);
        self.note_delays(now, settings);
        self.forget_outdated(facts, now, settings);
    }

    /// Whether a notice is due, or the passing of time may lead to a decision within the hour. Of
    /// what the circuit holds it says nothing.
    pub fn may_change_soon(&self, now: Timestamp, settings: &ArrivalSettings) -> bool {
        !self.due_notices().is_empty()
            || self
                .subscriptions
                .values()
                .any(|health| was_tried_lately(health, now) || is_late_soon(health, now, settings))
    }

    fn forget_stopped(&mut self, facts: &BTreeMap<String, HealthFacts>) {
        self.subscriptions.retain(|key, _| {
            let facts = facts.get(key);
            facts.is_none_or(|facts| facts.standing != RecordedStatus::Stopped)
        });
    }

    /// The incident of a link whose circuit held it is over when that has ended for a while, one of
    /// subscriptions that failed together when half of them are well, or forgotten.
    fn close_links(
        &mut self,
        links: &BTreeMap<String, TargetCondition>,
        now: Timestamp,
        settings: &ArrivalSettings,
    ) {
        for (link, incident) in &mut self.links {
            if !incident.told || incident.recovered_at.is_some() {
                continue;
            }
            let of_link = self
                .subscriptions
                .values()
                .filter(|health| health.failing_link() == Some(link));
            let mut failing = 0;
            let mut recovered = 0;
            for health in of_link {
                if health.tries.is_recovered(settings) || health.tries.is_forgotten(now) {
                    recovered += 1;
                } else {
                    failing += 1;
                }
            }
            let is_well = links.get(link).is_none_or(|condition| {
                !is_held_off(condition)
                    && condition.next_probe().is_none()
                    && now >= condition.until + settings.failing_after
            });
            if is_well && (incident.is_of_circuit || recovered >= failing) {
                incident.recovered_at = Some(now);
            }
        }
    }

    fn close_incidents(&mut self, now: Timestamp, settings: &ArrivalSettings) {
        for health in self.subscriptions.values_mut() {
            let Some(incident) = &mut health.incident else {
                continue;
            };
            let is_open = incident.link.is_none() && incident.told;
            let is_over = health.tries.is_recovered(settings) || health.tries.is_forgotten(now);
            if is_open && incident.recovered_at.is_none() && is_over {
                incident.recovered_at = Some(now);
            }
        }
        let mut orphans = Vec::new();
        for (key, health) in &self.subscriptions {
            // The incident of a link that nothing remembers any more.
            let link = health.failing_link();
            if link.is_some_and(|link| !self.links.contains_key(link)) {
                orphans.push(key.clone());
            }
        }
        for key in orphans {
            self.end_incident(&key);
        }
    }

    fn open_incidents(
        &mut self,
        facts: &BTreeMap<String, HealthFacts>,
        now: Timestamp,
        settings: &ArrivalSettings,
    ) {
        let mut by_link = BTreeMap::<&str, (Vec<&str>, usize)>::new();
        for (key, health) in &self.subscriptions {
            let Some(facts) = facts.get(key) else {
                continue;
            };
            if facts.standing != RecordedStatus::Active {
                continue;
            }
            let (new, own) = by_link.entry(&facts.link).or_default();
            let tries = &health.tries;
            match &health.incident {
                None if tries.is_failing(now, settings)
                    || facts.is_held_off() && tries.is_without_arrival(now, settings) =>
                {
                    new.push(key);
                }
                Some(incident) if incident.link.is_none() => *own += 1,
                _ => {}
            }
        }
        let mut opened = Vec::new();
        for (link, (new, own)) in by_link {
            let is_of_circuit = new
                .iter()
                .any(|key| facts.get(*key).is_some_and(HealthFacts::is_link_held_off));
            let is_known = self
                .links
                .get(link)
                .is_some_and(|it| it.recovered_at.is_none());
            let is_cause =
                is_of_circuit || is_known || new.len() + own >= SUBSCRIPTIONS_TOGETHER_MIN;
            for key in new {
                opened.push((
                    key.to_owned(),
                    is_cause.then(|| (link.to_owned(), is_of_circuit)),
                ));
            }
        }
        let known: BTreeSet<_> = self.links.keys().cloned().collect();
        for (key, cause) in opened {
            self.open_incident(&key, cause, &known, now, settings);
        }
    }

    /// Opens an incident. That of a link in `known` was opened before, and keeps its time: its
    /// notice's id has it.
    fn open_incident(
        &mut self,
        key: &str,
        cause: Option<(String, bool)>,
        known: &BTreeSet<String>,
        now: Timestamp,
        settings: &ArrivalSettings,
    ) {
        let Some(health) = self.subscriptions.get_mut(key) else {
            return;
        };
        let from = health.tries.measured_share(now, settings).from;
        let since = health.tries.row_since().or(from).unwrap_or(now);
        health.tries.begin_incident();
        health.incident = Some(SubscriptionIncident {
            since,
            link: cause.as_ref().map(|(link, _)| link.clone()),
            told: false,
            recovered_at: None,
        });
        if let Some((link, is_of_circuit)) = cause {
            let is_known = known.contains(&link);
            let incident = self.links.entry(link).or_insert(LinkIncident {
                since,
                is_of_circuit,
                told: false,
                recovered_at: None,
            });
            if !is_known {
                incident.since = incident.since.min(since);
            }
            if !incident.told {
                incident.is_of_circuit |= is_of_circuit;
            }
        }
    }

    /// Notes the events that are late. Where a link is the cause, its notice has told of them.
    fn note_delays(&mut self, now: Timestamp, settings: &ArrivalSettings) {
        for health in self.subscriptions.values_mut() {
            let oldest = health
                .tries
                .oldest_undelivered()
                .map(|event| event.accepted_at);
            match (health.delayed, oldest) {
                (None, Some(accepted_at))
                    if health.failing_link().is_none()
                        && now >= accepted_at + settings.delayed_after =>
                {
                    health.delayed = Some(DelayedEvent {
                        accepted_at,
                        told: false,
                    });
                }
                (Some(delayed), None) if delayed.told => {
                    let last_seen = health.tries.undelivered_at();
                    if last_seen.is_none_or(|at| now >= at + settings.delayed_after) {
                        health.delayed = None;
                    }
                }
                _ => {}
            }
        }
    }

    /// One that the circuit holds off stays, so that an arrival is noted which disproves the hold.
    fn forget_outdated(
        &mut self,
        facts: &BTreeMap<String, HealthFacts>,
        now: Timestamp,
        settings: &ArrivalSettings,
    ) {
        self.subscriptions.retain(|key, health| {
            health.tries.forget_outdated(now, settings);
            let known_at = health.tries.known_at();
            let is_recent = known_at.is_some_and(|at| now < at + KNOWN_FOR);
            let is_open = health.incident.is_some() || health.delayed.is_some();
            let is_held_off = facts.get(key).is_some_and(HealthFacts::is_held_off);
            let does_wait = health.tries.oldest_undelivered().is_some();
            is_recent || is_open || is_held_off || does_wait
        });
    }
}

fn was_tried_lately(health: &SubscriptionHealth, now: Timestamp) -> bool {
    let failed_at = health.tries.last_failure().map(|failure| failure.at);
    let tried_at = failed_at.max(health.tries.last_arrived_at());
    tried_at.is_some_and(|at| now < at + KNOWN_FOR)
}

/// Whether the oldest event is late within the hour, and an operator is to be told.
fn is_late_soon(health: &SubscriptionHealth, now: Timestamp, settings: &ArrivalSettings) -> bool {
    if health.delayed.is_some() || health.failing_link().is_some() {
        return false;
    }
    health
        .tries
        .oldest_undelivered()
        .is_some_and(|event| now + KNOWN_FOR >= event.accepted_at + settings.delayed_after)
}
