//! The occasions on which this function looks at what processes left, and the time that each has.

use std::time::Duration;

/// Longest time in which a look begins new work, so that it is over before the next one.
const LOOK_TIME_MAX: Duration = Duration::from_secs(25);

/// Longest time in which a look beside an answer begins new work and asks endpoints. The answer may
/// have to wait for it.
pub(crate) const LOOK_BESIDE_TIME_MAX: Duration = Duration::from_secs(2);

/// Time in which a look beside an answer then writes down what it has done.
pub(crate) const LOOK_BESIDE_REST: Duration = Duration::from_secs(2);

/// A look at what processes left.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LookTrigger {
    OnSchedule,
    BesideAnswer,
}

impl LookTrigger {
    /// The time in which the look begins new work.
    pub(crate) fn time_max(self) -> Duration {
        match self {
            Self::OnSchedule => LOOK_TIME_MAX,
            Self::BesideAnswer => LOOK_BESIDE_TIME_MAX,
        }
    }
}
