//! Self-limited subscriptions: their messages wait for a place of their own, not for one that all
//! share. However long they wait, no other subscription waits for it. So they are left out of what
//! the whole installation is judged by, and only their own topic is judged by them.
//!
//! A subscription that was self-limited stays so for some looks as long as something of it is due,
//! unless shared places run out: what is left of its backlog became old while it waited for itself.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use super::backlog_rate::BacklogRate;
use super::{DrainLook, OwnWait, ReportedDrain, SubscriptionDrain};

/// The subscriptions with something due, and how fast each of them drains. Each monitor has one.
#[derive(Debug, Default)]
pub struct SubscriptionDrains {
    known: HashMap<Arc<str>, KnownDrain>,
    /// Messages that were due at the last look, of all subscriptions.
    visible: u64,
}

/// The due messages of one group of the delivery queue, which is a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DueOfGroup {
    /// The group.
    pub group: Arc<str>,
    /// Messages that are due and not in flight.
    pub due: u64,
    /// Bytes of all messages of the group that wait in the queue, about.
    pub bytes: u64,
}

/// The delivery queue as the installation is judged by it, and the subscriptions that are slow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainSplit {
    /// Messages that are due, without those of self-limited subscriptions.
    pub visible: u64,
    /// Messages that were settled since the last look, without theirs.
    pub settled: u64,
    /// The longest that a message had been due which was received since, without theirs.
    pub waited_max: Duration,
    /// Messages that were due at the last look, without those of subscriptions that are
    /// self-limited now; `None` where that is not known, and those that counted then stand for it.
    pub visible_before: Option<u64>,
    /// The subscriptions that need a second or more for what is due.
    pub slow: Vec<SlowSubscription>,
}

/// A subscription that needs time for what is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlowSubscription {
    /// The group of its messages.
    pub group: Arc<str>,
    /// Messages that are due.
    pub due: u64,
    /// Bytes of all its messages that wait in the queue, about.
    pub bytes: u64,
    /// Seconds until those that are due would be delivered.
    pub drain_secs: u64,
    /// Whether processes of deliver reported it as the middle one of its topic.
    pub is_reported_middle: bool,
}

/// Looks for which a subscription stays self-limited that does not always wait for itself any more:
/// enough for the end of a backlog, and for the moment in which all that waited too long goes back
/// to the queue. One that waits for others from then on counts soon.
const LOOKS_MAX: u8 = 3;

#[derive(Debug, Clone, Default)]
struct KnownDrain {
    rate: BacklogRate,
    /// Looks for which it stays self-limited as long as something of it is due.
    looks_left: u8,
}

impl SubscriptionDrains {
    /// Takes one look in. `visible` messages are due, and `groups` says whose.
    pub fn add_look(
        &mut self,
        visible: u64,
        groups: Vec<DueOfGroup>,
        look: &DrainLook,
    ) -> DrainSplit {
        let drains: HashMap<&str, &SubscriptionDrain> = look
            .subscriptions
            .iter()
            .map(|drain| (&*drain.group, drain))
            .collect();
        let mut before = std::mem::take(&mut self.known);
        let visible_before = std::mem::replace(&mut self.visible, visible);
        let mut split = DrainSplit {
            visible,
            settled: look.all.messages,
            visible_before: Some(visible_before),
            ..DrainSplit::default()
        };
        for group in with_waiting(groups, look) {
            let drain = drains.get(&*group.group).copied();
            let known = before.remove(&group.group).unwrap_or_default();
            let known = known.after_look(&group, drain, look, &mut split);
            self.known.insert(group.group, known);
        }
        split
    }
}

impl SubscriptionDrains {
    /// Takes one look at reports in: `visible` messages are due, and whose they are is estimated by
    /// what was received.
    pub fn update_reported(
        &mut self,
        visible: u64,
        reported: &ReportedDrain,
        look: &DrainLook,
    ) -> DrainSplit {
        let groups = reported.topics.iter().map(|drain| DueOfGroup {
            group: Arc::clone(&drain.group),
            due: reported.share_of_visible(visible, drain.count.received),
            bytes: 0,
        });
        let topics = DrainLook {
            subscriptions: reported.topics.clone(),
            ..look.clone()
        };
        let slow = self.add_look(visible, groups.collect(), &topics).slow;
        DrainSplit {
            visible: visible - reported.share_of_visible(visible, reported.self_limited_received),
            settled: reported.shared.messages,
            waited_max: reported.shared.waited_max,
            visible_before: None,
            slow,
        }
    }
}

impl DrainSplit {
    /// Everything, where nothing is known of the subscriptions.
    pub fn of_whole_queue(visible: u64, look: &DrainLook) -> Self {
        Self {
            visible,
            settled: look.all.messages,
            waited_max: look.all.waited_max,
            ..Self::default()
        }
    }
}

impl KnownDrain {
    /// The subscription after a look, which is taken into `split`.
    fn after_look(
        self,
        group: &DueOfGroup,
        drain: Option<&SubscriptionDrain>,
        look: &DrainLook,
        split: &mut DrainSplit,
    ) -> Self {
        let count = drain.map(|drain| drain.count).unwrap_or_default();
        let own_wait = drain.map(|drain| drain.own_wait).unwrap_or_default();
        let due_before = self.rate.last_visible();
        let is_self_limited =
            !look.shared_places_ran_out && self.is_self_limited(group.due, own_wait);
        let looks_left = match own_wait {
            _ if !is_self_limited => 0,
            OwnWait::Throughout => LOOKS_MAX,
            OwnWait::None | OwnWait::Now => self.looks_left.saturating_sub(1),
        };
        if is_self_limited {
            split.visible = split.visible.saturating_sub(group.due);
            split.settled = split.settled.saturating_sub(count.settled);
            split.visible_before = split
                .visible_before
                .map(|before| before.saturating_sub(due_before));
        } else if group.due > 0 {
            split.waited_max = split.waited_max.max(count.waited_max);
        }
        let mut rate = self.rate;
        let drain_secs = rate.add_poll(group.due, count, look.all.over);
        if drain_secs > 0 {
            split.slow.push(SlowSubscription {
                group: Arc::clone(&group.group),
                due: group.due,
                bytes: group.bytes,
                drain_secs,
                is_reported_middle: look.reported.is_some(),
            });
        }
        Self { rate, looks_left }
    }

    /// Whether it is limited by itself, where shared places were free.
    fn is_self_limited(&self, due: u64, own_wait: OwnWait) -> bool {
        match own_wait {
            OwnWait::Throughout => true,
            // What came since the last look is no backlog yet.
            OwnWait::Now => self.looks_left > 0 || self.rate.last_visible() == 0,
            OwnWait::None => self.looks_left > 0 && due > 0,
        }
    }
}

/// The groups with something due, and those whose deliveries wait for a place of their own.
fn with_waiting(mut groups: Vec<DueOfGroup>, look: &DrainLook) -> Vec<DueOfGroup> {
    let with_due: HashSet<Arc<str>> = groups.iter().map(|of| Arc::clone(&of.group)).collect();
    let waiting = look
        .subscriptions
        .iter()
        .filter(|drain| drain.own_wait > OwnWait::None && !with_due.contains(&drain.group));
    groups.extend(waiting.map(|drain| DueOfGroup {
        group: Arc::clone(&drain.group),
        due: 0,
        bytes: 0,
    }));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pressure::{DrainCount, DrainedMessages};

    const POLL: Duration = Duration::from_secs(2);

    /// One subscription at a look: its name, due messages, settled ones, and its wait.
    type Seen = (&'static str, u64, u64, OwnWait);

    /// Looks two seconds apart: the visible messages, the settled ones, and the drain times of slow
    /// subscriptions.
    struct Looks {
        drains: SubscriptionDrains,
        shared_places_ran_out: bool,
        waited_max: Duration,
    }

    impl Looks {
        fn new() -> Self {
            Self {
                drains: SubscriptionDrains::default(),
                shared_places_ran_out: false,
                waited_max: Duration::ZERO,
            }
        }

        fn look(&mut self, seen: &[Seen]) -> DrainSplit {
            let group = |(name, due, ..): &Seen| DueOfGroup {
                group: (*name).into(),
                due: *due,
                bytes: 0,
            };
            let drain = |(name, _, settled, own_wait): &Seen| SubscriptionDrain {
                group: (*name).into(),
                count: DrainCount {
                    received: *settled,
                    settled: *settled,
                    waited_max: self.waited_max,
                },
                own_wait: *own_wait,
            };
            let all = DrainedMessages {
                messages: seen.iter().map(|seen| seen.2).sum(),
                over: POLL,
                waited_max: self.waited_max,
            };
            let look = DrainLook {
                all,
                subscriptions: seen.iter().map(drain).collect(),
                shared_places_ran_out: self.shared_places_ran_out,
                reported: None,
            };
            let groups = seen.iter().filter(|seen| seen.1 > 0).map(group).collect();
            self.drains
                .add_look(seen.iter().map(|seen| seen.1).sum(), groups, &look)
        }

        /// The numbers that count for the installation: due, settled and the oldest wait in
        /// seconds.
        fn shared(&mut self, seen: &[Seen]) -> (u64, u64, u64) {
            let split = self.look(seen);
            (split.visible, split.settled, split.waited_max.as_secs())
        }
    }

    #[test]
    fn subscription_that_waits_for_itself_is_left_out_and_slow() {
        let mut looks = Looks::new();
        looks.waited_max = Duration::from_secs(40);
        let split = looks.look(&[
            ("a.slow", 9000, 10, OwnWait::Throughout),
            ("b.quick", 3, 500, OwnWait::None),
        ]);
        let counted = (split.visible, split.settled, split.waited_max.as_secs());
        assert_eq!(counted, (3, 500, 40));
        let slow: Vec<_> = split.slow.iter().map(|slow| &*slow.group).collect();
        assert_eq!(slow, ["a.slow", "b.quick"]);
        // Ten in two seconds.
        assert_eq!(split.slow[0].drain_secs, 1800);
    }

    #[test]
    fn oldest_wait_of_self_limited_subscription_is_left_out() {
        let mut looks = Looks::new();
        looks.waited_max = Duration::from_secs(4000);
        let seen = [("a.slow", 9000, 10, OwnWait::Throughout)];
        assert_eq!(looks.shared(&seen), (0, 0, 0));
    }

    #[test]
    fn burst_is_left_out_from_its_first_look_on() {
        let mut looks = Looks::new();
        assert_eq!(
            looks.shared(&[("a.slow", 20_000, 10, OwnWait::Now)]),
            (0, 0, 0)
        );
        let split = looks.look(&[("a.slow", 19_990, 10, OwnWait::Throughout)]);
        assert_eq!((split.visible, split.visible_before), (0, Some(0)));
    }

    #[test]
    fn due_before_is_of_the_subscriptions_that_count_now() {
        let mut looks = Looks::new();
        let mut before = |wait, ran_out| {
            looks.shared_places_ran_out = ran_out;
            let slow = ("a.slow", 9000, 10, wait);
            let split = looks.look(&[slow, ("b.other", 100, 0, OwnWait::None)]);
            split.visible_before.unwrap()
        };
        // It counted at no look, at one, and after that at none again.
        assert_eq!(before(OwnWait::Throughout, false), 0);
        assert_eq!(before(OwnWait::Throughout, false), 100);
        assert_eq!(before(OwnWait::Throughout, true), 9100);
        assert_eq!(before(OwnWait::Throughout, false), 100);
    }

    /// A backlog that began to wait for itself late counts until the next look.
    #[test]
    fn late_self_limited_backlog_counts_until_the_next_look() {
        let mut looks = Looks::new();
        let shared = [OwnWait::None, OwnWait::Now, OwnWait::Throughout]
            .map(|wait| looks.shared(&[("a.b", 5000, 10, wait)]).0);
        assert_eq!(shared, [5000, 5000, 0]);
    }

    #[test]
    fn end_of_a_self_limited_backlog_is_left_out_too() {
        let mut looks = Looks::new();
        looks.waited_max = Duration::from_secs(4000);
        looks.look(&[("a.slow", 9000, 10, OwnWait::Throughout)]);
        let rest = [
            ("a.slow", 7, 40, OwnWait::None),
            ("b.quick", 0, 30, OwnWait::None),
        ];
        assert_eq!(looks.shared(&rest), (0, 30, 0));
        // It had nothing due meanwhile: what comes now counts.
        looks.look(&[("a.slow", 0, 7, OwnWait::None)]);
        assert_eq!(looks.shared(&[("a.slow", 7, 40, OwnWait::None)]).0, 7);
    }

    #[test]
    fn exhausted_shared_places_make_every_backlog_count() {
        let mut looks = Looks::new();
        let seen = [
            ("a.slow", 9000, 10, OwnWait::Throughout),
            ("b.slow", 9000, 20, OwnWait::Throughout),
        ];
        assert_eq!(looks.shared(&seen), (0, 0, 0));
        looks.shared_places_ran_out = true;
        assert_eq!(looks.shared(&seen), (18_000, 30, 0));
        looks.shared_places_ran_out = false;
        assert_eq!(looks.shared(&seen), (0, 0, 0));
    }

    #[test]
    fn backlog_that_waits_for_others_counts_after_some_looks() {
        let mut looks = Looks::new();
        let waits = [
            OwnWait::Throughout,
            OwnWait::None,
            OwnWait::Now,
            OwnWait::None,
            OwnWait::None,
        ];
        let shared = waits.map(|wait| looks.shared(&[("a.b", 5000, 10, wait)]).0);
        assert_eq!(shared, [0, 0, 0, 0, 5000]);
    }

    #[test]
    fn backlog_that_waits_for_the_queue_alone_counts() {
        let mut looks = Looks::new();
        let seen = [("a.b", 9000, 10, OwnWait::None)];
        assert_eq!([looks.shared(&seen).0, looks.shared(&seen).0], [9000, 9000]);
    }
}
