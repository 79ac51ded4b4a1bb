//! The changes that one poll made to the pressure of topics, of which operators get notices.

use std::cmp::Reverse;

use super::{ChangedTopic, PressureChange, PressureState, Resource, TopicPressure};
use crate::model::ProducerTier;

/// Most topics of whose changes one poll tells, those with the highest levels first: a quarter of
/// the changes that may wait for their notices. The others are in the log and in the metrics.
pub(super) const TOPIC_CHANGES_MAX: usize = 8;

/// The changes of topics between two states. The first is the one that was written before.
pub(super) fn topic_changes(written: &PressureState, state: &PressureState) -> Vec<PressureChange> {
    let now = state.topics.iter();
    let now = now.map(|of| (written.topic(&of.topic), Some(of)));
    let gone = written.topics.iter();
    let gone = gone.filter(|of| state.topic(&of.topic).is_none());
    let gone = gone.map(|of| (Some(of), None));
    let changes = now.chain(gone);
    let mut changes: Vec<_> = changes
        .filter_map(|(before, after)| topic_change(before, after, state))
        .collect();
    changes.sort_by_key(|change| Reverse(change.current.max(change.previous)));
    changes
}

fn topic_change(
    before: Option<&TopicPressure>,
    after: Option<&TopicPressure>,
    state: &PressureState,
) -> Option<PressureChange> {
    let previous = before
        .map(TopicPressure::effective_level)
        .unwrap_or_default();
    let current = after
        .map(TopicPressure::effective_level)
        .unwrap_or_default();
    let was_refusing = before.is_some_and(|of| of.drain_time.refused_from.is_some());
    let is_refusing = after.is_some_and(|of| of.drain_time.refused_from.is_some());
    let refusal_began = is_refusing && !was_refusing;
    if previous == current && !refusal_began {
        return None;
    }
    let known = after.or(before)?;
    let refused_tiers = ProducerTier::ALL
        .into_iter()
        .filter(|tier| after.is_some_and(|of| of.drain_time.refuses_tier(*tier)));
    Some(PressureChange {
        at: state.at,
        topic: Some(ChangedTopic {
            name: known.topic.clone(),
            subscription: known.subscription.clone(),
            due: after.map_or(0, |of| of.due),
        }),
        resource: Resource::DrainTime,
        previous,
        current,
        refusal_began,
        overall: state.effective_level(),
        tarpit_ms: after.map_or(0, |of| of.tarpit_ms),
        refused_tiers: refused_tiers.collect(),
        seen: after.map(|of| of.drain_time.clone()),
    })
}
