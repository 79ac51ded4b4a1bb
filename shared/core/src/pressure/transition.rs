//! What one poll changed about each resource, and under which ids that is logged.

use super::state::{PressureState, ResourceState};
use super::{Level, Resource};

/// Log id: a resource's level rose (error).
pub const PRESSURE_ROSE: u32 = 15_004;
/// Log id: a resource's level fell (information).
pub const PRESSURE_FELL: u32 = 15_005;
/// Log id: producers are refused because a disk is nearly full (error).
pub const DISK_CRITICALLY_LOW: u32 = 15_006;
/// Log id: producers are refused because memory is nearly used up (error).
pub const MEMORY_CRITICALLY_LOW: u32 = 15_007;

/// What changed about one resource in one poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transition {
    /// Which resource.
    pub resource: Resource,
    /// Its level before, as far as it was told.
    pub previous: Level,
    /// Its level now; the same as before if only the refusal began.
    pub current: Level,
    /// Whether producers are refused on its account who were not before.
    pub refusal_began: bool,
}

impl Transition {
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

/// What changed between two states, in the order of the table. The first is the one that was written before, however old
/// it is: whoever was told of it is told what became of it.
pub(super) fn transitions(written: &PressureState, state: &PressureState) -> Vec<Transition> {
    Resource::ALL.into_iter().filter_map(|resource| transition(written, state, resource)).collect()
}

fn transition(written: &PressureState, state: &PressureState, resource: Resource) -> Option<Transition> {
    let (before, after) = (written.resource(resource), state.resource(resource));
    let level = |r: Option<&ResourceState>| r.map_or(Level::Normal, ResourceState::told_level);
    let refused = |r: Option<&ResourceState>| r.is_some_and(|r| r.refused_from.is_some());
    let change = Transition {
        resource,
        previous: level(before),
        current: level(after),
        refusal_began: refused(after) && !refused(before),
    };
    (change.previous != change.current || change.refusal_began).then_some(change)
}
