//! The events of groups, counted without a look at their messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use posthaste_core::model::Timestamp;
use posthaste_ports::GroupCount;

use super::groups::GroupId;
use super::{QueueIndex, StoreTime};

impl QueueIndex {
    /// The events of these groups. The times at which they are next due are found by a walk through
    /// what is delayed, of all groups, which ends when each of these is found.
    pub(crate) fn waiting_counts(&mut self, names: &[String], now: StoreTime) -> Vec<GroupCount> {
        self.advance_to(now);
        let ids: Vec<_> = names.iter().map(|name| self.groups.find_id(name)).collect();
        let next_due = self.next_due(&ids);
        ids.into_iter()
            .map(|id| {
                id.map_or_else(GroupCount::default, |id| GroupCount {
                    next_due: next_due.get(&id).copied(),
                    ..self.groups.group_count(id)
                })
            })
            .collect()
    }

    /// The events of some groups, from the place `from` on, and the place to continue from: a
    /// caller that counts all of them releases the queue in between. The times at which they are
    /// next due are left out.
    pub(crate) fn waiting_from(
        &mut self,
        now: StoreTime,
        from: usize,
        max: usize,
    ) -> (Vec<(Arc<str>, GroupCount)>, Option<usize>) {
        self.advance_to(now);
        self.groups.counts_from(from, max)
    }

    fn next_due(&self, ids: &[Option<GroupId>]) -> BTreeMap<GroupId, Timestamp> {
        let mut wanted: Vec<_> = ids
            .iter()
            .flatten()
            .filter(|id| self.groups.delayed_count(**id) > 0)
            .copied()
            .collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut found = BTreeMap::new();
        for ((due, _), delayed) in &self.delayed {
            if found.len() == wanted.len() {
                break;
            }
            if wanted.binary_search(&delayed.group).is_ok() {
                found.entry(delayed.group).or_insert(*due);
            }
        }
        found
    }
}
