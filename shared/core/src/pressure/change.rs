//! A change of the pressure as a notice tells of it. Changes that were not told yet travel in the state itself, so that
//! the poll that saw them and the news of them are one write: neither is there without the other.

use serde::{Deserialize, Serialize};

use super::state::{PressureState, ResourceState};
use super::transition::Transition;
use super::{Level, Resource, Tier};
use crate::model::time::Timestamp;

/// Most changes that wait in a state to be told: every resource three times over, and some rest. Every producer's side
/// reads the state, so that it must stay small: a change takes some 400 bytes.
pub const UNTOLD_MAX: usize = 32;

/// One resource's level changed in one poll, or producers began to be refused on its account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PressureChange {
    /// When the poll was.
    pub at: Timestamp,
    /// Which resource.
    pub resource: Resource,
    /// Its level before, as far as it was told.
    pub previous: Level,
    /// Its level now; the same as before if only the refusal began.
    pub current: Level,
    /// Whether producers are refused on its account who were not before.
    pub refusal_began: bool,
    /// The highest level after the poll of all resources whose level has consequences for producers.
    pub overall: Level,
    /// How long acknowledgements wait after the poll, in milliseconds.
    pub tarpit_ms: u64,
    /// The tiers that are refused after the poll, on whose account ever.
    pub refused_tiers: Vec<Tier>,
    /// The resource after the poll; `None` if it could not be read for so long that it is forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<ResourceState>,
}

impl PressureChange {
    fn new(transition: Transition, state: &PressureState) -> Self {
        let Transition { resource, previous, current, refusal_began } = transition;
        Self {
            at: state.at,
            resource,
            previous,
            current,
            refusal_began,
            overall: state.level(),
            tarpit_ms: state.tarpit_ms,
            refused_tiers: state.refused_tiers(),
            seen: state.resource(resource).cloned(),
        }
    }
}

impl PressureState {
    /// Takes in what is to be told: what was not told `before`, and what this poll changed. Answers how many of the
    /// oldest are told no more, because there are too many.
    #[must_use]
    pub fn carry(&mut self, before: &[PressureChange], transitions: &[Transition]) -> usize {
        let news = transitions.iter().map(|transition| PressureChange::new(*transition, self));
        let mut untold: Vec<_> = before.iter().cloned().chain(news).collect();
        let dropped = untold.len().saturating_sub(UNTOLD_MAX);
        untold.drain(..dropped);
        self.untold = untold;
        dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

    fn rise(resource: Resource) -> Transition {
        Transition { resource, previous: Level::Normal, current: Level::Medium, refusal_began: false }
    }

    fn state(at: Timestamp, before: &[PressureChange], transitions: &[Transition]) -> (PressureState, usize) {
        let mut state = PressureState::normal(at);
        let dropped = state.carry(before, transitions);
        (state, dropped)
    }

    #[test]
    fn what_was_not_told_goes_before_what_is_new() {
        let (first, _) = state(NOW, &[], &[rise(Resource::DrainTime), rise(Resource::LogDisk)]);
        let later = NOW + std::time::Duration::from_secs(2);
        let (second, dropped) = state(later, &first.untold, &[rise(Resource::BatchPoints)]);
        let told: Vec<_> = second.untold.iter().map(|change| (change.resource, change.at)).collect();
        let expected = [(Resource::DrainTime, NOW), (Resource::LogDisk, NOW), (Resource::BatchPoints, later)];
        assert_eq!((told, dropped), (expected.to_vec(), 0));
    }

    #[test]
    fn of_too_many_the_oldest_are_told_no_more() {
        let mut before = Vec::new();
        for poll in 0..UNTOLD_MAX as u64 {
            let at = Timestamp::from_millis(poll);
            before = state(at, &before, &[rise(Resource::DrainTime)]).0.untold;
        }
        let (state, dropped) = state(NOW, &before, &[rise(Resource::DrainTime), rise(Resource::LogDisk)]);
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
    fn what_a_newer_program_adds_is_passed_over() {
        let (full, _) = state(NOW, &[], &[rise(Resource::DrainTime)]);
        let mut json: serde_json::Value = serde_json::from_slice(&full.render()).unwrap();
        json["unheardOf"] = 1.into();
        json["untold"][0]["unheardOf"] = "x".into();
        assert_eq!(PressureState::parse(json.to_string().as_bytes()).unwrap(), full);
    }
}
