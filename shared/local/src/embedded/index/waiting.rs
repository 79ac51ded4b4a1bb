//! The messages of some groups, counted without giving them out.

use std::collections::BTreeMap;

use posthaste_ports::GroupCount;

use super::groups::GroupId;
use super::{Now, QueueIndex};

/// The messages of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct GroupMessages {
    pub(crate) count: GroupCount,
    /// The first of them: visible ones, then those in flight, then those that become visible
    /// first.
    pub(crate) sequences: Vec<u64>,
}

impl QueueIndex {
    /// The messages of these groups, with at most `each_max` sequence numbers of each. A walk
    /// through what is delayed, of all groups, ends when all delayed messages of these are
    /// found.
    pub(crate) fn waiting(
        &mut self,
        names: &[String],
        now: Now,
        each_max: usize,
    ) -> Vec<GroupMessages> {
        self.pass(now);
        let ids: Vec<_> = names.iter().map(|name| self.groups.find(name)).collect();
        let mut found: BTreeMap<GroupId, GroupMessages> = ids
            .iter()
            .flatten()
            .map(|id| (*id, self.visible_of(*id, each_max)))
            .collect();
        for (sequence, flight) in &self.flights {
            if let Some(group) = found.get_mut(&flight.group) {
                group.add(*sequence, each_max);
            }
        }
        self.add_delayed(&mut found, each_max);
        ids.iter()
            .map(|id| {
                id.and_then(|id| found.get(&id).cloned())
                    .unwrap_or_default()
            })
            .collect()
    }

    /// The visible messages of a group, without the entries of those that were settled late.
    fn visible_of(&self, id: GroupId, each_max: usize) -> GroupMessages {
        let mut settled = self.settled.clone();
        let mut group = GroupMessages::default();
        for sequence in self.groups.ready(id) {
            match settled.get_mut(sequence) {
                Some(entries) if *entries > 0 => *entries -= 1,
                _ => group.add(*sequence, each_max),
            }
        }
        group
    }

    fn add_delayed(&self, found: &mut BTreeMap<GroupId, GroupMessages>, each_max: usize) {
        let mut left: u64 = found
            .keys()
            .map(|id| u64::from(self.groups.delayed(*id)))
            .sum();
        for ((due, sequence), id) in &self.delayed {
            if left == 0 {
                break;
            }
            if let Some(group) = found.get_mut(id) {
                group.add(*sequence, each_max);
                group.count.next_due.get_or_insert(*due);
                left -= 1;
            }
        }
    }
}

impl GroupMessages {
    fn add(&mut self, sequence: u64, each_max: usize) {
        self.count.messages += 1;
        if self.sequences.len() < each_max {
            self.sequences.push(sequence);
        }
    }
}

/// The first sequence numbers of groups that take turns, each with the place of its group, at most
/// `max`.
pub(crate) fn in_turns(groups: &[GroupMessages], max: usize) -> Vec<(usize, u64)> {
    let longest = groups
        .iter()
        .map(|group| group.sequences.len())
        .max()
        .unwrap_or_default();
    let turn = |turn: usize| {
        let next = move |(place, group): (usize, &GroupMessages)| {
            Some((place, *group.sequences.get(turn)?))
        };
        groups.iter().enumerate().filter_map(next)
    };
    (0..longest).flat_map(turn).take(max).collect()
}
