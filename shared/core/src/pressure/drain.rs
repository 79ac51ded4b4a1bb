//! The speed of the delivery queue where many processes of deliver work on it and each reports its
//! own part.
//!
//! A report is about one process alone and carries no time of day. The store that keeps it knows
//! its age, so the clocks of the processes need not agree. The reports by themselves give the rate.
//! Earlier ones need not be remembered, which suits a monitor that starts afresh every minute.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The shortest wait worth a report: a process reports only after it received a message that had
/// been due for this long. Far below the drain time's lowest threshold (30 s), and far above the
/// waits in a queue that keeps up.
pub const REPORTED_WAIT_MIN: Duration = Duration::from_secs(5);

/// The shortest time between two reports of one process.
pub const REPORT_INTERVAL: Duration = Duration::from_secs(10);

/// The longest time that a report may be about: deliver's longest invocation (120 s), and some to
/// spare. A count over a longer time is of a process that had nothing to do in between, and says
/// nothing about its speed.
pub const REPORT_WINDOW_MAX: Duration = Duration::from_secs(150);

/// For how long a report speaks of the present at least: three intervals.
const CURRENT_MIN: Duration = Duration::from_secs(30);

/// For how long a report speaks of the present at most: from then on its process has surely ended
/// or has nothing that waits.
pub const CURRENT_MAX: Duration = REPORT_WINDOW_MAX;

/// The most topics that a report names: the slowest.
pub const REPORTED_TOPICS_MAX: usize = 20;

/// The report of one process of deliver about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainReport {
    /// The time that it is about, which ended when the process reported.
    pub window: Duration,
    /// The messages of subscriptions that did not wait for themselves.
    pub shared: DrainCount,
    /// The messages of those whose deliveries waited for places of their own.
    pub self_limited: DrainCount,
    /// The slowest topics, each with its middle subscription by the oldest wait; at most
    /// [`REPORTED_TOPICS_MAX`].
    pub topics: Vec<ReportedTopic>,
}

/// The middle subscription of a topic in one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedTopic {
    /// The group of its messages.
    pub group: Arc<str>,
    /// The counts of its messages.
    pub count: DrainCount,
}

/// The reports of all processes, taken together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedDrain {
    /// The drain of the subscriptions that did not wait for themselves.
    pub shared: DrainedMessages,
    /// Messages of these that were received.
    pub shared_received: u64,
    /// Messages of the others that were received.
    pub self_limited_received: u64,
    /// The middle subscriptions of slow topics, each settled in the time of the look.
    pub topics: Vec<SubscriptionDrain>,
}

/// The messages that were drained, and the time that took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainedMessages {
    /// Messages that were settled …
    pub messages: u64,
    /// … in this time.
    pub over: Duration,
    /// The longest that a received one had been due (`now − notBefore`).
    pub waited_max: Duration,
}

/// A look at the drain: the sums, and the subscriptions behind them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DrainLook {
    /// The sums over everything that was drained.
    pub all: DrainedMessages,
    /// The subscriptions of which something was received or settled, or waits. Empty where the
    /// source knows none.
    pub subscriptions: Vec<SubscriptionDrain>,
    /// Whether a request waited for a place that all subscriptions share since the last look.
    pub shared_places_ran_out: bool,
    /// The reports of processes about the two kinds of subscriptions, where that is all that is
    /// known.
    pub reported: Option<ReportedDrain>,
}

/// The drain of one subscription since the last look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionDrain {
    /// The group of its messages.
    pub group: Arc<str>,
    /// The messages of it.
    pub count: DrainCount,
    /// The wait of its deliveries for a place of its own: its limit, its share of its link, its
    /// rate, a ramp or a pause.
    pub own_wait: OwnWait,
}

/// Messages that were received and settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DrainCount {
    /// Messages that were received.
    pub received: u64,
    /// Messages that were settled.
    pub settled: u64,
    /// The longest that a received one had been due.
    pub waited_max: Duration,
}

/// Whether deliveries wait for a place of their subscription's own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnWait {
    /// None waits now.
    #[default]
    None,
    /// Some wait now, but there was a time since the last look in which none did.
    Now,
    /// Some waited at all times since the last look.
    Throughout,
}

impl From<DrainedMessages> for DrainLook {
    /// A look that knows the sums alone.
    fn from(all: DrainedMessages) -> Self {
        Self {
            all,
            ..Self::default()
        }
    }
}

impl DrainReport {
    /// Whether a report of this age still speaks of the present. A process whose invocations are
    /// long reports seldom, so its word holds longer.
    pub fn is_current(&self, age: Duration) -> bool {
        age <= self
            .window
            .saturating_mul(2)
            .clamp(CURRENT_MIN, CURRENT_MAX)
    }

    /// The messages of both kinds.
    pub fn total_count(&self) -> DrainCount {
        self.shared.plus(self.self_limited)
    }
}

impl DrainCount {
    /// This and another count together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            received: self.received.saturating_add(other.received),
            settled: self.settled.saturating_add(other.settled),
            waited_max: self.waited_max.max(other.waited_max),
        }
    }

    fn per_second(self, window: Duration) -> f64 {
        as_f64(self.settled) / window.max(Duration::from_millis(1)).as_secs_f64()
    }
}

impl ReportedDrain {
    /// The reports together, scaled to the number of processes of which `read` could be looked at.
    /// `over` is the time of the look, for the topics.
    fn from_reports(reports: &[DrainReport], elapsed: Duration, over: Duration) -> Self {
        let shared: Vec<_> = reports.iter().map(|it| (it.shared, it.window)).collect();
        let mut topics: BTreeMap<&str, (DrainCount, f64)> = BTreeMap::new();
        for report in reports {
            for topic in &report.topics {
                let (count, per_second) = topics.entry(&topic.group).or_default();
                *count = count.plus(topic.count);
                *per_second += topic.count.per_second(report.window);
            }
        }
        let mut shared_received = 0_u64;
        let mut self_limited_received = 0_u64;
        for report in reports {
            shared_received = shared_received.saturating_add(report.shared.received);
            self_limited_received =
                self_limited_received.saturating_add(report.self_limited.received);
        }
        let topics = topics
            .into_iter()
            .map(|(group, (count, per_second))| SubscriptionDrain {
                group: group.into(),
                count: DrainCount {
                    settled: round_messages(per_second * over.as_secs_f64()),
                    ..count
                },
                own_wait: OwnWait::None,
            });
        Self {
            shared: DrainedMessages::from_counts(&shared, elapsed),
            shared_received,
            self_limited_received,
            topics: topics.collect(),
        }
    }

    /// The part of the visible messages that this many received ones of all stand for.
    pub fn share_of_visible(&self, visible: u64, received: u64) -> u64 {
        let all = self
            .shared_received
            .saturating_add(self.self_limited_received);
        let part = u128::from(visible) * u128::from(received.min(all)) / u128::from(all.max(1));
        u64::try_from(part).unwrap_or(u64::MAX)
    }
}

impl DrainLook {
    /// The look at these reports, which `read` of so many processes made.
    pub fn from_reports(
        reports: &[DrainReport],
        elapsed: Duration,
        processes: usize,
        read: usize,
    ) -> Self {
        let all = DrainedMessages::from_reports(reports, elapsed).scaled_to(processes, read);
        let mut reported = ReportedDrain::from_reports(reports, elapsed, all.over);
        reported.shared = reported.shared.scaled_to(processes, read);
        Self {
            all,
            reported: Some(reported),
            ..Self::default()
        }
    }
}

impl DrainedMessages {
    /// The drain of all processes of these reports together. The time is the one in which all of
    /// them at once settle as many messages as they reported. Where they settled none it is
    /// `elapsed`, the time since the last look.
    pub fn from_reports(reports: &[DrainReport], elapsed: Duration) -> Self {
        let counts: Vec<_> = reports
            .iter()
            .map(|it| (it.total_count(), it.window))
            .collect();
        Self::from_counts(&counts, elapsed)
    }

    /// The same of counts, each over its time.
    fn from_counts(counts: &[(DrainCount, Duration)], elapsed: Duration) -> Self {
        let messages = counts
            .iter()
            .fold(0_u64, |sum, (count, _)| sum.saturating_add(count.settled));
        let per_second: f64 = counts
            .iter()
            .map(|(count, window)| count.per_second(*window))
            .sum();
        let over = match messages {
            0 => elapsed,
            _ => {
                Duration::try_from_secs_f64(as_f64(messages) / per_second).unwrap_or(Duration::MAX)
            }
        };
        let waited_max = counts
            .iter()
            .map(|(count, _)| count.waited_max)
            .max()
            .unwrap_or_default();
        Self {
            messages,
            over,
            waited_max,
        }
    }

    /// The same for this number of processes, where only `read` of them could be looked at.
    pub fn scaled_to(self, processes: usize, read: usize) -> Self {
        let messages = u128::from(self.messages) * processes as u128 / read.max(1) as u128;
        Self {
            messages: u64::try_from(messages).unwrap_or(u64::MAX),
            ..self
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of messages are far below 2^52"
)]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never negative, and `as` saturates"
)]
fn round_messages(messages: f64) -> u64 {
    messages.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ELAPSED: Duration = Duration::from_secs(10);

    fn report(settled: u64, window_secs: u64, waited_secs: u64) -> DrainReport {
        let window = Duration::from_secs(window_secs);
        let waited_max = Duration::from_secs(waited_secs);
        let shared = DrainCount {
            received: settled,
            settled,
            waited_max,
        };
        DrainReport {
            window,
            shared,
            ..DrainReport::default()
        }
    }

    fn check(reports: &[DrainReport], messages: u64, over_secs: u64, waited_secs: u64) {
        let [over, waited_max] = [over_secs, waited_secs].map(Duration::from_secs);
        assert_eq!(
            DrainedMessages::from_reports(reports, ELAPSED),
            DrainedMessages {
                messages,
                over,
                waited_max
            },
            "{reports:?}"
        );
    }

    #[test]
    fn rates_of_processes_add_up_whatever_their_windows() {
        check(&[report(100, 10, 7)], 100, 10, 7);
        check(&[report(100, 10, 7), report(100, 10, 9)], 200, 10, 9);
        // 10 a second and 5 a second.
        check(
            &[report(100, 10, 7), report(50, 10, 9), report(0, 120, 6)],
            150,
            10,
            9,
        );
        check(&[report(600, 60, 7), report(100, 10, 9)], 700, 35, 9);
    }

    /// The time is the one since the last look where nothing was settled.
    #[test]
    fn drain_without_settled_messages_spans_the_time_since_the_look() {
        check(&[report(0, 60, 50)], 0, 10, 50);
        check(&[], 0, 10, 0);
    }

    #[test]
    fn processes_that_were_not_looked_at_count_as_the_others() {
        let drained = DrainedMessages::from_reports(&[report(100, 10, 7)], ELAPSED);
        assert_eq!(
            drained.scaled_to(30, 10),
            DrainedMessages {
                messages: 300,
                ..drained
            }
        );
        assert_eq!(drained.scaled_to(0, 0).messages, 0);
    }

    #[test]
    fn a_report_holds_twice_its_window_within_bounds() {
        let check = |window_secs, holds_secs: u64| {
            let report = report(1, window_secs, 5);
            let ages = [holds_secs, holds_secs + 1].map(Duration::from_secs);
            assert_eq!(
                ages.map(|age| report.is_current(age)),
                [true, false],
                "{window_secs} s"
            );
        };
        check(0, 30);
        check(10, 30);
        check(60, 120);
        check(140, 150);
        check(u64::MAX, 150);
    }

    fn count(received: u64, settled: u64, waited_secs: u64) -> DrainCount {
        DrainCount {
            received,
            settled,
            waited_max: Duration::from_secs(waited_secs),
        }
    }

    #[test]
    fn visible_messages_are_split_by_what_was_received_of_each_kind() {
        let report = |self_limited, shared| DrainReport {
            window: ELAPSED,
            shared,
            self_limited,
            topics: Vec::new(),
        };
        let reports = [
            report(count(30, 10, 4000), count(10, 10, 6)),
            report(count(0, 0, 0), count(60, 60, 9)),
        ];
        let look = DrainLook::from_reports(&reports, ELAPSED, 2, 2);
        assert_eq!(
            (look.all.messages, look.all.waited_max.as_secs()),
            (80, 4000)
        );
        let reported = look.reported.unwrap();
        let shared = (
            reported.shared.messages,
            reported.shared.waited_max.as_secs(),
        );
        assert_eq!(shared, (70, 9));
        assert_eq!(
            reported.share_of_visible(1000, reported.self_limited_received),
            300
        );
        assert_eq!(
            reported.share_of_visible(1000, reported.shared_received),
            700
        );
        assert_eq!(ReportedDrain::default().share_of_visible(1000, 5), 0);
    }

    #[test]
    fn slow_topic_of_several_processes_is_taken_together() {
        let report = |settled, window_secs| DrainReport {
            window: Duration::from_secs(window_secs),
            shared: count(100, 100, 7),
            topics: vec![ReportedTopic {
                group: "orders.billing".into(),
                count: count(settled, settled, settled),
            }],
            ..DrainReport::default()
        };
        // Two a second and one a second.
        let look = DrainLook::from_reports(&[report(20, 10), report(20, 20)], ELAPSED, 2, 2);
        let over = look.all.over.as_secs_f64();
        let reported = look.reported.unwrap();
        let topic = &reported.topics[0];
        assert_eq!(
            (&*topic.group, topic.count.received),
            ("orders.billing", 40)
        );
        assert_eq!(topic.count.settled, round_messages(3.0 * over));
        assert_eq!(reported.topics.len(), 1);
    }

    proptest! {
        #[test]
        fn no_reports_break_the_sum(
            reports in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..9),
        ) {
            let reports: Vec<_> = reports.into_iter().map(|(settled, window_ms, waited_ms)| DrainReport {
                window: Duration::from_millis(window_ms),
                shared: DrainCount {
                    received: settled,
                    settled,
                    waited_max: Duration::from_millis(waited_ms),
                },
                ..DrainReport::default()
            }).collect();
            let drained = DrainedMessages::from_reports(&reports, ELAPSED);
            prop_assert_eq!(drained.messages == 0, reports.iter().all(|report| report.total_count().settled == 0));
            prop_assert!(drained.scaled_to(1000, 128).messages >= drained.messages);
        }
    }
}
