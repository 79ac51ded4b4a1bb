//! The one table of the log's columns: name, type, and how a column is stored.
//!
//! A column is only ever added, and then it is optional. A reader skips a column that it does not
//! know; a record of a file without a column has that member's default. So a new column raises
//! [`SCHEMA_VERSION`], which files carry for people to see, and breaks no reader.
//!
//! The order is that of the bytes in a file. The columns that lists are filtered by come first, so
//! that they are read in one piece; what is large comes last.

use super::field::RecordField;
use super::{
    AttemptOrigin, ColumnType, ColumnValue, LogRecord, LogResult, RecordKind, RecordPayload,
};
use crate::model::Timestamp;

/// The version of the table: it counts the times that columns were added.
pub const SCHEMA_VERSION: u32 = 3;

/// The way a column is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnEncoding {
    /// Few values repeat: with a dictionary, and with statistics that skip row groups.
    Words,
    /// The same, but no list is filtered by them: without statistics, which would only make footers
    /// longer.
    Repeated,
    /// Numbers and times that grow or fall slowly: with statistics, without a dictionary.
    Ordered,
    /// Nearly every value is another one: no dictionary and no statistics.
    Distinct,
    /// The same, and looked for: with a bloom filter, and with statistics for ids that begin with a
    /// time.
    LookedUp,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct LogColumn {
    /// The name: plain words with underscores.
    pub name: &'static str,
    /// The type of its values.
    pub column_type: ColumnType,
    /// Whether every record has a value.
    pub required: bool,
    /// The way it is stored.
    pub encoding: ColumnEncoding,
    /// The value of a record.
    pub get: for<'a> fn(&'a LogRecord) -> Option<ColumnValue<'a>>,
    /// Sets the member of a record; `false` if the value cannot be one.
    pub set: fn(&mut LogRecord, ColumnValue<'_>) -> bool,
}

impl ColumnEncoding {
    /// Whether values are stored once and numbered.
    pub const fn has_dictionary(self) -> bool {
        matches!(self, Self::Words | Self::Repeated)
    }

    /// Whether each row group has its smallest and greatest value.
    pub const fn has_statistics(self) -> bool {
        !matches!(self, Self::Repeated | Self::Distinct)
    }

    /// Whether each row group has a bloom filter.
    pub const fn has_bloom_filter(self) -> bool {
        matches!(self, Self::LookedUp)
    }
}

macro_rules! columns {
    ($($member:ident: $type:ty => $encoding:ident,)+) => {
        &[$(LogColumn {
            name: stringify!($member),
            column_type: <$type as RecordField>::TYPE,
            required: <$type as RecordField>::REQUIRED,
            encoding: ColumnEncoding::$encoding,
            get: |record| <$type as RecordField>::to_value(&record.$member),
            set: |record, value| <$type as RecordField>::set_value(&mut record.$member, value),
        }),+]
    };
}

/// All columns, in the order of the file.
pub const COLUMNS: &[LogColumn] = columns! {
    topic: String => Words,
    subscription: String => Words,
    time: Timestamp => Ordered,
    result: LogResult => Words,
    status: Option<u16> => Words,
    event_type: Option<String> => Words,
    kind: RecordKind => Words,
    attempt: u16 => Words,
    origin: AttemptOrigin => Repeated,
    run_id: Option<String> => Repeated,
    reason: Option<String> => Repeated,
    error: Option<String> => Repeated,
    duration_ms: Option<u32> => Ordered,
    identity: Option<String> => Repeated,
    endpoint: Option<String> => Repeated,
    event_source: Option<String> => Repeated,
    schema: Option<String> => Repeated,
    answer_type: Option<String> => Repeated,
    accepted_at: Timestamp => Ordered,
    expires_at: Timestamp => Ordered,
    next_attempt_at: Option<Timestamp> => Ordered,
    dead_letter_object: Option<String> => Repeated,
    matched: Option<String> => Repeated,
    event_subject: Option<String> => Distinct,
    record_id: String => Distinct,
    delivery_key: String => Distinct,
    event_id: Option<String> => LookedUp,
    webhook_id: Option<String> => LookedUp,
    own_webhook_id: Option<String> => Distinct,
    traceparent: Option<String> => Distinct,
    payload_reference: Option<String> => Distinct,
    answer: Option<String> => Distinct,
    payload: Option<RecordPayload> => Distinct,
};

/// The column of this name.
pub fn find_column(name: &str) -> Option<&'static LogColumn> {
    COLUMNS.iter().find(|column| column.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::full;
    use super::*;

    #[test]
    fn every_member_of_a_record_is_a_column_with_its_name() {
        let json = serde_json::to_value(full()).unwrap();
        let mut members: Vec<String> = json
            .as_object()
            .unwrap()
            .keys()
            .map(|name| snake(name))
            .collect();
        let mut names: Vec<_> = COLUMNS
            .iter()
            .map(|column| column.name.to_owned())
            .collect();
        members.sort();
        names.sort();
        assert_eq!(names, members);
    }

    fn snake(name: &str) -> String {
        let part = |c: char| {
            if c.is_uppercase() {
                format!("_{}", c.to_lowercase())
            } else {
                c.to_string()
            }
        };
        name.chars().map(part).collect()
    }

    #[test]
    fn a_record_is_read_back_from_its_columns() {
        let mut read = LogRecord::default();
        for column in COLUMNS {
            let record = full();
            let value = (column.get)(&record).unwrap();
            assert!((column.set)(&mut read, value), "{}", column.name);
        }
        assert_eq!(read, full());
    }

    /// Columns of absent members have no value.
    #[test]
    fn empty_record_has_values_only_in_required_columns() {
        let record = LogRecord::default();
        for column in COLUMNS {
            assert_eq!(
                (column.get)(&record).is_some(),
                column.required,
                "{}",
                column.name
            );
        }
    }

    #[test]
    fn a_value_of_another_type_or_out_of_range_is_refused() {
        let check = |name: &str, value| {
            assert!(
                !(find_column(name).unwrap().set)(&mut LogRecord::default(), value),
                "{name} {value:?}"
            );
        };
        check("topic", ColumnValue::Int(1));
        check("result", ColumnValue::Time(1));
        check("time", ColumnValue::Text("now"));
        check("time", ColumnValue::Time(-1));
        check("attempt", ColumnValue::Int(-1));
        check("status", ColumnValue::Int(65_536));
        check("payload", ColumnValue::Text("{"));
        assert!(find_column("colour").is_none());
    }

    /// The table as other programs rely on it. A line is only ever added.
    #[test]
    fn the_table_is_stable() {
        let line = |column: &LogColumn| {
            let LogColumn {
                name,
                column_type,
                required,
                encoding,
                ..
            } = column;
            format!(
                "{name} {column_type:?}{} {encoding:?}",
                if *required { "" } else { "?" }
            )
        };
        let table: Vec<_> = COLUMNS.iter().map(line).collect();
        insta::assert_snapshot!(table.join("\n"));
    }
}
