//! Replay: which dead letters are delivered again, and when each of them may go. What a job is stored as is
//! in [`ReplayRecord`]; who lists, reads and sends is `wake`.

mod pace;
mod record;
mod selection;
mod sending;

pub use pace::{PACE_HORIZON, Pace};
pub use record::{PartOfObject, ReplayProgress, ReplayRecord, ReplayRecordError};
pub use selection::{ReplayRequestError, Selection};
pub use sending::{Replay, ReplayMessage, Sendable};
