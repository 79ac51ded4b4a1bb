//! Replay: which dead letters are delivered again, and when each of them may go. The job is
//! stored as a [`ReplayRecord`](crate::stored::ReplayRecord); wake lists, reads and sends.

mod pace;
mod selection;
mod sending;

pub use pace::{PACE_HORIZON, Pace};
pub use selection::{ReplayRequestError, Selection};
pub use sending::{Replay, ReplayMessage, Sendable};
