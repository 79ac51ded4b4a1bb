//! Topics under pressure of their own: a topic whose subscriptions drain slowly slows its own
//! producers, by the row of the drain time. No other topic's producers wait for it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::state::parse_group;
use super::{SlowSubscription, TOPICS_MAX, TopicPressure};
use crate::model::{SubscriptionName, TopicName};

/// The drain time of a topic: that of its middle subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopicDrain {
    /// The topic.
    pub topic: TopicName,
    /// The middle subscription.
    pub subscription: SubscriptionName,
    /// Messages of it that are due.
    pub due: u64,
    /// Seconds until they would be delivered.
    pub drain_secs: u64,
}

/// The slow subscriptions of one topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowTopic {
    /// The topic.
    pub topic: TopicName,
    /// The subscriptions that need time for what is due.
    pub subscriptions: BTreeMap<SubscriptionName, SlowSubscription>,
}

impl SlowTopic {
    /// The slow subscriptions by topic, the slowest topics first, at most [`TOPICS_MAX`]. The name
    /// of a group that no subscription has is passed over.
    pub fn group_by_topic(slow: Vec<SlowSubscription>) -> Vec<Self> {
        let mut topics: BTreeMap<TopicName, BTreeMap<SubscriptionName, SlowSubscription>> =
            BTreeMap::new();
        for subscription in slow {
            if let Some((topic, name)) = parse_group(&subscription.group) {
                topics.entry(topic).or_default().insert(name, subscription);
            }
        }
        let mut topics: Vec<_> = topics
            .into_iter()
            .map(|(topic, subscriptions)| Self {
                topic,
                subscriptions,
            })
            .collect();
        topics.sort_by_key(|topic| Reverse(topic.slowest_secs()));
        topics.truncate(TOPICS_MAX);
        topics
    }

    /// The longest drain time of its subscriptions, in seconds.
    pub fn slowest_secs(&self) -> u64 {
        let secs = self.subscriptions.values().map(|slow| slow.drain_secs);
        secs.max().unwrap_or_default()
    }

    /// The drain time of the topic, where processes of deliver reported its middle subscription.
    pub fn reported_middle(&self) -> Option<TopicDrain> {
        let (name, slow) = self
            .subscriptions
            .iter()
            .filter(|(_, slow)| slow.is_reported_middle)
            .max_by_key(|(_, slow)| slow.due)?;
        Some(TopicDrain {
            topic: self.topic.clone(),
            subscription: name.clone(),
            due: slow.due,
            drain_secs: slow.drain_secs,
        })
    }

    /// The drain time of the topic, which has this name, and these subscriptions that take deliveries now: that of
    /// the middle one, of an even number the lower. So one slow subscription among many stops no
    /// producer. One whose waiting messages take more than `bytes_max` counts as the middle one: it would
    /// fill the disk. `None` if the middle one needs no time.
    pub fn topic_drain(
        mut self,
        topic: &TopicName,
        subscriptions: &[SubscriptionName],
        bytes_max: Option<u64>,
    ) -> Option<TopicDrain> {
        let mut slow: Vec<_> = subscriptions
            .iter()
            .filter_map(|name| {
                let folded = SubscriptionName::parse(&name.folded_text()).ok()?;
                Some((name, self.subscriptions.remove(&folded)?))
            })
            .collect();
        slow.sort_by_key(|(name, slow)| (Reverse(slow.drain_secs), *name));
        let large = slow
            .iter()
            .position(|(_, slow)| bytes_max.is_some_and(|max| slow.bytes > max));
        let middle = subscriptions.len() / 2;
        let (name, slow) = slow.get(large.unwrap_or(middle).min(middle))?;
        Some(TopicDrain {
            topic: topic.clone(),
            subscription: (*name).clone(),
            due: slow.due,
            drain_secs: slow.drain_secs,
        })
    }
}

/// The topics that a state names, in the order of their names in lower case: of too many those with
/// the highest levels, and of these the slowest.
pub(super) fn keep_worst_topics(mut topics: Vec<TopicPressure>) -> Vec<TopicPressure> {
    if topics.len() > TOPICS_MAX {
        topics.sort_by_key(|of| Reverse((of.drain_time.effective_level(), of.drain_time.reading)));
        topics.truncate(TOPICS_MAX);
    }
    topics.sort_by_key(|of| of.topic.folded());
    topics
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(group: &str, drain_secs: u64, bytes: u64) -> SlowSubscription {
        SlowSubscription {
            group: group.into(),
            due: drain_secs,
            bytes,
            drain_secs,
            is_reported_middle: false,
        }
    }

    fn orders() -> TopicName {
        TopicName::parse("Orders").unwrap()
    }

    fn names_of(count: usize) -> Vec<SubscriptionName> {
        (0..count)
            .map(|index| SubscriptionName::parse(&format!("S{index}")).unwrap())
            .collect()
    }

    /// The drain time of a topic with so many subscriptions, of which the first have these drain
    /// times.
    fn drain(subscriptions: usize, secs: &[u64]) -> Option<(String, u64)> {
        let of = |(index, secs): (usize, &u64)| slow(&format!("orders.s{index}"), *secs, 0);
        let topics = SlowTopic::group_by_topic(secs.iter().enumerate().map(of).collect());
        let [topic] = <[SlowTopic; 1]>::try_from(topics).unwrap();
        let drain = topic.topic_drain(&orders(), &names_of(subscriptions), None)?;
        Some((drain.subscription.to_string(), drain.drain_secs))
    }

    #[test]
    fn topic_is_judged_by_its_middle_subscription() {
        let check = |subscriptions, secs: &[u64], expected: Option<(&str, u64)>| {
            let expected = expected.map(|(name, secs)| (name.to_owned(), secs));
            assert_eq!(
                drain(subscriptions, secs),
                expected,
                "{subscriptions} {secs:?}"
            );
        };
        check(1, &[70], Some(("S0", 70)));
        // Of an even number the lower.
        check(2, &[70], None);
        check(2, &[70, 40], Some(("S1", 40)));
        check(3, &[70], None);
        check(3, &[70, 90], Some(("S0", 70)));
        check(3, &[70, 90, 10], Some(("S0", 70)));
        check(4, &[70, 90], None);
        check(100, &[70], None);
        check(100, &[70; 50], None);
        check(100, &[70; 51], Some(("S9", 70)));
    }

    #[test]
    fn subscription_that_takes_no_deliveries_now_does_not_count() {
        // The second of them is paused, or deleted.
        assert_eq!(drain(1, &[70, 900]), Some(("S0".to_owned(), 70)));
    }

    #[test]
    fn subscription_that_fills_the_disk_counts_as_the_middle_one() {
        let topic = || {
            let slow = vec![slow("orders.s7", 70, 1001), slow("orders.s8", 900, 1000)];
            SlowTopic::group_by_topic(slow).remove(0)
        };
        let drain = |bytes_max| {
            let drain = topic().topic_drain(&orders(), &names_of(100), bytes_max)?;
            Some((drain.subscription.to_string(), drain.drain_secs))
        };
        assert_eq!(drain(Some(1001)), None);
        assert_eq!(drain(Some(1000)), Some(("S7".to_owned(), 70)));
        assert_eq!(drain(Some(999)), Some(("S8".to_owned(), 900)));
        assert_eq!(drain(None), None);
    }

    #[test]
    fn slowest_topics_come_first_and_too_many_are_left_out() {
        let slow = (0..TOPICS_MAX as u64 + 5)
            .map(|index| slow(&format!("t{index}.s"), index + 1, 0))
            .collect();
        let topics = SlowTopic::group_by_topic(slow);
        assert_eq!(topics.len(), TOPICS_MAX);
        assert_eq!(topics[0].topic.as_str(), format!("t{}", TOPICS_MAX + 4));
    }

    #[test]
    fn group_of_no_subscription_is_passed_over() {
        assert_eq!(
            SlowTopic::group_by_topic(vec![slow("", 9, 0), slow("no subscription", 9, 0)]),
            []
        );
    }
}
