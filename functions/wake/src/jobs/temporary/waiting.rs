//! Events that wait for a subscription in the object store. Held objects lie by subscription.
//! Parked objects lie by minute, so a run looks for their owners once, and only where a
//! subscription is idle by its notes.

use std::collections::BTreeSet;
use std::pin::pin;

use futures_util::lock::Mutex;
use futures_util::{StreamExt, TryStreamExt};
use posthaste_core::model::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::{ObjectStore, PortError, Ports};
use posthaste_services::list_pages;

/// Most pages of parked objects that a run looks at: 200,000 objects. Where there are more, events
/// count as waiting for every subscription, and idle ones go later.
const PAGES_MAX: usize = 200;

/// Looks for events that wait.
pub(super) struct WaitingSearch<'a, P: Ports> {
    store: &'a P::Store,
    /// The key after which something may be parked.
    parked_from: Option<String>,
    parked: Mutex<Option<ParkedOwners>>,
}

/// The subscriptions for which something is parked.
#[derive(Debug)]
enum ParkedOwners {
    /// The subscriptions of these folders.
    These(BTreeSet<String>),
    /// There are more objects than are looked at.
    Any,
}

impl<'a, P: Ports> WaitingSearch<'a, P> {
    /// A search in which no object is parked before this key.
    pub(super) fn new(store: &'a P::Store, parked_from: Option<String>) -> Self {
        Self {
            store,
            parked_from,
            parked: Mutex::default(),
        }
    }

    /// Tells whether something is held or parked for a subscription.
    pub(super) async fn has_events_for(
        &self,
        topic: &TopicName,
        subscription: &SubscriptionName,
    ) -> Result<bool, PortError> {
        if self.has_any(&layout::held_of(topic, subscription)).await? {
            return Ok(true);
        }
        let mut parked = self.parked.lock().await;
        let owners = match parked.take() {
            Some(owners) => owners,
            None => self.find_parked_owners().await?,
        };
        let is_parked = match &owners {
            ParkedOwners::These(folders) => {
                folders.contains(&layout::subscription_folder(topic, subscription))
            }
            ParkedOwners::Any => true,
        };
        *parked = Some(owners);
        Ok(is_parked)
    }

    /// Tells whether an object lies under this prefix. A page may be empty and yet not the last.
    async fn has_any(&self, prefix: &str) -> Result<bool, PortError> {
        let mut after = None;
        loop {
            let page = self.store.list(prefix, after.as_deref(), 1).await?;
            if !page.objects.is_empty() {
                return Ok(true);
            }
            after = page.next_after;
            if after.is_none() {
                return Ok(false);
            }
        }
    }

    async fn find_parked_owners(&self) -> Result<ParkedOwners, PortError> {
        let mut folders = BTreeSet::new();
        let mut is_end = false;
        let mut pages =
            pin!(list_pages(self.store, layout::PARKED, self.parked_from.clone()).take(PAGES_MAX));
        while let Some(page) = pages.try_next().await? {
            let owners = page
                .objects
                .iter()
                .filter_map(|object| layout::parked_folder(&object.key));
            folders.extend(owners.map(str::to_owned));
            is_end = page.next_after.is_none();
        }
        Ok(if is_end {
            ParkedOwners::These(folders)
        } else {
            ParkedOwners::Any
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Kit, TestPorts};

    fn names(subscription: &str) -> (TopicName, SubscriptionName) {
        (
            TopicName::parse("orders").unwrap(),
            SubscriptionName::parse(subscription).unwrap(),
        )
    }

    #[tokio::test]
    async fn parked_objects_are_listed_once_from_where_they_begin() {
        let kit = Kit::new();
        for n in 0..4 {
            kit.store
                .write(&format!("parked/20260307T0405Z/orders.s{n}/x.json"), "");
        }
        kit.store
            .write("held/orders.held/20260307T0405Z/x.json", "");
        let from = Some("parked/20260307T0400Z".to_owned());
        let waiting = WaitingSearch::<TestPorts>::new(&kit.ports.state, from.clone());
        let mut found = Vec::new();
        for name in ["s0", "s3", "s4", "held"] {
            let (topic, subscription) = names(name);
            found.push(waiting.has_events_for(&topic, &subscription).await.unwrap());
        }
        assert_eq!(found, [true, true, false, true]);
        let listed = kit.store.take_listed(layout::PARKED);
        assert_eq!((listed.len(), &listed[0]), (2, &from));
    }
}
