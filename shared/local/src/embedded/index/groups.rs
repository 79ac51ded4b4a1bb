//! The groups of one queue and their turns: the one with the fewest in flight first, round robin
//! among equals.
//!
//! A group gets another slot only while it has fewer in flight than are free (a dynamic threshold):
//! however slow its endpoint and however long its backlog, a part of the slots stays free for the
//! others.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

/// A group's number, given again when the group is forgotten.
pub(super) type GroupId = u32;

/// Most room that an empty queue of visible messages keeps.
const IDLE_CAPACITY_MAX: usize = 64;

#[derive(Debug)]
struct Group {
    name: Arc<str>,
    /// Visible messages, oldest first.
    ready: VecDeque<u64>,
    in_flight: u32,
    delayed: u32,
    /// The turn in which it was served last.
    turn: u64,
}

/// In flight, turn, group: the first is served next.
type Turn = (u32, u64, GroupId);

/// The groups.
#[derive(Debug, Default)]
pub(super) struct Groups {
    ids: HashMap<Arc<str>, GroupId>,
    all: Vec<Group>,
    unused: Vec<GroupId>,
    /// Groups that have something visible.
    turns: BTreeSet<Turn>,
    turns_ever: u64,
}

impl Groups {
    /// The number of a group; a new one if it is not known.
    pub(super) fn id(&mut self, name: &str) -> GroupId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let name: Arc<str> = name.into();
        let group = Group {
            name: name.clone(),
            ready: VecDeque::new(),
            in_flight: 0,
            delayed: 0,
            turn: 0,
        };
        let id = if let Some(id) = self.unused.pop() {
            self.all[id as usize] = group;
            id
        } else {
            self.all.push(group);
            // There are never more groups than messages, and memory does not hold that number of
            // them.
            GroupId::try_from(self.all.len() - 1).unwrap_or(GroupId::MAX)
        };
        self.ids.insert(name, id);
        id
    }

    /// The number of a group that has messages.
    pub(super) fn find(&self, name: &str) -> Option<GroupId> {
        self.ids.get(name).copied()
    }

    /// The visible messages of a group, oldest first.
    pub(super) fn ready(&self, id: GroupId) -> &VecDeque<u64> {
        &self.all[id as usize].ready
    }

    /// The number of messages of a group that wait for their time.
    pub(super) fn delayed(&self, id: GroupId) -> u32 {
        self.all[id as usize].delayed
    }

    pub(super) fn name(&self, id: GroupId) -> Arc<str> {
        self.all[id as usize].name.clone()
    }

    /// A message of the group waits for its time.
    pub(super) fn join(&mut self, id: GroupId) {
        self.all[id as usize].delayed += 1;
    }

    /// A message of the group waits no longer; the caller pushes it next.
    pub(super) fn leave(&mut self, id: GroupId) {
        self.all[id as usize].delayed -= 1;
    }

    /// Adds a visible message.
    pub(super) fn push(&mut self, id: GroupId, sequence: u64) {
        let group = &mut self.all[id as usize];
        group.ready.push_back(sequence);
        if group.ready.len() == 1 {
            self.turns_ever += 1;
            group.turn = self.turns_ever;
            self.turns.insert((group.in_flight, group.turn, id));
        }
    }

    /// The group to serve next if `free` slots are free.
    pub(super) fn next(&self, free: usize) -> Option<GroupId> {
        // If the group with the fewest in flight may not be served, no group may.
        let (in_flight, _, id) = *self.turns.first()?;
        ((in_flight as usize) < free).then_some(id)
    }

    /// Takes the group's oldest visible message; it goes to the end of its equals.
    pub(super) fn pop(&mut self, id: GroupId) -> Option<u64> {
        let group = &mut self.all[id as usize];
        let sequence = group.ready.pop_front()?;
        self.turns.remove(&(group.in_flight, group.turn, id));
        if group.ready.is_empty() {
            group.ready.shrink_to(IDLE_CAPACITY_MAX);
        } else {
            self.turns_ever += 1;
            group.turn = self.turns_ever;
            self.turns.insert((group.in_flight, group.turn, id));
        }
        Some(sequence)
    }

    /// A message of the group is in flight.
    pub(super) fn take_off(&mut self, id: GroupId) {
        self.fly(id, |in_flight| in_flight + 1);
    }

    /// A message of the group is no longer in flight.
    pub(super) fn land(&mut self, id: GroupId) {
        self.fly(id, |in_flight| in_flight - 1);
        self.forget_if_empty(id);
    }

    fn fly(&mut self, id: GroupId, change: impl FnOnce(u32) -> u32) {
        let group = &mut self.all[id as usize];
        let is_listed = self.turns.remove(&(group.in_flight, group.turn, id));
        group.in_flight = change(group.in_flight);
        if is_listed {
            self.turns.insert((group.in_flight, group.turn, id));
        }
    }

    /// Forgets a group of which nothing is left.
    pub(super) fn forget_if_empty(&mut self, id: GroupId) {
        let group = &mut self.all[id as usize];
        if group.ready.is_empty() && group.in_flight == 0 && group.delayed == 0 {
            group.ready = VecDeque::new();
            if self.ids.remove(&group.name).is_some() {
                self.unused.push(id);
            }
        }
    }
}

#[cfg(test)]
impl Groups {
    /// The number of known groups, and the number of places for groups.
    pub(super) fn known(&self) -> (usize, usize) {
        (self.ids.len(), self.all.len())
    }
}
