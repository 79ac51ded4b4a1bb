//! The operator's commands: each loads what it needs, calls the server, and returns what to show.

pub(crate) mod apply;
mod assign;
pub(crate) mod attempts;
pub(crate) mod audit;
pub(crate) mod backup;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod dead_letters;
pub(crate) mod doctor;
pub(crate) mod events;
mod giving_up;
pub(crate) mod health;
pub(crate) mod links;
pub(crate) mod man;
mod one;
mod patch;
mod period;
pub(crate) mod pressure;
pub(crate) mod publish;
mod records;
pub(crate) mod replays;
pub(crate) mod restore;
mod session;
mod source;
mod state;
pub(crate) mod subscriptions;
mod test_event;
pub(crate) mod topics;
mod waiting;
mod whole_topics;

pub use apply::{ApplyError, ApplyResult, CheckedFile, apply_file, check_files};
pub(crate) use dead_letters::dead_letter_call;
pub use patch::PatchError;
pub use session::{ADMIN_KEY_FILE, AdminSession, data_dir};
pub(crate) use source::{InputError, read_input};
