//! Lengths of time and points in time as users write and read them: ISO 8601.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::model::time::{format_duration, parse_duration};
use crate::model::{TimeError, Timestamp};

/// A length of time: `10s`, `1h30m`, `1d`, or in ISO 8601, as it is shown: `PT10S`, `PT1H30M`.
/// A day is 24 hours.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "PT10S")]
pub struct IsoDuration(pub Duration);

impl TryFrom<String> for IsoDuration {
    type Error = TimeError;
    fn try_from(text: String) -> Result<Self, TimeError> {
        parse_duration(&text).map(Self)
    }
}

impl From<IsoDuration> for String {
    fn from(length: IsoDuration) -> Self {
        format_duration(length.0)
    }
}

/// A point in time, written in RFC 3339: `2026-11-21T10:00:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, format = DateTime)]
pub struct IsoTimestamp(pub Timestamp);

impl TryFrom<String> for IsoTimestamp {
    type Error = TimeError;
    fn try_from(text: String) -> Result<Self, TimeError> {
        Timestamp::parse(&text).map(Self)
    }
}

impl From<IsoTimestamp> for String {
    fn from(time: IsoTimestamp) -> Self {
        time.0.to_string()
    }
}
