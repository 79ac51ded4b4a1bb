//! Times of which the log may lack records, as users see them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::api::IsoTimestamp;
use crate::delivery_log::{GapCause, LogGap};

/// A time of which the log may lack records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogGapView {
    /// The time up to which the log is complete.
    pub from: IsoTimestamp,
    /// The time from which on it is complete again.
    pub to: IsoTimestamp,
    /// The reason.
    pub cause: LogGapCause,
    /// The most attempts without a record. Left out where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(example = 3)]
    pub attempts_max: Option<u64>,
}

/// The reason why the log may lack records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub enum LogGapCause {
    /// The data folder is a copy. What its original did later is not in it.
    Copy,
    /// Files of the log that were there are not.
    MissingFiles,
    /// The process ended in the middle of its work.
    Killed,
    /// A word of a newer version.
    #[serde(other)]
    Unknown,
}

impl From<&LogGap> for LogGapView {
    fn from(gap: &LogGap) -> Self {
        let cause = match gap.cause {
            GapCause::Copy => LogGapCause::Copy,
            GapCause::MissingFiles => LogGapCause::MissingFiles,
            GapCause::Killed => LogGapCause::Killed,
            GapCause::Unknown => LogGapCause::Unknown,
        };
        Self {
            from: IsoTimestamp(gap.from),
            to: IsoTimestamp(gap.to),
            cause,
            attempts_max: gap.attempts_max,
        }
    }
}
