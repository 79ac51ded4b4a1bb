//! Release of deliveries that wait outside the queue: parked, held and forced ones, and dead
//! letters that are replayed. Which of them may be sent, how many at a time, and what a run
//! remembers for the next.

mod allotment;
pub mod folder;
mod forced;
pub mod held;
mod link_shares;
pub mod messages;
pub mod outage;
pub mod parked;
mod quota;
pub mod recovery;
pub mod replay;
pub mod rest;
mod room;
pub mod set_back;
pub mod speed;

pub use allotment::{FolderAllotment, NextTurn, OF_ONE_MAX, ReleasePermission};
pub use folder::HeldFolder;
pub use forced::{ForcedFolder, ForcedWalk};
pub use held::{EndpointStanding, HeldRelease};
pub use link_shares::LinkShares;
pub use parked::ParkedWalk;
pub use quota::{ReleaseQuota, ReleasedCounts};
pub use replay::{
    EventResend, LogPosition, ReplayContext, ReplayMessage, ReplayPace, ReplayRequestError,
    ReplaySelection, ResentEvent, SelectedLetter, replayed_key,
};
pub use room::{QueueRoom, own_room, recovery_room};
pub use speed::{ReleaseAmount, ReleaseOrder, ReleaseSource, ReleaseSpeed, RunAccount};
