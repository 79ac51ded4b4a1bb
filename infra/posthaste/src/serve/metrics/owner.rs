//! The owner of a series: its topic or subscription, with which it is forgotten.

use std::collections::{BTreeMap, BTreeSet};

use metrics::{Key, Label};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_ports::{Clock, ObjectStore};
use posthaste_services::topics::Found;
use posthaste_services::{Registry, RegistryError};

/// The label with the topic of a series.
const TOPIC: &str = "topic";

/// The label with the subscription of a series.
const SUBSCRIPTION: &str = "subscription";

/// The topic or subscription of a series, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    topic: String,
    subscription: Option<String>,
}

impl Owner {
    /// The owner that the labels of a series name.
    pub(super) fn of(key: &Key) -> Option<Self> {
        Some(Self {
            topic: label(key, TOPIC)?,
            subscription: label(key, SUBSCRIPTION),
        })
    }

    fn is_in(&self, found: &Found) -> bool {
        match (found, &self.subscription) {
            // While its record cannot be read, all of the topic stays.
            (Err(_), _) | (Ok(Some(_)), None) => true,
            (Ok(None), _) => false,
            (Ok(Some(topic)), Some(name)) => {
                SubscriptionName::parse(name).is_ok_and(|name| topic.subscription(&name).is_some())
            }
        }
    }
}

fn label(key: &Key, name: &str) -> Option<String> {
    key.labels()
        .find(|label| label.key() == name)
        .map(Label::value)
        .map(str::to_ascii_lowercase)
}

/// Those owners that are no longer in the store. An error is that of the first topic that could not
/// be looked up: nothing of it is called gone.
pub(super) async fn gone<S: ObjectStore, C: Clock>(
    owners: Vec<Owner>,
    registry: &Registry<S, C>,
) -> (BTreeSet<Owner>, Option<RegistryError>) {
    let mut topics: BTreeMap<String, Found> = BTreeMap::new();
    for Owner { topic, .. } in &owners {
        if !topics.contains_key(topic) {
            let found = match TopicName::parse(topic) {
                Ok(name) => registry.topic(&name).await,
                Err(_) => Ok(None),
            };
            topics.insert(topic.clone(), found);
        }
    }
    let is_gone = |owner: &Owner| topics.get(&owner.topic).is_some_and(|it| !owner.is_in(it));
    let gone = owners.into_iter().filter(is_gone).collect();
    let failed = topics.into_values().find_map(Result::err);
    (gone, failed)
}
