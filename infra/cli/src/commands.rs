//! The operator's commands: each loads what it needs, calls the server, and returns what to show.

pub mod apply;
mod assign;
pub mod attempts;
pub mod audit;
pub mod backup;
pub mod check;
pub mod completions;
pub mod dead_letters;
pub mod doctor;
pub mod events;
mod giving_up;
pub mod health;
pub mod links;
pub mod man;
mod one;
mod patch;
mod period;
pub mod pressure;
pub mod publish;
mod records;
pub mod replays;
pub mod restore;
mod session;
mod source;
mod state;
pub mod subscriptions;
mod test_event;
pub mod topics;
mod waiting;
mod whole_topics;

pub use apply::{ApplyError, ApplyResult, CheckedFile, apply_file, check_files};
pub use dead_letters::dead_letter_call;
pub use patch::PatchError;
pub use session::{ADMIN_KEY_FILE, AdminSession, data_dir};
pub use source::{InputError, read_input};
