//! What waits for a subscription, and how its last attempt ended, as operators see it.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::IsoTimestamp;
use crate::model::{Delivery, Timestamp};

/// The events that wait for a subscription.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct WaitingView {
    /// The number of events that wait.
    #[schema(example = 12)]
    pub count: u64,
    /// Whether there may be more, because not all were counted. Always so on AWS: its queue cannot
    /// be asked, and each parked or held object counts as one event.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_least: bool,
    /// The events of these in the queue, those that are being sent among them. Left out on AWS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 7)]
    pub queued: Option<u64>,
    /// The events of these whose next attempt is more than 15 minutes ahead, or was.
    #[schema(example = 1)]
    pub parked: u64,
    /// The events of these that wait until the endpoint recovers, or an operator resumes the
    /// subscription.
    #[schema(example = 4)]
    pub held: u64,
    /// The time at which the oldest of them was accepted, as far as they were read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest_accepted_at: Option<IsoTimestamp>,
    /// The earliest time at which one that waits for its time is tried. Left out where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_attempt_at: Option<IsoTimestamp>,
}

/// The end of a subscription's last attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct LastOutcomeView {
    /// The time of its end.
    pub at: IsoTimestamp,
    /// `Delivered`, the name of the failure, or the reason for which the event was given up.
    #[schema(example = "Busy")]
    pub outcome: String,
    /// The status of the answer, where there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 503)]
    pub status: Option<u16>,
}

/// The place in which events wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingPlace {
    /// The delivery queue.
    Queue,
    /// Parked objects.
    Parked,
    /// Held objects.
    Held,
}

/// A count of what waits, while it is made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingCount {
    queued: u64,
    parked: u64,
    held: u64,
    oldest: Option<Timestamp>,
    next: Option<Timestamp>,
    is_cut: bool,
}

impl WaitingCount {
    /// Adds the events of a delivery.
    pub fn add(&mut self, place: WaitingPlace, delivery: &Delivery) {
        let accepted = delivery.published_at;
        self.oldest = Some(self.oldest.map_or(accepted, |oldest| oldest.min(accepted)));
        let events = u64::try_from(delivery.events.len()).unwrap_or(u64::MAX);
        self.add_events(place, events);
    }

    /// Adds messages or objects that were not read. Each has one event or more.
    pub fn add_unread(&mut self, place: WaitingPlace, number: u64) {
        self.is_cut |= number > 0;
        self.add_events(place, number);
    }

    /// Notes that there may be more than was counted.
    pub fn cut(&mut self) {
        self.is_cut = true;
    }

    /// Notes a time at which an attempt is to be made.
    pub fn due(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    /// The count as operators see it. `with_queue` says whether the queue could be asked.
    pub fn view(&self, with_queue: bool) -> WaitingView {
        WaitingView {
            count: self
                .queued
                .saturating_add(self.parked)
                .saturating_add(self.held),
            at_least: self.is_cut || !with_queue,
            queued: with_queue.then_some(self.queued),
            parked: self.parked,
            held: self.held,
            oldest_accepted_at: self.oldest.map(IsoTimestamp),
            next_attempt_at: self.next.map(IsoTimestamp),
        }
    }

    fn add_events(&mut self, place: WaitingPlace, events: u64) {
        let sum = match place {
            WaitingPlace::Queue => &mut self.queued,
            WaitingPlace::Parked => &mut self.parked,
            WaitingPlace::Held => &mut self.held,
        };
        *sum = sum.saturating_add(events);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_lower_bound_where_something_was_not_read() {
        let mut count = WaitingCount::default();
        assert_eq!(
            count.view(true),
            WaitingView {
                queued: Some(0),
                ..WaitingView::default()
            }
        );
        assert_eq!(
            count.view(false),
            WaitingView {
                at_least: true,
                ..WaitingView::default()
            }
        );
        count.add_unread(WaitingPlace::Held, 0);
        assert!(!count.view(true).at_least);
        count.add_unread(WaitingPlace::Parked, 2);
        count.due(Timestamp::from_millis(9));
        count.due(Timestamp::from_millis(7));
        let expected = WaitingView {
            count: 2,
            at_least: true,
            queued: Some(0),
            parked: 2,
            next_attempt_at: Some(IsoTimestamp(Timestamp::from_millis(7))),
            ..WaitingView::default()
        };
        assert_eq!(count.view(true), expected);
    }
}
