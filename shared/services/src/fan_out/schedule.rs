//! Events that are published for later: they are parked until their minute.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::model::Timestamp;
use posthaste_core::stored::parked::render_parked;
use posthaste_ports::{ObjectStore, PortError, PutCondition};

/// Objects of scheduled deliveries that are written at once.
const PUTS_AT_ONCE: usize = 8;

/// The times before which the events of a request are not sent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EventSchedule {
    /// By the position of the event. Empty where none has a time.
    times: Vec<Option<Timestamp>>,
}

/// An object of deliveries that are not sent before its minute.
#[derive(Debug)]
pub(super) struct ScheduledObject {
    pub(super) key: String,
    pub(super) messages: Vec<Bytes>,
}

impl EventSchedule {
    /// The schedule of events with these times, in their order.
    pub fn new(times: Vec<Option<Timestamp>>) -> Self {
        let has_some = times.iter().any(Option::is_some);
        Self {
            times: if has_some { times } else { Vec::new() },
        }
    }

    /// Whether every event is sent at once, whatever the time is.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The time before which the event at this position is not sent. `None` if it is sent at once,
    /// `at` being now.
    pub fn later_than(&self, at: Timestamp, index: usize) -> Option<Timestamp> {
        self.times
            .get(index)
            .copied()
            .flatten()
            .filter(|time| *time > at)
    }

    /// The earliest of the times that are later than this.
    pub fn first_after(&self, at: Timestamp) -> Option<Timestamp> {
        self.times
            .iter()
            .copied()
            .flatten()
            .filter(|time| *time > at)
            .min()
    }

    /// The last of the times that are later than this.
    pub fn last_after(&self, at: Timestamp) -> Option<Timestamp> {
        let times = self.times.iter().copied().flatten();
        times.filter(|time| *time > at).max()
    }

    /// Whether one of these events is not sent at once.
    pub(super) fn delays_any(&self, at: Timestamp, indexes: &[u32]) -> bool {
        !self.is_empty()
            && indexes
                .iter()
                .any(|index| self.later_than(at, *index as usize).is_some())
    }

    /// The positions of those events that are not sent at once, by the minute in which they go out.
    pub(super) fn by_minute(
        &self,
        at: Timestamp,
        indexes: &[u32],
    ) -> BTreeMap<Timestamp, Vec<u32>> {
        let mut minutes: BTreeMap<Timestamp, Vec<u32>> = BTreeMap::new();
        for index in indexes {
            if let Some(time) = self.later_than(at, *index as usize) {
                minutes
                    .entry(time.rounded_up_to_minute())
                    .or_default()
                    .push(*index);
            }
        }
        minutes
    }
}

/// Writes objects, each of which is rendered when its turn comes, and returns the number of their
/// messages. The same request writes the same objects again.
pub(super) async fn park_objects(
    store: &impl ObjectStore,
    objects: impl Iterator<Item = ScheduledObject> + Send,
) -> Result<usize, PortError> {
    stream::iter(objects)
        .map(|object| async move {
            let ScheduledObject { key, messages } = object;
            let put = store.put(&key, render_parked(&messages), PutCondition::Always);
            put.await?;
            Ok(messages.len())
        })
        .buffer_unordered(PUTS_AT_ONCE)
        .try_fold(0, |sum, messages| async move { Ok(sum + messages) })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn in_secs(secs: u64) -> Timestamp {
        Timestamp::from_millis(AT.as_millis() + secs * 1000)
    }

    #[test]
    fn events_of_a_minute_go_out_together_and_past_times_at_once() {
        let times = [
            Some(in_secs(90)),
            None,
            Some(AT),
            Some(in_secs(95)),
            Some(in_secs(900)),
        ];
        let schedule = EventSchedule::new(times.to_vec());
        let minutes = schedule.by_minute(AT, &[0, 1, 2, 3, 4]);
        assert_eq!(
            minutes.values().cloned().collect::<Vec<_>>(),
            [vec![0, 3], vec![4]]
        );
        assert!(
            minutes
                .keys()
                .all(|minute| minute.as_millis() % 60_000 == 0)
        );
        assert_eq!(schedule.first_after(AT), Some(in_secs(90)));
        assert_eq!(schedule.last_after(AT), Some(in_secs(900)));
        assert!(schedule.delays_any(AT, &[1, 3]) && !schedule.delays_any(AT, &[1, 2]));
    }

    #[test]
    fn schedule_without_times_is_empty() {
        assert!(EventSchedule::new(vec![None, None]).is_empty());
        assert!(EventSchedule::default().by_minute(AT, &[0]).is_empty());
    }
}
