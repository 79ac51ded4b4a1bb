//! The delivery log: records of attempts and of what became of events, their columns, their way
//! through the queue, the names of their files, and the answers that are read from them.
//!
//! The log is a folder of Parquet files. This room says what is in them and what it means; the
//! crate `posthaste-delivery-log` writes, searches and merges them.

mod accepted;
mod again;
mod answer;
mod change;
mod columns;
mod draft;
mod event_history;
mod field;
mod file_key;
mod filter;
mod gap;
mod history;
mod id_time;
mod merge_look;
mod merge_step;
mod merging;
mod message;
mod origin;
mod record;
mod record_id;
mod retention;
mod status;
mod summary_key;
mod waiting_part;
mod words;

pub use self::accepted::AcceptedEvent;
pub use self::again::{ResendChoice, ResendRefusal, choose_delivery};
pub use self::answer::{answer_body_text, answer_text};
pub use self::change::{CANCELLED, EventChange, change_for_verdict};
pub use self::columns::{COLUMNS, ColumnEncoding, LogColumn, SCHEMA_VERSION, find_column};
pub use self::draft::{RecordDetails, RecordedEvent};
pub use self::event_history::{EventHistory, PENDING_MAX};
pub use self::field::{ColumnType, ColumnValue};
pub use self::file_key::{FileKey, FileName, LogHour};
pub use self::filter::{RecordCursor, RecordFilter, RecordLookup, newest_first};
pub use self::gap::{FormerRun, GapCause, LogGap, StartLook};
pub use self::history::{DeliveryHistory, gather_by_delivery, without_duplicates};
pub use self::id_time::{is_webhook_id_summarized, time_in_id, time_in_webhook_id};
pub use self::merge_look::{DATES, HoursToMerge, MergeCheckpoint, MergeLook};
pub use self::merge_step::{SizedFile, first_open_hour, merge_step};
pub use self::merging::{MergeNote, files_to_merge, leftover_files};
pub use self::message::{
    RECORDS_VERSION, RecordText, count_records, join_records, parse_records, render_records,
};
pub(crate) use self::record::cut_text;
pub use self::record::{LogRecord, RecordPayload, is_same_log_text, log_text, names_to_keep};
pub use self::record_id::record_id;
pub use self::retention::{
    ASIDE_BEFORE, ASIDE_IN_LOG, ListedFile, LogDisk, files_to_delete, first_kept_hour,
    has_room_to_merge, log_bytes_max, records_waiting_bytes_max,
};
pub use self::status::StatusRange;
pub use self::summary_key::{LogDay, SUMMARY_IN_LOG};
pub use self::waiting_part::{
    COUNTED_MESSAGES_MAX, LookOutcome, PartChanges, WAITING_PARTS, WAITING_SUBSCRIPTIONS_MAX,
    WaitChanges, WaitingLook, WaitingPart, rest_digest, waiting_key, waiting_part,
};
pub use self::words::{AttemptOrigin, DeliveryState, LogResult, RecordKind, WaitTransition};
