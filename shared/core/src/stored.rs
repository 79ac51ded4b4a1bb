//! Persistent formats: messages in the queues, and objects in the state bucket and the dead-letter
//! bucket. Each file names its key, its versions, writers, readers, lifetime and fixtures.

mod activity;
mod audit;
mod begun_work;
mod cancelled;
mod console_key;
mod console_sessions;
pub mod dead_letter;
pub mod dead_letter_message;
pub mod delivery;
mod disabled;
pub mod drain_report;
mod event_reference;
mod force_request;
mod format;
mod gone;
mod health;
mod idempotency;
mod keys;
mod lanes;
pub mod layout;
mod lease;
mod letter_ending;
mod links;
mod owner;
pub mod parked;
mod pressure;
mod rate;
mod record_lease;
mod recovery_mark;
mod recovery_view;
pub mod refused_letters;
mod replay;
mod replay_claim;
mod resolved;
pub mod resolved_message;
mod selection;
mod serve_run;
mod slots;
mod topic;
mod waiting;
mod wake_lease;
mod wake_signal;

pub use activity::ActivityNote;
pub use audit::record_changes;
pub use begun_work::BegunWork;
pub use cancelled::{EventCancellation, cancellable_id_digest, event_id_digest};
pub use console_key::{CONSOLE_KEY, ConsoleKey};
pub use console_sessions::{
    CONSOLE_SESSIONS, ConsoleSessions, OPEN_SESSIONS_MAX, OpenSession, SessionDigest,
};
pub use dead_letter::{DeadLetterArray, NotDeadLetters, RestoredLetter, WrittenIn};
pub use delivery::WIRE_VERSION;
pub use disabled::DisabledMark;
pub use event_reference::{DeadLetterKey, EventReference};
pub use force_request::ForceRequest;
pub use gone::{GoneMark, GoneStep};
pub use health::HEALTH;
pub use idempotency::{
    IdempotencyDecision, IdempotencyKey, IdempotencyKeyError, IdempotencyRecord, RequestDigest,
};
pub use layout::{DRAIN, RECORD_LEASE, REFUSED, TOPICS, WAKE_LEASE};
pub use lease::StoredLease;
pub use letter_ending::{EndedCounts, LetterEnd, LetterEnding, LetterReceiver};
pub use pressure::{PRESSURE_KEY, StateError};
pub use record_lease::RecordLease;
pub use recovery_mark::{
    ENDED_STANDS, LetterProbe, NewestOutage, PassedLetters, RECOVERY, RecoveryJob, RecoveryMark,
};
pub use refused_letters::RefusedLetters;
pub use replay::{RecoveryOrigin, ReplayProgress, ReplayRecord};
pub use replay_claim::ReplayClaim;
pub use resolved::ResolvedLetters;
pub use serve_run::{FileMark, RunEnd, ServeRun};
pub use topic::{RECORD_VERSION, TopicRecord, TopicRecordError};
pub use waiting::{WAITING, WAITING_LOOK, waiting_part_key};
pub use wake_lease::{SetBackScan, WakeCheckpoint, WakeLease};
pub use wake_signal::{WAKE_SIGNAL, WakeSignal};
