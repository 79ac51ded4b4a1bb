//! The subscriptions that each event of a fan-out is meant for. They are named by the messages of
//! the event, or by a record of its acceptance, which is sent with the messages.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::delivery_log::{RecordText, join_records};
use posthaste_core::events::Event;
use posthaste_core::model::{
    MATCHED_IN_MESSAGES_MAX, Subscription, SubscriptionStatus, Timestamp, Topic, TopicName,
    matched_names,
};
use posthaste_ports::{Clock, PortError, QueueName, QueueSender, Successor, WithheldMessages};

use super::schedule::EventSchedule;
use crate::delivery_log::{record_message, report_lost, send_records};

/// Bytes of the record of an acceptance beside its names, usually.
pub(super) const RECORD_BYTES_USUAL: usize = 512;

/// The part of the delivery log in a fan-out.
#[derive(Debug)]
pub struct AcceptanceLogging<'a, Q> {
    /// The queue of records.
    pub records: &'a Q,
    /// Whether first attempts are known to wait.
    pub first_attempts_wait: bool,
}

/// The subscriptions that each event is meant for.
#[derive(Debug, Default)]
pub(super) struct MeantSubscriptions {
    /// The names that the messages of each event have; empty where no message has any.
    in_messages: Vec<Option<Arc<str>>>,
    /// Whether the events have several such texts. One text is in the head of a message, as far as
    /// its room goes.
    differ: bool,
    /// The events that have a record of their acceptance, with the names that it has.
    pub(super) recorded: Vec<(usize, Arc<str>)>,
}

/// The circumstances of first attempts, which say whether they are made at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct FirstAttempts<'a> {
    pub(super) schedule: &'a EventSchedule,
    /// The time of the fan-out.
    pub(super) at: Timestamp,
    /// Whether they are known to wait.
    pub(super) wait: bool,
}

impl FirstAttempts<'_> {
    fn are_made_for(self, subscription: &Subscription) -> bool {
        !self.wait && subscription.status_at(self.at) == SubscriptionStatus::Active
    }

    fn are_too_late_for(self, event: &Event) -> bool {
        event.expirytime().is_some_and(|end| end <= self.at)
    }
}

/// Subscriptions that some events are meant for.
struct MatchedSet {
    names: Arc<str>,
    count: usize,
    /// Whether one of them is tried at once.
    is_tried: bool,
}

impl MeantSubscriptions {
    /// The subscriptions that each event is meant for, by the receivers with the positions of their
    /// events. An event for one subscription that is tried at once needs no names: its first record
    /// has them.
    pub(super) fn from_receivers<'a>(
        receivers: impl Iterator<Item = (&'a Subscription, &'a [u32])> + Clone,
        topic: &Topic,
        events: &[Event],
        first: FirstAttempts<'_>,
    ) -> Self {
        let is_plain = receivers.clone().nth(1).is_none()
            && receivers.clone().all(|(of, _)| first.are_made_for(of))
            && !events.iter().any(|event| first.are_too_late_for(event))
            && !topic.record_unmatched
            && first.schedule.is_empty();
        if is_plain {
            return Self::default();
        }
        let of_events = receivers_of_events(receivers.clone(), events.len());
        let receivers: Vec<&Subscription> = receivers.map(|(of, _)| of).collect();
        let mut sets: HashMap<Vec<u16>, MatchedSet> = HashMap::new();
        let mut in_messages = Vec::with_capacity(events.len());
        let mut recorded = Vec::new();
        for (index, (event, positions)) in events.iter().zip(of_events).enumerate() {
            let set = sets
                .entry(positions)
                .or_insert_with_key(|positions| matched_set(&receivers, positions, first));
            let is_recorded = match set.count {
                0 => topic.record_unmatched,
                count => {
                    count > MATCHED_IN_MESSAGES_MAX
                        || !set.is_tried
                        || first.are_too_late_for(event)
                        || first.schedule.later_than(first.at, index).is_some()
                }
            };
            let is_in_messages = set.count > 1 && !is_recorded;
            in_messages.push(is_in_messages.then(|| Arc::clone(&set.names)));
            if is_recorded {
                recorded.push((index, Arc::clone(&set.names)));
            }
        }
        Self {
            in_messages,
            differ: sets.len() > 1,
            recorded,
        }
    }

    /// The names that the messages of an event have.
    pub(super) fn in_messages(&self, index: usize) -> Option<&Arc<str>> {
        self.in_messages.get(index)?.as_ref()
    }

    /// About the bytes of the records of acceptances.
    pub(super) fn record_bytes(&self) -> usize {
        let names = self.recorded.iter().map(|(_, names)| names.len());
        names.map(|names| names + RECORD_BYTES_USUAL).sum()
    }

    /// The most bytes that these take beside the head of a message.
    pub(super) fn message_bytes(&self, index: usize) -> usize {
        const MEMBER_BYTES: usize = r#","matched":"""#.len();
        if !self.differ {
            return 0;
        }
        MEMBER_BYTES + self.in_messages(index).map_or(0, |names| names.len())
    }
}

/// The receivers of each event, as positions among all. A topic has few enough for two bytes each.
fn receivers_of_events<'a>(
    receivers: impl Iterator<Item = (&'a Subscription, &'a [u32])>,
    events: usize,
) -> Vec<Vec<u16>> {
    let mut of_events = vec![Vec::new(); events];
    for (position, (_, indexes)) in (0_u16..).zip(receivers) {
        for index in indexes {
            of_events[*index as usize].push(position);
        }
    }
    of_events
}

fn matched_set(
    receivers: &[&Subscription],
    positions: &[u16],
    first: FirstAttempts<'_>,
) -> MatchedSet {
    let matched = positions
        .iter()
        .map(|position| receivers[usize::from(*position)]);
    let is_tried = matched.clone().any(|of| first.are_made_for(of));
    MatchedSet {
        names: matched_names(matched.map(|of| &of.name)).into(),
        count: positions.len(),
        is_tried,
    }
}

/// The records of one request are too large for its memory.
#[derive(Debug, thiserror::Error)]
#[error("the names of matched subscriptions take more room than a request has for them")]
struct NoRoom;

/// Records of acceptances on their way into the delivery log. Those that do not get there are
/// missing in it, and no delivery is.
pub(super) struct AcceptanceRecords<'a, Q> {
    queue: &'a Q,
    topic: &'a TopicName,
    bodies: Vec<Bytes>,
    count: usize,
}

impl<'a, Q: QueueSender> AcceptanceRecords<'a, Q> {
    /// `None` where there are none. Those that were `left_out` for want of room are counted as lost.
    pub(super) fn from_texts(
        queue: &'a Q,
        topic: &'a TopicName,
        records: &[RecordText],
        left_out: usize,
    ) -> Option<Self> {
        if left_out > 0 {
            report_lost(&BTreeMap::from([(topic, left_out)]), &NoRoom);
        }
        (!records.is_empty()).then(|| Self {
            queue,
            topic,
            bodies: join_records(records.iter()),
            count: records.len(),
        })
    }

    /// The records as messages that are sent beside others.
    pub(super) fn as_successors(&self) -> Vec<Successor> {
        let bodies = self.bodies.iter().cloned();
        let messages = bodies.map(|body| Successor {
            to: QueueName::Records,
            message: record_message(body),
        });
        messages.collect()
    }

    /// Makes them durable, to be shown with the deliveries.
    pub(super) async fn withhold(self) -> Option<WithheldMessages> {
        let messages = self.bodies.iter().cloned().map(record_message).collect();
        let withheld = self.queue.withhold(messages).await;
        withheld.map_err(|error| self.report_lost(&error)).ok()
    }

    /// Sends them by themselves.
    pub(super) async fn send_alone(self, clock: &impl Clock) {
        let sent = send_records(self.queue, clock, self.bodies.clone()).await;
        if let Err(error) = sent {
            self.report_lost(&error);
        }
    }

    pub(super) fn report_lost(&self, error: &PortError) {
        report_lost(&BTreeMap::from([(self.topic, self.count)]), error);
    }
}
