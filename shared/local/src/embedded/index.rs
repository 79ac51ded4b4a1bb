//! One queue's memory: which messages are visible, delayed and in flight, and which is received
//! next. It does no I/O, reads no clock, and holds no bodies: a waiting message takes some tens of
//! bytes.

mod ages;
mod groups;
mod waiting;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{CarriedEvents, SQS_DELAY_MAX, Timestamp};
use posthaste_core::pressure::DueOfGroup;
use posthaste_ports::QueueCounts;

pub(super) use ages::EventAges;
use groups::{GroupId, MessageGroups, VisibleMessage};

/// The least by which a clock counts as set back.
const SET_BACK_MIN: Duration = Duration::from_secs(1);

/// The longest delay of a message.
const DELAY_MAX: Duration = SQS_DELAY_MAX;

/// The two times of one moment: delays end by the wall clock, because they outlast the process, and
/// a clock that is set back takes them along; visibility timeouts end by the one that never jumps.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoreTime {
    pub(super) wall: Timestamp,
    pub(super) monotonic: Duration,
}

/// The right to settle a message: a receive of it, the `count`th of this opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessageReceive {
    pub(super) sequence: u64,
    pub(super) count: u32,
}

/// A message that comes into the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrivingMessage<'a> {
    pub(super) sequence: u64,
    pub(super) group: &'a str,
    pub(super) due: Timestamp,
    /// The size of its body.
    pub(super) bytes: usize,
    /// The events that the message carries; none in queues whose events are not counted.
    pub(super) carried: CarriedEvents,
}

/// A message that was received too often, and is out of its queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WornOutMessage {
    pub(super) sequence: u64,
    pub(super) group: Arc<str>,
    pub(super) carried: CarriedEvents,
}

/// The messages of a receive.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TakenMessages {
    /// The messages given out.
    pub(super) given: Vec<MessageReceive>,
    /// Messages received too often; they are out of this queue now.
    pub(super) worn_out: Vec<WornOutMessage>,
}

/// Why a visibility timeout was not changed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChangeRefused {
    /// The receipt is stale.
    Stale,
    /// The message would be hidden for longer than 12 hours since it was received.
    TooLong,
}

#[derive(Debug, Clone, Copy)]
struct InFlightMessage {
    group: GroupId,
    carried: CarriedEvents,
    count: u32,
    received_at: Duration,
    until: Duration,
    /// A replacement is on its way into a commit. Until then the timeout does not end.
    is_held: bool,
}

/// A message that waits for its time.
#[derive(Debug, Clone, Copy)]
struct DelayedMessage {
    group: GroupId,
    carried: CarriedEvents,
}

/// A visible message that was received before.
#[derive(Debug, Clone, Copy)]
struct ReturnedMessage {
    group: GroupId,
    count: u32,
    carried: CarriedEvents,
}

/// The index.
#[derive(Debug, Default)]
pub(super) struct QueueIndex {
    groups: MessageGroups,
    delayed: BTreeMap<(Timestamp, u64), DelayedMessage>,
    flights: HashMap<u64, InFlightMessage>,
    timeouts: BTreeSet<(Duration, u64)>,
    /// Visible messages that were received before.
    returned: HashMap<u64, ReturnedMessage>,
    /// Visible messages that were settled late, with the number of their entries among the visible
    /// ones. Those entries are skipped when their turn comes.
    settled: HashMap<u64, u32>,
    visible: u64,
    in_flight_max: usize,
    receives_max: u32,
    /// The last moment that was seen.
    last: Option<StoreTime>,
}

impl QueueIndex {
    pub(super) fn new(in_flight_max: usize, receives_max: u32) -> Self {
        Self {
            in_flight_max,
            receives_max,
            ..Self::default()
        }
    }

    /// Adds a message that was sent, or was found when the folder was opened. A due time beyond the
    /// longest delay comes from a clock that was set back since, or from a damaged disk: such a
    /// message waits for the longest delay instead.
    pub(super) fn insert(&mut self, arrived: ArrivingMessage<'_>, now: Timestamp) {
        let ArrivingMessage {
            sequence,
            group,
            due,
            bytes,
            carried,
        } = arrived;
        let group = self.groups.id_or_new(group);
        self.groups.add_message(group, bytes, carried);
        let due = due.min(now + DELAY_MAX);
        if due > now {
            self.delayed
                .insert((due, sequence), DelayedMessage { group, carried });
            self.groups.add_delayed(group, carried);
        } else {
            self.groups
                .push_visible(group, VisibleMessage { sequence, carried });
            self.visible += 1;
        }
    }

    /// Returns a worn-out message that could not be moved to the queue.
    pub(super) fn put_back(&mut self, message: &WornOutMessage) {
        let WornOutMessage {
            sequence, carried, ..
        } = *message;
        let group = self.groups.id_or_new(&message.group);
        self.groups.add_message(group, 0, carried);
        self.groups
            .push_visible(group, VisibleMessage { sequence, carried });
        let returned = ReturnedMessage {
            group,
            count: self.receives_max,
            carried,
        };
        self.returned.insert(sequence, returned);
        self.visible += 1;
    }

    /// Gives out at most `max` messages for `visibility`, those of groups with few in flight first.
    pub(super) fn take_visible(
        &mut self,
        now: StoreTime,
        max: usize,
        visibility: Duration,
    ) -> TakenMessages {
        self.advance_to(now);
        let mut taken = TakenMessages::default();
        while taken.given.len() < max
            && let Some((group, VisibleMessage { sequence, carried })) = self.pop_next()
        {
            let count = self.returned.remove(&sequence).map_or(0, |it| it.count);
            self.visible -= 1;
            self.groups.remove_due(group, carried);
            if count >= self.receives_max {
                self.groups.remove_after(group, carried);
                taken.worn_out.push(WornOutMessage {
                    sequence,
                    group: self.groups.name(group),
                    carried,
                });
                self.groups.forget_if_empty(group);
                continue;
            }
            let until = now.monotonic.saturating_add(visibility);
            let count = count + 1;
            let flight = InFlightMessage {
                group,
                carried,
                count,
                received_at: now.monotonic,
                until,
                is_held: false,
            };
            self.flights.insert(sequence, flight);
            self.timeouts.insert((until, sequence));
            self.groups.begin_flight(group, carried);
            taken.given.push(MessageReceive { sequence, count });
        }
        taken
    }

    /// The due messages of some groups, from the place `from` on, and the place to continue from: a
    /// caller that looks at all of them releases the queue in between.
    pub(super) fn due_from(
        &mut self,
        now: StoreTime,
        from: usize,
        max: usize,
    ) -> (Vec<DueOfGroup>, Option<usize>) {
        self.advance_to(now);
        self.groups.due_from(from, max)
    }

    /// The number of due messages of a group.
    pub(super) fn due_count(&mut self, now: StoreTime, group: &str) -> u64 {
        self.advance_to(now);
        self.groups
            .find_id(group)
            .map_or(0, |id| self.groups.due_count(id))
    }

    /// Removes a message, and returns whether the receipt was valid. A receipt that timed out stays
    /// valid until the message is received again.
    pub(super) fn settle(&mut self, received: MessageReceive) -> bool {
        if let Some(flight) = self.free_flight(received).copied() {
            self.timeouts.remove(&(flight.until, received.sequence));
            self.flights.remove(&received.sequence);
            self.end_flight(flight);
            return true;
        }
        let Some(ReturnedMessage { group, carried, .. }) = self.withdraw_returned(received) else {
            return false;
        };
        self.groups.remove_after(group, carried);
        true
    }

    /// Keeps a message as it is until [`forget_held`](Self::forget_held) or
    /// [`release_held`](Self::release_held), and returns whether the receipt was valid.
    pub(super) fn hold_message(&mut self, now: StoreTime, received: MessageReceive) -> bool {
        if let Some(flight) = self.free_flight(received) {
            flight.is_held = true;
            let flight = *flight;
            self.timeouts.remove(&(flight.until, received.sequence));
            return true;
        }
        let Some(ReturnedMessage {
            group,
            count,
            carried,
        }) = self.withdraw_returned(received)
        else {
            return false;
        };
        let monotonic = now.monotonic;
        let flight = InFlightMessage {
            group,
            carried,
            count,
            received_at: monotonic,
            until: monotonic,
            is_held: true,
        };
        self.flights.insert(received.sequence, flight);
        self.groups.begin_flight(group, carried);
        true
    }

    /// Forgets a held message: its replacement is durable.
    pub(super) fn forget_held(&mut self, sequence: u64) {
        if let Some(flight) = self.flights.remove(&sequence) {
            self.end_flight(flight);
        }
    }

    /// Removes the message of a flight that ended.
    fn end_flight(&mut self, flight: InFlightMessage) {
        self.groups.remove_message(flight.group, flight.carried);
        self.groups.end_flight(flight.group, flight.carried);
    }

    /// Ends the hold of a message: its visibility timeout continues.
    pub(super) fn release_held(&mut self, sequence: u64) {
        if let Some(flight) = self.flights.get_mut(&sequence) {
            flight.is_held = false;
            self.timeouts.insert((flight.until, sequence));
        }
    }

    /// Hides a message in flight for `visibility` from now.
    pub(super) fn change_visibility(
        &mut self,
        now: StoreTime,
        received: MessageReceive,
        visibility: Duration,
        total_max: Duration,
    ) -> Result<(), ChangeRefused> {
        self.advance_to(now);
        let flight = self.free_flight(received).ok_or(ChangeRefused::Stale)?;
        let until = now.monotonic.saturating_add(visibility);
        if until > flight.received_at.saturating_add(total_max) {
            return Err(ChangeRefused::TooLong);
        }
        let before = std::mem::replace(&mut flight.until, until);
        self.timeouts.remove(&(before, received.sequence));
        self.timeouts.insert((until, received.sequence));
        self.advance_to(now);
        Ok(())
    }

    /// Undoes a receive that could not read the message: it is visible again, and the receive does
    /// not count.
    pub(super) fn undo_receive(&mut self, received: MessageReceive) {
        let Some(flight) = self.find_flight(received) else {
            return;
        };
        self.timeouts.remove(&(flight.until, received.sequence));
        self.return_to_visible(received.sequence, flight, flight.count - 1);
    }

    /// Counts the queue.
    pub(super) fn counts(&mut self, now: StoreTime) -> QueueCounts {
        self.advance_to(now);
        QueueCounts {
            visible: self.visible,
            delayed: self.delayed.len() as u64,
            in_flight: self.flights.len() as u64,
        }
    }

    /// True if a receive would get something at once.
    pub(super) fn has_next(&self) -> bool {
        self.groups.next(self.free_slots()).is_some()
    }

    /// Time until the next delay or visibility timeout ends.
    pub(super) fn until_next(&mut self, now: StoreTime) -> Option<Duration> {
        self.follow_clock(now);
        let delay = self
            .delayed
            .first_key_value()
            .map(|((due, _), _)| due.since(now.wall));
        let timeout = self
            .timeouts
            .first()
            .map(|(until, _)| until.saturating_sub(now.monotonic));
        delay.into_iter().chain(timeout).min()
    }

    /// Makes messages visible that have become due.
    fn advance_to(&mut self, now: StoreTime) {
        if !self.follow_clock(now) {
            return;
        }
        while let Some(first) = self.delayed.first_entry()
            && first.key().0 <= now.wall
        {
            let ((_, sequence), DelayedMessage { group, carried }) = first.remove_entry();
            self.groups.remove_delayed(group, carried);
            self.groups
                .push_visible(group, VisibleMessage { sequence, carried });
            self.visible += 1;
        }
        while let Some((until, sequence)) = self.timeouts.first().copied()
            && until <= now.monotonic
        {
            self.timeouts.pop_first();
            if let Some(flight) = self.flights.get(&sequence).copied() {
                self.return_to_visible(sequence, flight, flight.count);
            }
        }
    }

    /// Makes a message in flight visible.
    fn return_to_visible(&mut self, sequence: u64, flight: InFlightMessage, count: u32) {
        let InFlightMessage { group, carried, .. } = flight;
        self.flights.remove(&sequence);
        self.groups
            .push_visible(group, VisibleMessage { sequence, carried });
        self.groups.end_flight(group, carried);
        let returned = ReturnedMessage {
            group,
            count,
            carried,
        };
        self.returned.insert(sequence, returned);
        self.visible += 1;
    }

    /// The next message by the groups' turns, past those settled late.
    fn pop_next(&mut self) -> Option<(GroupId, VisibleMessage)> {
        loop {
            let group = self.groups.next(self.free_slots())?;
            let message = self.groups.pop_visible(group)?;
            let Some(entries) = self.settled.get_mut(&message.sequence) else {
                return Some((group, message));
            };
            *entries -= 1;
            self.groups.skip_settled(group);
            if *entries == 0 {
                self.settled.remove(&message.sequence);
            }
            self.groups.forget_if_empty(group);
        }
    }

    /// Takes a message out that was received and is visible again.
    fn withdraw_returned(&mut self, received: MessageReceive) -> Option<ReturnedMessage> {
        let returned = *self.returned.get(&received.sequence)?;
        if returned.count != received.count {
            return None;
        }
        self.returned.remove(&received.sequence);
        self.groups.settle_late(returned.group, returned.carried);
        *self.settled.entry(received.sequence).or_default() += 1;
        self.visible -= 1;
        Some(returned)
    }

    fn find_flight(&self, received: MessageReceive) -> Option<InFlightMessage> {
        self.flights
            .get(&received.sequence)
            .copied()
            .filter(|flight| flight.count == received.count)
    }

    /// The flight that this receipt may end or change: it is not held.
    fn free_flight(&mut self, received: MessageReceive) -> Option<&mut InFlightMessage> {
        let flight = self.flights.get_mut(&received.sequence)?;
        (flight.count == received.count && !flight.is_held).then_some(flight)
    }

    fn free_slots(&self) -> usize {
        self.in_flight_max.saturating_sub(self.flights.len())
    }

    /// Moves delays along with a clock that was set back, so that no message waits longer. Slow
    /// corrections, by which time servers keep a clock right, are below the least that counts.
    /// Returns whether the moment is no older than the last one: an older one, of a caller that was
    /// slow, says nothing about the clock or about what is due.
    fn follow_clock(&mut self, now: StoreTime) -> bool {
        let last = *self.last.get_or_insert(now);
        let Some(passed) = now.monotonic.checked_sub(last.monotonic) else {
            return false;
        };
        self.last = Some(now);
        let back = (last.wall + passed).since(now.wall);
        if back < SET_BACK_MIN {
            return true;
        }
        let back_ms = whole_millis(back);
        let delayed = std::mem::take(&mut self.delayed);
        self.delayed = delayed
            .into_iter()
            .map(|((due, sequence), message)| {
                let due_ms = due.as_millis().saturating_sub(back_ms);
                ((Timestamp::from_millis(due_ms), sequence), message)
            })
            .collect();
        true
    }
}

#[cfg(test)]
mod tests;
