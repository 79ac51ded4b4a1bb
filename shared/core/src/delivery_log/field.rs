//! Values of columns, and how the members of a record become values and are read back.

use super::{AttemptOrigin, LogResult, RecordKind, RecordPayload};
use crate::model::Timestamp;

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// UTF-8 text.
    Text,
    /// A whole number of 32 bits.
    Int,
    /// A time in milliseconds since the epoch, in UTC.
    Time,
}

/// A value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnValue<'a> {
    /// UTF-8 text.
    Text(&'a str),
    /// A whole number.
    Int(i32),
    /// Milliseconds since the epoch.
    Time(i64),
}

/// A member of a record that is a column.
pub(super) trait RecordField {
    /// The type of its values.
    const TYPE: ColumnType;
    /// Whether every record has one.
    const REQUIRED: bool = true;
    /// The value.
    fn to_value(&self) -> Option<ColumnValue<'_>>;
    /// Takes a value over. `false` if it cannot be such a member's.
    fn set_value(&mut self, value: ColumnValue<'_>) -> bool;
}

impl RecordField for String {
    const TYPE: ColumnType = ColumnType::Text;

    fn to_value(&self) -> Option<ColumnValue<'_>> {
        Some(ColumnValue::Text(self))
    }

    fn set_value(&mut self, value: ColumnValue<'_>) -> bool {
        let ColumnValue::Text(text) = value else {
            return false;
        };
        text.clone_into(self);
        true
    }
}

impl RecordField for Timestamp {
    const TYPE: ColumnType = ColumnType::Time;

    fn to_value(&self) -> Option<ColumnValue<'_>> {
        Some(ColumnValue::Time(
            i64::try_from(self.as_millis()).unwrap_or(i64::MAX),
        ))
    }

    fn set_value(&mut self, value: ColumnValue<'_>) -> bool {
        let ColumnValue::Time(ms) = value else {
            return false;
        };
        u64::try_from(ms)
            .map(|ms| *self = Self::from_millis(ms))
            .is_ok()
    }
}

macro_rules! int_fields {
    ($($int:ty),*) => {
        $(impl RecordField for $int {
            const TYPE: ColumnType = ColumnType::Int;

            fn to_value(&self) -> Option<ColumnValue<'_>> {
                Some(ColumnValue::Int(i32::try_from(*self).unwrap_or(i32::MAX)))
            }

            fn set_value(&mut self, value: ColumnValue<'_>) -> bool {
                let ColumnValue::Int(int) = value else { return false };
                Self::try_from(int).map(|int| *self = int).is_ok()
            }
        })*
    };
}

macro_rules! word_fields {
    ($($word:ty),*) => {
        $(impl RecordField for $word {
            const TYPE: ColumnType = ColumnType::Text;

            fn to_value(&self) -> Option<ColumnValue<'_>> {
                Some(ColumnValue::Text(self.as_str()))
            }

            fn set_value(&mut self, value: ColumnValue<'_>) -> bool {
                let ColumnValue::Text(word) = value else { return false };
                *self = Self::parse(word);
                true
            }
        })*
    };
}

int_fields!(u16, u32);
word_fields!(RecordKind, LogResult, AttemptOrigin);

/// A payload that is not there, or that is no JSON, which only a damaged file has, reads as none.
impl RecordField for Option<RecordPayload> {
    const TYPE: ColumnType = ColumnType::Text;
    const REQUIRED: bool = false;

    fn to_value(&self) -> Option<ColumnValue<'_>> {
        self.as_ref()
            .map(|payload| ColumnValue::Text(payload.as_str()))
    }

    fn set_value(&mut self, value: ColumnValue<'_>) -> bool {
        let ColumnValue::Text(text) = value else {
            return false;
        };
        *self = RecordPayload::parse(text);
        self.is_some()
    }
}

macro_rules! optional_fields {
    ($($inner:ty),*) => {
        $(impl RecordField for Option<$inner> {
            const TYPE: ColumnType = <$inner as RecordField>::TYPE;
            const REQUIRED: bool = false;

            fn to_value(&self) -> Option<ColumnValue<'_>> {
                self.as_ref().and_then(RecordField::to_value)
            }

            fn set_value(&mut self, value: ColumnValue<'_>) -> bool {
                self.insert(<$inner>::default()).set_value(value)
            }
        })*
    };
}

optional_fields!(String, Timestamp, u16, u32);
