//! A change of a link's or a subscription's state, the topics that are notified of it, and the mark
//! that it was sent. Pure.

use std::collections::BTreeMap;

use posthaste_core::api::notice::{LinkNotice, Notice};
use posthaste_core::circuit::{
    DeliveryTarget, HealthSettings, LinkShard, StateChange, TargetCondition, state_change,
    with_notice_sent,
};
use posthaste_core::model::{Timestamp, TopicName};
use tracing::field::display;

/// Notices that are sent before the changes are marked; each change counts once for each of its
/// addressees. A crash repeats no more than these, and these are sent in the time in which nothing
/// new begins.
const NOTIFIED_PER_MARK: usize = 1000;

/// A change that is to be sent.
#[derive(Debug)]
pub(super) struct TargetChange {
    /// The part of the known links that the target is in.
    pub(super) index: usize,
    pub(super) target: DeliveryTarget,
    condition: TargetCondition,
    news: StateChange,
}

/// A change, and its addressees.
#[derive(Debug)]
pub(super) struct AddressedChange {
    pub(super) change: TargetChange,
    /// By folded name, so that none is notified twice.
    pub(super) to: BTreeMap<String, TopicName>,
    /// True if the subscription of the change is gone: no topic is notified, and the condition is
    /// forgotten.
    pub(super) is_gone: bool,
}

/// The changes of a part that are to be sent.
pub(super) fn changes_to_send(
    index: usize,
    shard: &LinkShard,
    now: Timestamp,
    settings: &HealthSettings,
) -> Vec<TargetChange> {
    let changes = shard.conditions().filter_map(|(target, condition)| {
        let news = state_change(condition, now, settings)?;
        Some(TargetChange {
            index,
            target,
            condition: condition.clone(),
            news,
        })
    });
    changes.collect()
}

/// The number of these changes, at least one, that are sent before they are marked.
pub(super) fn changes_per_mark(changes: &[AddressedChange]) -> usize {
    let notices = changes.iter().scan(0, |sum, it| {
        *sum += it.to.len();
        Some(*sum)
    });
    notices
        .take_while(|sum| *sum <= NOTIFIED_PER_MARK)
        .count()
        .max(1)
}

impl AddressedChange {
    /// Marks the change as sent; forgets the condition of a subscription that is gone. Tells
    /// whether anything changed.
    pub(super) fn mark_sent(&self, shard: &mut LinkShard) -> bool {
        if self.is_gone {
            return shard.forget_targets([&self.change.target]);
        }
        shard.change_condition(&self.change.target, |it| self.change.marked_condition(it))
    }

    pub(super) fn log(&self) {
        if self.is_gone {
            let target = &self.change.target;
            return tracing::info!(
                link = %target.link(), topic = target.topic().map(display),
                subscription = target.subscription().map(display),
                "the subscription was deleted, its state is forgotten"
            );
        }
        self.change.log();
    }
}

impl TargetChange {
    pub(super) fn notice(&self) -> Notice<'_> {
        Notice::Link(LinkNotice {
            target: &self.target,
            condition: &self.condition,
            news: self.news,
        })
    }

    /// The present condition, marked. A notice that a target is down counts for the outage in which
    /// it was sent; after a notice that a target is up, the next change is sent, whatever it
    /// is.
    fn marked_condition(&self, now: &TargetCondition) -> Option<TargetCondition> {
        let is_meant =
            self.news == StateChange::Up || now.failing_since == self.condition.failing_since;
        is_meant.then(|| with_notice_sent(now, self.news))
    }

    fn log(&self) {
        let Self {
            target,
            condition,
            news,
            ..
        } = self;
        let TargetCondition {
            since,
            failures,
            last,
            failing_since,
            ..
        } = condition;
        let link = target.link();
        let outcome = last.outcome;
        let status = last.status;
        let topic = target.topic().map(display);
        let subscription = target.subscription().map(display);
        match news {
            StateChange::Down => tracing::warn!(
                %link, topic, subscription, %since, %failing_since, failures, %outcome, status, "link down"
            ),
            StateChange::Up => tracing::info!(%link, topic, subscription, %since, "link up again"),
        }
    }
}

#[cfg(test)]
impl TargetChange {
    /// The change of a target that has just gone down.
    pub(super) fn down(target: DeliveryTarget) -> Self {
        use posthaste_core::attempt::OutcomeName;
        use posthaste_core::circuit::{Observation, RequestFailure};
        let last = RequestFailure {
            outcome: OutcomeName::Busy,
            status: None,
        };
        let failing = Observation::Failing {
            failures: 10,
            last,
            began: Timestamp::EPOCH,
        };
        let mut shard = LinkShard::default();
        shard.apply_observation(
            &target,
            &failing,
            Timestamp::EPOCH,
            &HealthSettings::default(),
        );
        let condition = shard.condition(&target).unwrap().clone();
        Self {
            index: 0,
            target,
            condition,
            news: StateChange::Down,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addressed(to: usize) -> AddressedChange {
        let name = |number: usize| TopicName::parse(&format!("ops{number}")).unwrap();
        let to = (0..to)
            .map(|number| (name(number).folded(), name(number)))
            .collect();
        AddressedChange {
            change: TargetChange::down(DeliveryTarget::parse("https://a.example:443").unwrap()),
            to,
            is_gone: false,
        }
    }

    /// Changes are marked after a number of notices, however many changes that are.
    #[test]
    fn marks_are_written_by_notice_count_not_change_count() {
        let check = |to: &[usize], expected: usize| {
            let changes: Vec<_> = to.iter().map(|to| addressed(*to)).collect();
            assert_eq!(changes_per_mark(&changes), expected, "{to:?}");
        };
        check(&[1], 1);
        check(&[NOTIFIED_PER_MARK + 1, 1], 1);
        check(&[NOTIFIED_PER_MARK, 1], 1);
        check(&[400, 400, 200, 1], 3);
        check(&[400, 400, 201, 1], 2);
        check(&vec![0; 3000], 3000);
    }
}
