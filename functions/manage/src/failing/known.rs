//! Facts that are known of failures, and the subscriptions that may fail by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use posthaste_core::api::WaitingCount;
use posthaste_core::circuit::{DeliveryTarget, LinkShard, TargetCondition};
use posthaste_core::health::{HealthBook, LinkIncident, SubscriptionHealth, book_key};
use posthaste_core::model::{ArrivalSettings, Link, SubscriptionName, Timestamp, TopicName};
use posthaste_core::stored::layout;
use posthaste_services::AllWaiting;

/// Most subscriptions that are looked at: as many topics may have to be read.
const CANDIDATES_MAX: usize = 1000;

/// The facts that are known of failures.
#[derive(Default)]
pub(super) struct KnownFailures {
    /// The parts of the links' health; `None` where they could not be read.
    pub(super) shards: Option<Vec<(usize, Arc<LinkShard>)>>,
    pub(super) book: HealthBook,
    /// The events that wait; `None` where they could not be counted.
    pub(super) waiting: Option<AllWaiting>,
}

/// A subscription that may fail, under its folded names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) topic: TopicName,
    pub(super) name: SubscriptionName,
    /// Whether its row is shown even where its topic cannot be read.
    pub(super) is_certain: bool,
    /// The link on which it fails, where that is known without its topic.
    pub(super) link: Option<Link>,
}

/// The subscriptions that may fail, by their keys in the book.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) by_key: BTreeMap<String, Candidate>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

impl KnownFailures {
    /// Whether the circuit could be read.
    pub(super) fn is_circuit_known(&self) -> bool {
        self.shards.is_some()
    }

    /// All conditions of the circuit.
    pub(super) fn conditions(&self) -> impl Iterator<Item = (DeliveryTarget, &TargetCondition)> {
        self.shards
            .iter()
            .flatten()
            .flat_map(|(_, shard)| shard.conditions())
    }

    /// The circuit's condition of a target; `None` if it is well.
    pub(super) fn condition(&self, target: &DeliveryTarget) -> Option<&TargetCondition> {
        self.shards
            .iter()
            .flatten()
            .find_map(|(_, shard)| shard.condition(target))
    }

    /// The incident of a link.
    pub(super) fn link_incident(&self, link: &str) -> Option<&LinkIncident> {
        let mut links = self.book.failing_links();
        links.find_map(|(known, incident)| (known == link).then_some(incident))
    }

    /// The number of events that a disabled subscription misses and that were kept.
    pub(super) fn missed_events(&self, topic: &TopicName, name: &SubscriptionName) -> u64 {
        let missed = self.book.missed_by(&book_key(topic, name));
        missed.map_or(0, |missed| missed.events)
    }

    /// Whether there was no time to count all that waits.
    pub(super) fn is_count_cut(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.is_cut)
    }

    /// The subscriptions that may fail. Those that are known to are found first, so that the others
    /// alone are cut.
    pub(super) fn candidates(&self, now: Timestamp, settings: &ArrivalSettings) -> Candidates {
        let mut found = Candidates::default();
        let is_link_failing = self.add_conditions(&mut found);
        self.add_incidents(&mut found);
        self.add_waiting(&mut found, true, |count| count.held > 0);
        self.add_tried(&mut found, |health| health.tries.is_failing(now, settings));
        for key in self.book.missing_subscriptions() {
            found.add_owner(key, false, None);
        }
        if is_link_failing {
            // Any of these may be on the link.
            self.add_tried(&mut found, |_| true);
            self.add_waiting(&mut found, false, may_be_failing);
        } else {
            self.add_waiting(&mut found, false, may_be_stopped);
        }
        found
    }

    /// Adds the subscriptions that the circuit knows; whether it knows a whole link.
    fn add_conditions(&self, found: &mut Candidates) -> bool {
        let mut is_link_failing = false;
        for (target, _) in self.conditions() {
            let DeliveryTarget::Subscription { link, topic, name } = target else {
                is_link_failing = true;
                continue;
            };
            let candidate = Candidate {
                topic,
                name,
                is_certain: true,
                link: Some(link),
            };
            found.add(candidate);
        }
        is_link_failing
    }

    fn add_incidents(&self, found: &mut Candidates) {
        for (key, health) in self.book.subscriptions() {
            let Some(incident) = &health.incident else {
                continue;
            };
            let link = incident.link.as_deref().and_then(DeliveryTarget::parse);
            let link = link.map(|target| target.link().clone());
            found.add_owner(key, true, link);
        }
    }

    fn add_tried(&self, found: &mut Candidates, is_meant: impl Fn(&SubscriptionHealth) -> bool) {
        for (key, health) in self.book.subscriptions() {
            if is_meant(health) {
                found.add_owner(key, false, None);
            }
        }
    }

    fn add_waiting(
        &self,
        found: &mut Candidates,
        is_certain: bool,
        is_meant: impl Fn(&WaitingCount) -> bool,
    ) {
        let groups = self.waiting.iter().flat_map(|waiting| &waiting.by_group);
        for (group, count) in groups {
            if is_meant(count) {
                found.add_owner(group, is_certain, None);
            }
        }
    }
}

/// Whether these events may be those of a subscription on a link that fails. Those that were
/// published for later wait anyway, and of those that only records know, what fails is in the book:
/// on AWS every busy subscription has some.
fn may_be_failing(count: &WaitingCount) -> bool {
    let queued = [count.due, count.delayed, count.under_way];
    has_tried_parked(count) || queued.into_iter().any(|events| events > 0)
}

/// Whether these events may be those of a stopped subscription. Of one, what is due is held at
/// once, so that none is due or under way for long. Records tell no delayed event from a due one:
/// of those in SQS each is due within a quarter of an hour.
fn may_be_stopped(count: &WaitingCount) -> bool {
    has_tried_parked(count) || count.delayed > 0
}

/// Whether there are parked events that were not published for later.
fn has_tried_parked(count: &WaitingCount) -> bool {
    count.parked > count.scheduled
}

impl Candidates {
    /// Adds the subscription of a key in the book, or of a group.
    fn add_owner(&mut self, key: &str, is_certain: bool, link: Option<Link>) {
        if let Some((topic, name)) = layout::folder_owner(key) {
            let candidate = Candidate {
                topic,
                name,
                is_certain,
                link,
            };
            self.add(candidate);
        }
    }

    fn add(&mut self, candidate: Candidate) {
        let key = book_key(&candidate.topic, &candidate.name);
        if let Some(known) = self.by_key.get_mut(&key) {
            known.is_certain |= candidate.is_certain;
            known.link = known.link.take().or(candidate.link);
        } else if self.by_key.len() < CANDIDATES_MAX {
            self.by_key.insert(key, candidate);
        } else {
            self.is_cut = true;
        }
    }
}

#[cfg(test)]
mod tests;
