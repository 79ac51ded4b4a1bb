//! Replay: which dead letters are delivered again, and when each of them may go. The job is
//! stored as a [`ReplayRecord`](crate::stored::ReplayRecord); wake lists, reads and sends. One
//! event by its id is a [`EventResend`], which manage sends.

mod again;
mod log_place;
mod named;
mod pace;
mod request_error;
mod resend;
mod selection;
mod sending;

pub use log_place::LogPosition;
pub use pace::{PACE_HORIZON, ReplayPace};
pub use request_error::{NamedKey, ReplayRequestError};
pub use resend::EventResend;
pub use selection::ReplaySelection;
pub use sending::{ReplayContext, ReplayMessage, ResentEvent, SelectedLetter, replayed_key};
