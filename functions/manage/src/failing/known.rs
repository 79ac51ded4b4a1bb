//! What is known of failures, and the subscriptions that may fail by it.

use std::collections::BTreeMap;
use std::sync::Arc;

use posthaste_core::circuit::{DeliveryTarget, LinkShard, TargetCondition};
use posthaste_core::health::{HealthBook, book_key};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_services::AllWaiting;

/// Most subscriptions that are looked at: as many topics may have to be read.
const CANDIDATES_MAX: usize = 1000;

/// What is known of failures.
#[derive(Default)]
pub(super) struct KnownFailures {
    pub(super) shards: Vec<(usize, Arc<LinkShard>)>,
    pub(super) book: HealthBook,
    /// What waits; `None` where it could not be counted.
    pub(super) waiting: Option<AllWaiting>,
}

/// A subscription that may fail, under its folded names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) topic: TopicName,
    pub(super) name: SubscriptionName,
    /// Whether its row is shown even where its topic cannot be read.
    pub(super) is_certain: bool,
}

/// The subscriptions that may fail, by their keys in the book.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) by_key: BTreeMap<String, Candidate>,
    /// Whether there are more.
    pub(super) is_cut: bool,
}

impl KnownFailures {
    /// All conditions of the circuit.
    pub(super) fn conditions(&self) -> impl Iterator<Item = (DeliveryTarget, &TargetCondition)> {
        self.shards.iter().flat_map(|(_, shard)| shard.conditions())
    }

    /// The circuit's condition of a target; `None` if it is well.
    pub(super) fn condition(&self, target: &DeliveryTarget) -> Option<&TargetCondition> {
        self.shards
            .iter()
            .find_map(|(_, shard)| shard.condition(target))
    }

    /// The subscriptions that may fail: those of the book and of the circuit, and then those for
    /// which events wait. Where a whole link fails, any of the latter may be on it.
    pub(super) fn candidates(&self) -> Candidates {
        let mut found = Candidates::default();
        for (key, health) in self.book.subscriptions() {
            if let Some((topic, name)) = layout::folder_owner(key) {
                found.add(key.to_owned(), topic, name, health.incident.is_some());
            }
        }
        let mut is_link_failing = false;
        for (target, _) in self.conditions() {
            let DeliveryTarget::Subscription { topic, name, .. } = target else {
                is_link_failing = true;
                continue;
            };
            found.add(book_key(&topic, &name), topic, name, true);
        }
        let waiting = self.waiting.iter().flat_map(|waiting| &waiting.by_group);
        for (group, count) in waiting {
            let is_held = count.held > 0;
            if !is_held && !is_link_failing {
                continue;
            }
            if let Some((topic, name)) = layout::folder_owner(group) {
                found.add(group.clone(), topic, name, is_held);
            }
        }
        found
    }
}

impl Candidates {
    fn add(&mut self, key: String, topic: TopicName, name: SubscriptionName, is_certain: bool) {
        if let Some(known) = self.by_key.get_mut(&key) {
            known.is_certain |= is_certain;
        } else if self.by_key.len() < CANDIDATES_MAX {
            let candidate = Candidate {
                topic,
                name,
                is_certain,
            };
            self.by_key.insert(key, candidate);
        } else {
            self.is_cut = true;
        }
    }
}
