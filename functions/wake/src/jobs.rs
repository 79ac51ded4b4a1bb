//! The jobs of a run. Each takes the run and its part of the checkpoint, ends by itself in time,
//! and returns its part of the next checkpoint.

pub(crate) mod clean_up;
pub(crate) mod disabled_notices;
mod ended;
mod forced;
pub(crate) mod gone;
pub(crate) mod health_notices;
mod held;
pub(crate) mod link_notices;
mod parked;
pub(crate) mod recovery;
mod recovery_permits;
pub(crate) mod release;
pub(crate) mod replays;
pub(crate) mod set_back;
mod standing;
pub(crate) mod temporary;
