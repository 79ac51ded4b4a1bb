#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

mod bloom;
mod cells;
mod decode;
mod delivery_log;
mod error;
mod footer;
mod footer_cache;
mod group;
mod hour_filter;
mod list;
mod log_file;
mod look_up;
mod merge;
mod newest;
mod reader;
mod row_query;
mod schema;
mod segments;
mod summaries;
mod summary;
mod writer;

pub use self::delivery_log::DeliveryLog;
pub use self::error::LogError;
pub use self::hour_filter::{HourFilter, digest_of_hour};
pub use self::list::RecordPage;
pub use self::log_file::LogFile;
pub use self::look_up::LookUpResult;
pub use self::merge::{MergeInput, MergeLimits, MergedPart, merge_files};
pub use self::reader::LogReader;
pub use self::summaries::SummaryStore;
pub use self::summary::DaySummary;
pub use self::writer::{RowGroups, write_file};
