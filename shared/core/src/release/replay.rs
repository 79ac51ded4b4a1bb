//! Replay: which dead letters are delivered again, and when each of them may go. The job is
//! stored as a [`ReplayRecord`](crate::stored::ReplayRecord); wake lists, reads and sends. One
//! event by its id is a [`EventResend`], which manage sends.

mod again;
mod log_place;
mod pace;
mod resend;
mod selection;
mod sending;

pub use log_place::LogPosition;
pub use pace::{PACE_HORIZON, ReplayPace};
pub use resend::EventResend;
pub use selection::{ReplayRequestError, ReplaySelection};
pub use sending::{ReplayContext, ReplayMessage, ResentEvent, SelectedLetter, replayed_key};
