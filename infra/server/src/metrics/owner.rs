//! The owner of a series: its topic or subscription, with which it is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use metrics::{Key, Label};
use posthaste_core::model::metric::{SUBSCRIPTION, TOPIC};
use posthaste_core::model::{SubscriptionName, Topic, TopicName};
use posthaste_ports::{Clock, ObjectStore};
use posthaste_services::topics::TopicLookup;
use posthaste_services::{RegistryError, TopicRegistry};

use super::by::SeriesBy;

/// The topic or subscription of a series, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SeriesOwner {
    topic: String,
    subscription: Option<String>,
}

impl SeriesOwner {
    /// A topic.
    pub(super) fn for_topic(name: &TopicName) -> Self {
        Self {
            topic: name.folded(),
            subscription: None,
        }
    }

    /// The owner that the labels of a measurement name, where its series are told apart.
    pub(super) fn from_labels(key: &Key, by: SeriesBy) -> Option<Self> {
        Some(Self {
            topic: folded_label(key, TOPIC, by)?,
            subscription: folded_label(key, SUBSCRIPTION, by),
        })
    }

    fn is_in(&self, found: &TopicLookup) -> bool {
        match (found, &self.subscription) {
            // While its record cannot be read, all of the topic stays.
            (Err(_), _) | (Ok(Some(_)), None) => true,
            (Ok(None), _) => false,
            (Ok(Some(topic)), Some(name)) => SubscriptionName::parse(name)
                .is_ok_and(|name| topic.find_subscription(&name).is_some()),
        }
    }
}

/// The value of a label in lower case, where series are by this label.
fn folded_label(key: &Key, name: &str, by: SeriesBy) -> Option<String> {
    let value = label_value(key, name).filter(|_| by.keeps_label(name));
    value.map(str::to_ascii_lowercase)
}

fn label_value<'a>(key: &'a Key, name: &str) -> Option<&'a str> {
    key.labels()
        .find(|label| label.key() == name)
        .map(Label::value)
}

/// The topics of some owners, as the store has them.
pub(super) struct OwnerTopics(BTreeMap<String, TopicLookup>);

impl OwnerTopics {
    /// Looks the topics of these owners up.
    pub(super) async fn look_up<S: ObjectStore, C: Clock>(
        owners: impl IntoIterator<Item = &SeriesOwner>,
        registry: &TopicRegistry<S, C>,
    ) -> Self {
        let mut topics: BTreeMap<String, TopicLookup> = BTreeMap::new();
        for SeriesOwner { topic, .. } in owners {
            if !topics.contains_key(topic) {
                let found = match TopicName::parse(topic) {
                    Ok(name) => registry.topic(&name).await,
                    Err(_) => Ok(None),
                };
                topics.insert(topic.clone(), found);
            }
        }
        Self(topics)
    }

    /// Those of the owners that are no longer in the store.
    pub(super) fn owners_gone(&self, owners: Vec<SeriesOwner>) -> BTreeSet<SeriesOwner> {
        let gone = owners.into_iter().filter(|owner| {
            let found = self.0.get(&owner.topic);
            found.is_some_and(|found| !owner.is_in(found))
        });
        gone.collect()
    }

    /// The topics that there are.
    pub(super) fn existing_topics(&self) -> Vec<Arc<Topic>> {
        let found = self.0.values().flatten();
        found.flatten().cloned().collect()
    }

    /// The error of the first topic that could not be looked up: nothing of it is called gone.
    pub(super) fn first_error(&self) -> Option<&RegistryError> {
        self.0.values().find_map(|found| found.as_ref().err())
    }
}
