//! The objects in the state bucket for a subscription at the moment in which it goes.

use std::collections::BTreeMap;
use std::time::Duration;

use posthaste_core::stored::{TopicRecord, layout};
use posthaste_testkit::memory::MemoryStore;

/// A subscription that went while something waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WentFrom {
    /// The time, by the clock's `monotonic`.
    pub(crate) at: Duration,
    /// The name of the subscription.
    pub(crate) name: String,
    /// The objects that lay there before that moment, and after it.
    pub(crate) keys: Vec<String>,
}

/// Looks before each step of the clock which subscriptions that may go by themselves have gone, and
/// from what. An object that the same moment took away was on its way through the queue, where a
/// sweep does not see it.
#[derive(Debug, Default)]
pub(crate) struct IdleWatch {
    /// The keys of what waited at the last look, by topic and subscription.
    before: BTreeMap<(String, String), Vec<String>>,
    went: Vec<WentFrom>,
}

impl IdleWatch {
    /// Looks at the state bucket.
    pub(crate) fn look(&mut self, state: &MemoryStore, at: Duration) {
        let mut now = BTreeMap::new();
        for (_, bytes) in state.objects_under(layout::TOPICS) {
            let record = TopicRecord::parse(&bytes).ok();
            let Some(record) = record.filter(TopicRecord::is_temporary) else {
                continue;
            };
            for name in record.settings.subscriptions.keys() {
                let waits = waiting(state, &layout::subscription_folder(&record.name, name));
                now.insert((record.name.to_string(), name.to_string()), waits);
            }
        }
        let gone = self.before.iter().filter(|(of, _)| !now.contains_key(*of));
        for ((topic, name), waited) in gone {
            let folder = format!("{topic}.{name}").to_lowercase();
            let still = waiting(state, &folder);
            let both = waited.iter().filter(|key| still.contains(key));
            let keys: Vec<_> = both.cloned().collect();
            if !keys.is_empty() {
                let name = name.clone();
                self.went.push(WentFrom { at, name, keys });
            }
        }
        self.before = now;
    }

    pub(crate) fn went(&self) -> &[WentFrom] {
        &self.went
    }
}

/// The objects that are held or parked for the subscription of this folder.
fn waiting(state: &MemoryStore, folder: &str) -> Vec<String> {
    let parked = state.keys(layout::PARKED).into_iter();
    let parked = parked.filter(|key| layout::parked_folder(key) == Some(folder));
    let held = state.keys(&format!("{}{folder}/", layout::HELD));
    parked.chain(held).collect()
}
