//! The changes that one poll made to each resource, and the ids under which they are logged.

use super::topic_changes::{TOPIC_CHANGES_MAX, topic_changes};
use super::{PressureChange, PressureLevel, PressureState, Resource, ResourceState, UNTOLD_MAX};

/// Log id: a resource's level rose (error).
pub const PRESSURE_ROSE: u32 = 15_004;
/// Log id: a resource's level fell (information).
pub const PRESSURE_FELL: u32 = 15_005;
/// Log id: producers are refused because a disk is nearly full (error).
pub const DISK_CRITICALLY_LOW: u32 = 15_006;
/// Log id: producers are refused because memory is nearly used up (error).
pub const MEMORY_CRITICALLY_LOW: u32 = 15_007;

/// The change of one resource in one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelTransition {
    /// The resource.
    pub resource: Resource,
    /// The level before, as the operator last heard it.
    pub previous: PressureLevel,
    /// The level now; the same as before if only the refusal began.
    pub current: PressureLevel,
    /// Whether producers are refused on its account who were not before.
    pub refusal_began: bool,
}

impl LevelTransition {
    /// The ids under which this is logged.
    pub fn log_ids(&self) -> Vec<u32> {
        let moved = match self.current.cmp(&self.previous) {
            std::cmp::Ordering::Greater => Some(PRESSURE_ROSE),
            std::cmp::Ordering::Less => Some(PRESSURE_FELL),
            std::cmp::Ordering::Equal => None,
        };
        let critical = match self.resource {
            resource if self.refusal_began && resource.is_disk() => Some(DISK_CRITICALLY_LOW),
            resource if self.refusal_began && resource.is_memory() => Some(MEMORY_CRITICALLY_LOW),
            _ => None,
        };
        moved.into_iter().chain(critical).collect()
    }
}

/// The changes between two states, in the order of the table. The first is the one that was written
/// before, however old it is: an operator who heard of it hears what became of it.
pub(super) fn level_transitions(
    written: &PressureState,
    state: &PressureState,
) -> Vec<LevelTransition> {
    Resource::ALL
        .into_iter()
        .filter_map(|resource| resource_transition(written, state, resource))
        .collect()
}

fn resource_transition(
    written: &PressureState,
    state: &PressureState,
    resource: Resource,
) -> Option<LevelTransition> {
    let before = written.resource(resource);
    let after = state.resource(resource);
    let was_refusing = before.is_some_and(|it| it.refused_from.is_some());
    let is_refusing = after.is_some_and(|it| it.refused_from.is_some());
    let change = LevelTransition {
        resource,
        previous: before.map_or(PressureLevel::Normal, ResourceState::told_level),
        current: after.map_or(PressureLevel::Normal, ResourceState::told_level),
        refusal_began: is_refusing && !was_refusing,
    };
    (change.previous != change.current || change.refusal_began).then_some(change)
}

impl PressureChange {
    fn new(transition: LevelTransition, state: &PressureState) -> Self {
        let LevelTransition {
            resource,
            previous,
            current,
            refusal_began,
        } = transition;
        Self {
            at: state.at,
            topic: None,
            resource,
            previous,
            current,
            refusal_began,
            overall: state.effective_level(),
            tarpit_ms: state.tarpit_ms,
            refused_tiers: state.refused_tiers(),
            seen: state.resource(resource).cloned(),
        }
    }
}

/// Takes the changes that wait for a notice into a state: those that the state `written` before
/// carries, and those of this poll. Returns the number of those dropped because there are too many:
/// topics first, then the oldest.
#[must_use]
pub fn carry_changes(
    state: &mut PressureState,
    written: &PressureState,
    transitions: &[LevelTransition],
) -> usize {
    let mut topics = topic_changes(written, state);
    let left_out = topics.len().saturating_sub(TOPIC_CHANGES_MAX);
    topics.truncate(TOPIC_CHANGES_MAX);
    let news = transitions
        .iter()
        .map(|transition| PressureChange::new(*transition, state));
    let before = written.untold.iter().cloned();
    let mut untold: Vec<_> = before.chain(topics).chain(news).collect();
    let dropped = untold.len().saturating_sub(UNTOLD_MAX);
    untold.drain(..dropped);
    state.untold = untold;
    left_out + dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Timestamp;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn rise(resource: Resource) -> LevelTransition {
        LevelTransition {
            resource,
            previous: PressureLevel::Normal,
            current: PressureLevel::Medium,
            refusal_began: false,
        }
    }

    fn state(
        at: Timestamp,
        before: &[PressureChange],
        transitions: &[LevelTransition],
    ) -> (PressureState, usize) {
        let written = PressureState {
            untold: before.to_vec(),
            ..PressureState::normal(at)
        };
        let mut state = PressureState::normal(at);
        let dropped = carry_changes(&mut state, &written, transitions);
        (state, dropped)
    }

    #[test]
    fn untold_changes_go_before_new_ones() {
        let (first, _) = state(
            NOW,
            &[],
            &[rise(Resource::DrainTime), rise(Resource::LogDisk)],
        );
        let later = NOW + std::time::Duration::from_secs(2);
        let (second, dropped) = state(later, &first.untold, &[rise(Resource::BatchPoints)]);
        let told: Vec<_> = second
            .untold
            .iter()
            .map(|change| (change.resource, change.at))
            .collect();
        let expected = [
            (Resource::DrainTime, NOW),
            (Resource::LogDisk, NOW),
            (Resource::BatchPoints, later),
        ];
        assert_eq!((told, dropped), (expected.to_vec(), 0));
    }

    #[test]
    fn oldest_of_too_many_changes_are_dropped() {
        let mut before = Vec::new();
        for poll in 0..UNTOLD_MAX as u64 {
            let at = Timestamp::from_millis(poll);
            before = state(at, &before, &[rise(Resource::DrainTime)]).0.untold;
        }
        let (state, dropped) = state(
            NOW,
            &before,
            &[rise(Resource::DrainTime), rise(Resource::LogDisk)],
        );
        assert_eq!((state.untold.len(), dropped), (UNTOLD_MAX, 2));
        assert_eq!(state.untold[0].at, Timestamp::from_millis(2));
        assert_eq!(state.untold[UNTOLD_MAX - 1].resource, Resource::LogDisk);
    }

    #[test]
    fn a_state_that_carries_changes_is_read_with_and_without_them() {
        let (full, _) = state(NOW, &[], &[rise(Resource::DrainTime)]);
        assert_eq!(PressureState::parse(&full.render()).unwrap(), full);
        let mut json: serde_json::Value = serde_json::from_slice(&full.render()).unwrap();
        assert!(json.as_object_mut().unwrap().remove("untold").is_some());
        let mut without = PressureState::parse(json.to_string().as_bytes()).unwrap();
        assert_eq!(without.untold, []);
        without.untold.clone_from(&full.untold);
        assert_eq!(without, full);
    }

    #[test]
    fn additions_by_a_newer_program_are_passed_over() {
        let (full, _) = state(NOW, &[], &[rise(Resource::DrainTime)]);
        let mut json: serde_json::Value = serde_json::from_slice(&full.render()).unwrap();
        json["unheardOf"] = 1.into();
        json["untold"][0]["unheardOf"] = "x".into();
        assert_eq!(
            PressureState::parse(json.to_string().as_bytes()).unwrap(),
            full
        );
    }
}
