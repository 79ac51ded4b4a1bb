//! The groups of one queue and their turns: the one with the fewest in flight first, round robin
//! among equals.
//!
//! A group gets another slot only while it has fewer in flight than are free (a dynamic threshold):
//! however slow its endpoint and however long its backlog, a part of the slots stays free for the
//! others.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use posthaste_core::model::CarriedEvents;
use posthaste_core::pressure::DueOfGroup;
use posthaste_ports::GroupCount;

use super::ages::EventAges;

/// A group's number, given again when the group is forgotten.
pub(super) type GroupId = u32;

/// Most room that an empty queue of visible messages keeps.
const IDLE_CAPACITY_MAX: usize = 64;

/// A visible message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VisibleMessage {
    pub(super) sequence: u64,
    pub(super) carried: CarriedEvents,
}

/// The events of a group's messages, by where the messages are.
#[derive(Debug, Default)]
struct GroupEvents {
    due: u64,
    delayed: u64,
    in_flight: u64,
}

#[derive(Debug)]
struct MessageGroup {
    name: Arc<str>,
    /// Visible messages, oldest first.
    ready: VecDeque<VisibleMessage>,
    /// Entries of `ready` whose messages were settled late, and are skipped.
    settled_late: u32,
    in_flight: u32,
    delayed: u32,
    /// Bytes of all its messages, about: exact for those that come, the average for those that go.
    /// The size of each message would take memory that a long backlog does not have.
    bytes: u64,
    events: GroupEvents,
    /// The seconds in which the events of all its messages were accepted.
    ages: EventAges,
    /// The turn in which it was served last.
    turn: u64,
}

impl MessageGroup {
    fn message_count(&self) -> u64 {
        self.due_count() + u64::from(self.in_flight) + u64::from(self.delayed)
    }

    fn due_count(&self) -> u64 {
        (self.ready.len() as u64).saturating_sub(u64::from(self.settled_late))
    }

    fn group_count(&self) -> GroupCount {
        let GroupEvents {
            due,
            delayed,
            in_flight,
        } = self.events;
        GroupCount {
            due,
            delayed,
            in_flight,
            oldest: self.ages.oldest(),
            next_due: None,
        }
    }
}

/// In flight, turn, group: the first is served next.
type GroupTurn = (u32, u64, GroupId);

/// The groups.
#[derive(Debug, Default)]
pub(super) struct MessageGroups {
    ids: HashMap<Arc<str>, GroupId>,
    all: Vec<MessageGroup>,
    unused: Vec<GroupId>,
    /// Groups that have something visible.
    turns: BTreeSet<GroupTurn>,
    turns_ever: u64,
}

impl MessageGroups {
    /// The number of a group; a new one if it is not known.
    pub(super) fn id_or_new(&mut self, name: &str) -> GroupId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let name: Arc<str> = name.into();
        let mut group = MessageGroup {
            name: name.clone(),
            ready: VecDeque::new(),
            settled_late: 0,
            in_flight: 0,
            delayed: 0,
            bytes: 0,
            events: GroupEvents::default(),
            ages: EventAges::default(),
            turn: 0,
        };
        let id = if let Some(id) = self.unused.pop() {
            let unused = &mut self.all[id as usize];
            // Its room is empty, and saves an allocation.
            group.ages = std::mem::take(&mut unused.ages);
            *unused = group;
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
    pub(super) fn find_id(&self, name: &str) -> Option<GroupId> {
        self.ids.get(name).copied()
    }

    /// Adds a message of this many bytes to the group.
    pub(super) fn add_message(&mut self, id: GroupId, bytes: usize, carried: CarriedEvents) {
        let group = &mut self.all[id as usize];
        group.bytes = group.bytes.saturating_add(bytes as u64);
        group.ages.add(carried);
    }

    /// Removes one of the group's messages, which is in flight and still counted.
    pub(super) fn remove_message(&mut self, id: GroupId, carried: CarriedEvents) {
        let group = &mut self.all[id as usize];
        group.bytes -= group.bytes / group.message_count().max(1);
        group.ages.remove(carried);
    }

    /// Removes one of the group's messages, which is no longer counted.
    pub(super) fn remove_after(&mut self, id: GroupId, carried: CarriedEvents) {
        let group = &mut self.all[id as usize];
        group.bytes -= group.bytes / (group.message_count() + 1);
        group.ages.remove(carried);
    }

    /// Settles a visible message late: its entry is skipped when its turn comes.
    pub(super) fn settle_late(&mut self, id: GroupId, carried: CarriedEvents) {
        self.all[id as usize].settled_late += 1;
        self.remove_due(id, carried);
    }

    /// Takes the events of a message out of the due ones.
    pub(super) fn remove_due(&mut self, id: GroupId, carried: CarriedEvents) {
        self.all[id as usize].events.due -= u64::from(carried.events);
    }

    /// The events of a group, without the time at which the first delayed one is due.
    pub(super) fn group_count(&self, id: GroupId) -> GroupCount {
        self.all[id as usize].group_count()
    }

    /// The events of some groups that have any, from the place `from` on, and the place to continue
    /// from.
    pub(super) fn counts_from(
        &self,
        from: usize,
        max: usize,
    ) -> (Vec<(Arc<str>, GroupCount)>, Option<usize>) {
        let end = from.saturating_add(max).min(self.all.len());
        let groups = self.all.get(from..end).unwrap_or_default();
        let counts = groups
            .iter()
            .filter(|group| group.message_count() > 0)
            .map(|group| (Arc::clone(&group.name), group.group_count()));
        (counts.collect(), (end < self.all.len()).then_some(end))
    }

    /// The number of due messages of a group.
    pub(super) fn due_count(&self, id: GroupId) -> u64 {
        self.all[id as usize].due_count()
    }

    /// The due messages of some groups, from the place `from` on, and the place to continue from.
    pub(super) fn due_from(&self, from: usize, max: usize) -> (Vec<DueOfGroup>, Option<usize>) {
        let end = from.saturating_add(max).min(self.all.len());
        let groups = self.all.get(from..end).unwrap_or_default();
        let due = groups.iter().filter(|group| group.due_count() > 0);
        let due = due.map(|group| DueOfGroup {
            group: group.name.clone(),
            due: group.due_count(),
            bytes: group.bytes,
        });
        (due.collect(), (end < self.all.len()).then_some(end))
    }

    /// The number of messages of a group that wait for their time.
    pub(super) fn delayed_count(&self, id: GroupId) -> u32 {
        self.all[id as usize].delayed
    }

    pub(super) fn name(&self, id: GroupId) -> Arc<str> {
        self.all[id as usize].name.clone()
    }

    /// Counts a message of the group that waits for its time.
    pub(super) fn add_delayed(&mut self, id: GroupId, carried: CarriedEvents) {
        let group = &mut self.all[id as usize];
        group.delayed += 1;
        group.events.delayed += u64::from(carried.events);
    }

    /// Counts a message of the group that no longer waits; the caller pushes it next.
    pub(super) fn remove_delayed(&mut self, id: GroupId, carried: CarriedEvents) {
        let group = &mut self.all[id as usize];
        group.delayed -= 1;
        group.events.delayed -= u64::from(carried.events);
    }

    /// Adds a visible message.
    pub(super) fn push_visible(&mut self, id: GroupId, message: VisibleMessage) {
        let group = &mut self.all[id as usize];
        group.events.due += u64::from(message.carried.events);
        group.ready.push_back(message);
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

    /// Takes the group's oldest visible message; it goes to the end of its equals. Its events count
    /// as due until the caller says otherwise: those of one that was settled late do not.
    pub(super) fn pop_visible(&mut self, id: GroupId) -> Option<VisibleMessage> {
        let group = &mut self.all[id as usize];
        let message = group.ready.pop_front()?;
        self.turns.remove(&(group.in_flight, group.turn, id));
        if group.ready.is_empty() {
            group.ready.shrink_to(IDLE_CAPACITY_MAX);
        } else {
            self.turns_ever += 1;
            group.turn = self.turns_ever;
            self.turns.insert((group.in_flight, group.turn, id));
        }
        Some(message)
    }

    /// Counts a message of the group that is in flight from now on.
    pub(super) fn begin_flight(&mut self, id: GroupId, carried: CarriedEvents) {
        self.all[id as usize].events.in_flight += u64::from(carried.events);
        self.change_in_flight(id, |in_flight| in_flight + 1);
    }

    /// Counts a message of the group that is no longer in flight.
    pub(super) fn end_flight(&mut self, id: GroupId, carried: CarriedEvents) {
        self.all[id as usize].events.in_flight -= u64::from(carried.events);
        self.change_in_flight(id, |in_flight| in_flight - 1);
        self.forget_if_empty(id);
    }

    fn change_in_flight(&mut self, id: GroupId, change: impl FnOnce(u32) -> u32) {
        let group = &mut self.all[id as usize];
        let is_listed = self.turns.remove(&(group.in_flight, group.turn, id));
        group.in_flight = change(group.in_flight);
        if is_listed {
            self.turns.insert((group.in_flight, group.turn, id));
        }
    }

    /// Counts a skipped entry of a message that was settled late.
    pub(super) fn skip_settled(&mut self, id: GroupId) {
        self.all[id as usize].settled_late -= 1;
    }

    /// Forgets a group of which nothing is left.
    pub(super) fn forget_if_empty(&mut self, id: GroupId) {
        let group = &mut self.all[id as usize];
        if group.ready.is_empty() && group.in_flight == 0 && group.delayed == 0 {
            group.ready = VecDeque::new();
            group.ages.clear();
            if self.ids.remove(&group.name).is_some() {
                self.unused.push(id);
            }
        }
    }
}

#[cfg(test)]
impl MessageGroups {
    /// The number of known groups, and the number of places for groups.
    pub(super) fn known(&self) -> (usize, usize) {
        (self.ids.len(), self.all.len())
    }
}
