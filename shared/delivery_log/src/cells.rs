//! Values of one column, row by row.

use bytes::Bytes;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use posthaste_core::delivery_log::{ColumnType, ColumnValue, LogColumn, LogRecord};

use crate::error::broken_bytes;

/// The values of some rows; `None` where a row has none.
#[derive(Debug, Clone)]
pub(crate) enum ColumnCells {
    Text(Vec<Option<ByteArray>>),
    Int(Vec<Option<i32>>),
    Time(Vec<Option<i64>>),
}

impl ColumnCells {
    /// So many rows without a value.
    pub(crate) fn empty(column_type: ColumnType, rows: usize) -> Self {
        match column_type {
            ColumnType::Text => Self::Text(vec![None; rows]),
            ColumnType::Int => Self::Int(vec![None; rows]),
            ColumnType::Time => Self::Time(vec![None; rows]),
        }
    }

    /// The values of records in one column. All texts lie in one allocation.
    pub(crate) fn from_records(records: &[&LogRecord], column: &LogColumn) -> Self {
        let values = records.iter().map(|record| (column.get)(record));
        match column.column_type {
            ColumnType::Text => Self::Text(shared_texts(values.map(text_value))),
            ColumnType::Int => Self::Int(values.map(int_value).collect()),
            ColumnType::Time => Self::Time(values.map(time_value).collect()),
        }
    }

    /// Returns the value of a row, or an error if its text is not UTF-8.
    pub(crate) fn value(&self, row: usize) -> Result<Option<ColumnValue<'_>>, ParquetError> {
        Ok(match self {
            Self::Text(cells) => match cells.get(row) {
                Some(Some(text)) => Some(ColumnValue::Text(text.as_utf8()?)),
                _ => None,
            },
            Self::Int(cells) => cells.get(row).copied().flatten().map(ColumnValue::Int),
            Self::Time(cells) => cells.get(row).copied().flatten().map(ColumnValue::Time),
        })
    }

    /// Whether the value of a row is this one, byte for byte.
    pub(crate) fn is_equal(&self, row: usize, value: ColumnValue<'_>) -> bool {
        match (self, value) {
            (Self::Text(cells), ColumnValue::Text(text)) => {
                matches!(cells.get(row), Some(Some(cell)) if cell.data() == text.as_bytes())
            }
            (Self::Int(cells), ColumnValue::Int(int)) => cells.get(row) == Some(&Some(int)),
            (Self::Time(cells), ColumnValue::Time(time)) => cells.get(row) == Some(&Some(time)),
            _ => false,
        }
    }

    /// Puts rows in their places. Rows of another type are an error.
    pub(crate) fn put_rows(&mut self, from: Self, places: &[usize]) -> Result<(), ParquetError> {
        match (self, from) {
            (Self::Text(cells), Self::Text(from)) => scatter_cells(cells, from, places),
            (Self::Int(cells), Self::Int(from)) => scatter_cells(cells, from, places),
            (Self::Time(cells), Self::Time(from)) => scatter_cells(cells, from, places),
            _ => return Err(broken_bytes("a column is of another type")),
        }
        Ok(())
    }

    /// Writes all rows as one column of a row group.
    pub(crate) fn write_column(
        self,
        column: &mut SerializedColumnWriter<'_>,
        required: bool,
    ) -> Result<(), ParquetError> {
        match self {
            Self::Text(cells) => write_cells::<ByteArrayType>(cells, column, required),
            Self::Int(cells) => write_cells::<Int32Type>(cells, column, required),
            Self::Time(cells) => write_cells::<Int64Type>(cells, column, required),
        }
    }
}

fn scatter_cells<T>(cells: &mut [Option<T>], from: Vec<Option<T>>, places: &[usize]) {
    for (cell, place) in from.into_iter().zip(places) {
        cells[*place] = cell;
    }
}

fn write_cells<T: DataType>(
    cells: Vec<Option<T::T>>,
    column: &mut SerializedColumnWriter<'_>,
    required: bool,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
    let mut values: Vec<T::T> = Vec::with_capacity(cells.len());
    values.extend(cells.into_iter().flatten());
    if required && values.len() != levels.len() {
        return Err(broken_bytes("a required value is missing"));
    }
    let levels = (!required).then_some(levels.as_slice());
    column
        .typed::<T>()
        .write_batch(&values, levels, None)
        .map(drop)
}

fn shared_texts<'a>(
    texts: impl ExactSizeIterator<Item = Option<&'a str>> + Clone,
) -> Vec<Option<ByteArray>> {
    let bytes = texts.clone().flatten().map(str::len).sum();
    let mut arena = Vec::with_capacity(bytes);
    let mut ends = Vec::with_capacity(texts.len());
    for text in texts {
        arena.extend_from_slice(text.unwrap_or_default().as_bytes());
        ends.push(text.map(|_| arena.len()));
    }
    let arena = Bytes::from(arena);
    let mut start = 0;
    ends.into_iter()
        .map(|end| {
            let end = end?;
            let text = arena.slice(start..end);
            start = end;
            Some(ByteArray::from(text))
        })
        .collect()
}

fn text_value(value: Option<ColumnValue<'_>>) -> Option<&str> {
    match value {
        Some(ColumnValue::Text(text)) => Some(text),
        _ => None,
    }
}

fn int_value(value: Option<ColumnValue<'_>>) -> Option<i32> {
    match value {
        Some(ColumnValue::Int(int)) => Some(int),
        _ => None,
    }
}

fn time_value(value: Option<ColumnValue<'_>>) -> Option<i64> {
    match value {
        Some(ColumnValue::Time(time)) => Some(time),
        _ => None,
    }
}
