//! The query of a row group: values that columns must have, and a time.

use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use posthaste_core::delivery_log::{
    ColumnValue, LogResult, RecordFilter, RecordKind, RecordLookup, StatusRange, find_column,
};
use posthaste_core::model::Timestamp;

use crate::cells::ColumnCells;
use crate::footer::FileFooter;

/// The column of times.
pub(crate) const TIME: &str = "time";

/// The column of statuses.
const STATUS: &str = "status";

/// The column of payloads.
const PAYLOAD: &str = "payload";

/// The column of events' ids.
pub(crate) const EVENT_ID: &str = "event_id";

/// The column of requests' ids.
pub(crate) const WEBHOOK_ID: &str = "webhook_id";

/// An id that is asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WantedId<'a> {
    pub(crate) text: &'a str,
    /// Whether it is a request's. Else it is an event's.
    pub(crate) is_of_request: bool,
}

/// Conditions that all must hold.
#[derive(Debug, Clone)]
pub(crate) struct RowQuery<'a> {
    equal: Vec<(&'static str, ColumnValue<'a>)>,
    from: i64,
    /// The first time that is too late.
    to: i64,
    /// The statuses that a row may have.
    status: Option<StatusRange>,
    without_payload: bool,
}

impl<'a> From<&'a RecordLookup> for RowQuery<'a> {
    fn from(ask: &'a RecordLookup) -> Self {
        let texts = [
            ("topic", &ask.topic),
            ("subscription", &ask.subscription),
            (EVENT_ID, &ask.event_id),
            (WEBHOOK_ID, &ask.webhook_id),
        ];
        Self::new(
            texts
                .into_iter()
                .filter_map(|(name, text)| text_condition(name, text.as_deref()))
                .collect(),
            ask.earliest_time(),
            ask.to,
        )
    }
}

impl<'a> From<&'a RecordFilter> for RowQuery<'a> {
    fn from(ask: &'a RecordFilter) -> Self {
        let texts = [
            ("topic", &ask.topic),
            ("subscription", &ask.subscription),
            ("event_type", &ask.event_type),
            (WEBHOOK_ID, &ask.webhook_id),
            ("run_id", &ask.run_id),
        ];
        let kind = ask
            .kind
            .map(RecordKind::as_str)
            .map(|word| ("kind", ColumnValue::Text(word)));
        let result = ask
            .result
            .map(LogResult::as_str)
            .map(|word| ("result", ColumnValue::Text(word)));
        let texts = texts
            .into_iter()
            .filter_map(|(name, text)| text_condition(name, text.as_deref()));
        let asked = Self::new(
            texts.chain(kind).chain(result).collect(),
            ask.from,
            ask.end_time(),
        );
        Self {
            status: ask.status,
            without_payload: ask.without_payload,
            ..asked
        }
    }
}

fn text_condition<'a>(
    name: &'static str,
    text: Option<&'a str>,
) -> Option<(&'static str, ColumnValue<'a>)> {
    Some((name, ColumnValue::Text(text?)))
}

fn column_time_ms(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl<'a> RowQuery<'a> {
    fn new(
        equal: Vec<(&'static str, ColumnValue<'a>)>,
        from: Option<Timestamp>,
        to: Option<Timestamp>,
    ) -> Self {
        Self {
            equal,
            from: from.map_or(i64::MIN, column_time_ms),
            to: to.map_or(i64::MAX, column_time_ms),
            status: None,
            without_payload: false,
        }
    }

    /// The columns to look at: first that of statuses, where it is needed, and last that of times.
    pub(crate) fn deciding_columns(&self) -> impl Iterator<Item = &'static str> + '_ {
        let equal = self.equal.iter().map(|(name, _)| *name);
        self.status
            .map(|_| STATUS)
            .into_iter()
            .chain(equal)
            .chain([TIME])
    }

    /// Whether the records that are found have the values of a column.
    pub(crate) fn wants_column(&self, column: &str) -> bool {
        !self.without_payload || column != PAYLOAD
    }

    /// The value to look for in bloom filters, with its column.
    pub(crate) fn bloom_value(&self) -> Option<(&'static str, &'a str)> {
        self.equal.iter().find_map(|(name, value)| match value {
            ColumnValue::Text(text) if find_column(name)?.encoding.has_bloom_filter() => {
                Some((*name, *text))
            }
            _ => None,
        })
    }

    /// The id that a row must have, where there is one.
    pub(crate) fn wanted_id(&self) -> Option<WantedId<'a>> {
        let (column, text) = self.bloom_value()?;
        let is_of_request = column == WEBHOOK_ID;
        (is_of_request || column == EVENT_ID).then_some(WantedId {
            text,
            is_of_request,
        })
    }

    /// Whether a row group may have such a row, as far as its statistics say.
    pub(crate) fn may_be_in(&self, footer: &FileFooter, group: usize) -> bool {
        let may_be_equal = self.equal.iter().all(|(name, value)| {
            let chunk = footer.column_chunk(group, name);
            chunk.is_some_and(|chunk| may_contain(chunk, *value))
        });
        may_be_equal
            && self.status.is_none_or(|asked| {
                let chunk = footer.column_chunk(group, STATUS);
                chunk.is_some_and(|chunk| may_have_status(chunk, asked))
            })
            && footer
                .column_chunk(group, TIME)
                .is_some_and(|chunk| self.may_be_at(chunk))
    }

    /// Whether a row is such a row. `cells` are those of [`Self::deciding_columns`].
    pub(crate) fn matches_row(&self, cells: &[ColumnCells], row: usize) -> bool {
        let (status, cells) = cells.split_at(usize::from(self.status.is_some()));
        self.status
            .is_none_or(|asked| status.iter().all(|cells| has_status(cells, row, asked)))
            && self
                .equal
                .iter()
                .zip(cells)
                .all(|((_, value), cells)| cells.is_equal(row, *value))
            && self.is_at(row_time(cells, row))
    }

    fn is_at(&self, time: i64) -> bool {
        self.from <= time && time < self.to
    }

    fn may_be_at(&self, chunk: &ColumnChunkMetaData) -> bool {
        let Some(Statistics::Int64(times)) = chunk.statistics() else {
            return true;
        };
        times.max_opt().is_none_or(|max| *max >= self.from)
            && times.min_opt().is_none_or(|min| *min < self.to)
    }
}

fn has_status(cells: &ColumnCells, row: usize, asked: StatusRange) -> bool {
    let ColumnCells::Int(statuses) = cells else {
        return false;
    };
    let status = statuses
        .get(row)
        .copied()
        .flatten()
        .and_then(|status| u16::try_from(status).ok());
    status.is_some_and(|status| asked.contains(status))
}

fn may_have_status(chunk: &ColumnChunkMetaData, asked: StatusRange) -> bool {
    let (first, last) = asked.bounds();
    let Some(Statistics::Int32(statuses)) = chunk.statistics() else {
        return true;
    };
    let has_some = statuses.null_count_opt() != u64::try_from(chunk.num_values()).ok();
    has_some
        && statuses
            .max_opt()
            .is_none_or(|max| *max >= i32::from(first))
        && statuses.min_opt().is_none_or(|min| *min <= i32::from(last))
}

/// The time of a row. `cells` end with those of the times.
pub(crate) fn row_time(cells: &[ColumnCells], row: usize) -> i64 {
    match cells.last() {
        Some(ColumnCells::Time(times)) => times.get(row).copied().flatten().unwrap_or_default(),
        _ => 0,
    }
}

/// Whether a chunk may contain a value, by its statistics. A smallest value that is cut short is
/// smaller still, and a greatest one greater: both stay bounds.
fn may_contain(chunk: &ColumnChunkMetaData, value: ColumnValue<'_>) -> bool {
    let Some(statistics) = chunk.statistics() else {
        return true;
    };
    if statistics.null_count_opt() == u64::try_from(chunk.num_values()).ok() {
        return false;
    }
    match (statistics, value) {
        (Statistics::ByteArray(texts), ColumnValue::Text(text)) => {
            let text = text.as_bytes();
            texts.min_opt().is_none_or(|min| min.data() <= text)
                && texts.max_opt().is_none_or(|max| text <= max.data())
        }
        (Statistics::Int32(ints), ColumnValue::Int(int)) => {
            ints.min_opt().is_none_or(|min| *min <= int)
                && ints.max_opt().is_none_or(|max| int <= *max)
        }
        _ => true,
    }
}
