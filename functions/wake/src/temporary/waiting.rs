//! Whether events of a subscription wait in the object store. What is held lies by subscription; what is parked lies by
//! minute, so its owners are looked for once in a run, and only where a subscription is idle by its notes.

use std::collections::HashSet;

use futures_util::lock::Mutex;
use posthaste_core::model::name::{SubscriptionName, TopicName};
use posthaste_core::stored::layout;
use posthaste_ports::{Clock, Entropy, ObjectStore, PortError, QueueSender};

use crate::{PAGE_MAX, Wake};

/// Most pages of what is parked that a run looks at: 200,000 objects. Where there are more, every subscription counts as
/// waited for, and goes later.
const PAGES_MAX: usize = 200;

/// For whom something is parked, looked up once.
#[derive(Debug, Default)]
pub(super) struct ParkedOwners {
    /// The key after which something may lie.
    from: Option<String>,
    /// The folders, `topic.subscription`.
    found: Mutex<Option<Owners>>,
}

#[derive(Debug)]
enum Owners {
    These(HashSet<String>),
    /// There are more objects than are looked at.
    Anyone,
}

impl ParkedOwners {
    /// Nothing lies before this key.
    pub(super) fn from(from: Option<String>) -> Self {
        Self { from, found: Mutex::default() }
    }
}

impl Owners {
    fn include(&self, folder: &str) -> bool {
        match self {
            Self::These(folders) => folders.contains(folder),
            Self::Anyone => true,
        }
    }
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Whether something is held or parked for a subscription.
    pub(super) async fn has_waiting(
        &self,
        topic: &TopicName,
        subscription: &SubscriptionName,
        parked: &ParkedOwners,
    ) -> Result<bool, PortError> {
        let held = layout::held_of(topic, subscription);
        if self.has_any(&held).await? {
            return Ok(true);
        }
        let mut found = parked.found.lock().await;
        let owners = match found.take() {
            Some(owners) => owners,
            None => self.parked_owners(parked.from.clone()).await?,
        };
        let is_waited_for = owners.include(&layout::folder(topic, subscription));
        *found = Some(owners);
        Ok(is_waited_for)
    }

    /// Whether an object lies under this prefix. A page may be empty and yet not the last.
    async fn has_any(&self, prefix: &str) -> Result<bool, PortError> {
        let mut after = None;
        loop {
            let page = self.ports.state.list(prefix, after.as_deref(), 1).await?;
            if !page.objects.is_empty() {
                return Ok(true);
            }
            after = page.next_after;
            if after.is_none() {
                return Ok(false);
            }
        }
    }

    async fn parked_owners(&self, from: Option<String>) -> Result<Owners, PortError> {
        let (mut folders, mut after) = (HashSet::new(), from);
        for _ in 0..PAGES_MAX {
            let page = self.ports.state.list(layout::PARKED, after.as_deref(), PAGE_MAX).await?;
            let owners = page.objects.iter().filter_map(|object| layout::parked_folder(&object.key));
            folders.extend(owners.map(str::to_owned));
            after = page.next_after;
            if after.is_none() {
                return Ok(Owners::These(folders));
            }
        }
        Ok(Owners::Anyone)
    }
}
