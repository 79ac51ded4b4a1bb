//! Held deliveries: which of them go back to the queue now, and how many.
//!
//! Each subscription's lie in a folder of their own, those that expire first in front. How often a folder is looked at, and
//! how what may go is paced, is wake's matter; what becomes of a delivery that goes is decided by deliver.

mod room;

use crate::topic::Status;

pub use room::{PASS_MAX, Room};

/// Which of a subscription's held deliveries go. Those whose time is over go whatever it says: deliver gives them up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Release {
    /// All of them, as fast as passes go.
    All,
    /// None.
    Nothing,
}

/// Decides which of a subscription's held deliveries go. `None` is a subscription that was deleted: deliver dead-letters
/// what waits for it, as it does for a disabled one.
///
/// | subscription | what goes |
/// |---|---|
/// | deleted, disabled | all |
/// | pending, paused, not consented | nothing |
/// | active | all |
pub fn release(status: Option<Status>) -> Release {
    match status {
        None | Some(Status::Disabled | Status::Active) => Release::All,
        Some(Status::Pending | Status::Paused | Status::Failed) => Release::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_follows_the_table() {
        let check = |status, expected| assert_eq!(release(status), expected, "{status:?}");
        check(None, Release::All);
        check(Some(Status::Disabled), Release::All);
        check(Some(Status::Active), Release::All);
        for waiting in [Status::Pending, Status::Paused, Status::Failed] {
            check(Some(waiting), Release::Nothing);
        }
    }
}
