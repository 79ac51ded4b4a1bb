//! A row group that is read: first the columns that decide, then whole records of the rows that
//! were found.

use std::ops::Range;
use std::slice::from_ref;
use std::sync::Arc;

use parquet::errors::ParquetError;
use parquet::file::page_index::offset_index::PageLocation;
use parquet::file::statistics::Statistics;
use posthaste_core::delivery_log::{COLUMNS, ColumnValue, LogRecord};

use crate::cells::ColumnCells;
use crate::decode::{ColumnPages, page_locations, row_ranges};
use crate::error::broken_bytes;
use crate::footer::FileFooter;
use crate::log_file::LogFile;
use crate::row_query::{self, RowQuery};
use crate::segments::FileSegments;

/// A row group of a file.
#[derive(Debug, Clone)]
pub(crate) struct LogRowGroup {
    pub(crate) file: LogFile,
    pub(crate) footer: Arc<FileFooter>,
    pub(crate) index: usize,
}

/// Rows of a group that were found, with the places of all its pages.
#[derive(Debug)]
pub(crate) struct FoundRows {
    pub(crate) group: LogRowGroup,
    /// Row and time, in the order of the rows.
    pub(crate) rows: Vec<(usize, i64)>,
    pages: Vec<Vec<PageLocation>>,
}

impl LogRowGroup {
    /// The time of the newest row, as far as statistics say.
    pub(crate) fn newest_time(&self) -> i64 {
        let times = self
            .footer
            .column_chunk(self.index, row_query::TIME)
            .and_then(|chunk| chunk.statistics());
        let Some(Statistics::Int64(times)) = times else {
            return i64::MAX;
        };
        times.max_opt().copied().unwrap_or(i64::MAX)
    }

    /// The ranges to read to find rows: the deciding columns, and the places of pages.
    pub(crate) fn deciding_ranges(
        &self,
        ask: &RowQuery<'_>,
    ) -> Result<Vec<Range<u64>>, ParquetError> {
        self.column_ranges(ask.deciding_columns())
    }

    /// The ranges of whole columns, and the places of all pages.
    pub(crate) fn column_ranges<'c>(
        &self,
        columns: impl Iterator<Item = &'c str>,
    ) -> Result<Vec<Range<u64>>, ParquetError> {
        let indexes = self.footer.offset_indexes(self.index);
        columns
            .map(|name| self.column_range(name))
            .chain([indexes])
            .collect()
    }

    fn column_range(&self, name: &str) -> Result<Range<u64>, ParquetError> {
        let chunk = self
            .footer
            .column_chunk(self.index, name)
            .ok_or_else(|| broken_bytes("a column is missing"))?;
        let (start, len) = chunk.byte_range();
        start
            .checked_add(len)
            .map(|end| start..end)
            .ok_or_else(|| broken_bytes("a column ends nowhere"))
    }

    /// Gives each text of columns to `take`, with the column's name. `bytes` are those of
    /// [`Self::column_ranges`].
    pub(crate) fn read_texts(
        &self,
        columns: &[&str],
        bytes: FileSegments,
        mut take: impl FnMut(&str, &str),
    ) -> Result<(), ParquetError> {
        let (_, cells) = self.read_cells(columns.iter().copied(), bytes)?;
        for (column, cells) in columns.iter().zip(cells) {
            for row in 0..self.footer.row_count(self.index) {
                if let Some(ColumnValue::Text(text)) = cells.value(row)? {
                    take(column, text);
                }
            }
        }
        Ok(())
    }

    /// Finds rows. `bytes` are those of [`Self::deciding_ranges`].
    pub(crate) fn find_rows(
        self,
        ask: &RowQuery<'_>,
        bytes: FileSegments,
    ) -> Result<FoundRows, ParquetError> {
        let rows = self.footer.row_count(self.index);
        let (pages, cells) = self.read_cells(ask.deciding_columns(), bytes)?;
        let found = (0..rows).filter(|row| ask.matches_row(&cells, *row));
        let rows = found
            .map(|row| (row, row_query::row_time(&cells, row)))
            .collect();
        Ok(FoundRows {
            group: self,
            rows,
            pages,
        })
    }

    /// The places of the pages of all columns, and the values of some. `bytes` are those of
    /// [`Self::column_ranges`].
    fn read_cells<'c>(
        &self,
        columns: impl Iterator<Item = &'c str>,
        bytes: FileSegments,
    ) -> Result<(Vec<Vec<PageLocation>>, Vec<ColumnCells>), ParquetError> {
        let bytes = Arc::new(bytes);
        let rows = self.footer.row_count(self.index);
        let chunks = self.footer.meta.row_group(self.index).columns();
        let pages: Vec<_> = chunks
            .iter()
            .map(|chunk| page_locations(chunk, bytes.as_ref()))
            .collect::<Result<_, _>>()?;
        let mut cells = Vec::new();
        for name in columns {
            let column = self
                .footer
                .column_index(name)
                .ok_or_else(|| broken_bytes("a column is missing"))?;
            let pages = self.column_pages(&pages, column);
            cells.push(pages.read_rows(&bytes, from_ref(&(0..rows)))?);
        }
        Ok((pages, cells))
    }

    fn column_pages<'a>(
        &'a self,
        pages: &'a [Vec<PageLocation>],
        column: usize,
    ) -> ColumnPages<'a> {
        let chunk = self.footer.meta.row_group(self.index).column(column);
        ColumnPages {
            chunk,
            pages: &pages[column],
            group_rows: self.footer.row_count(self.index),
        }
    }
}

impl FoundRows {
    /// The ranges to read for the records of the rows.
    pub(crate) fn record_ranges(
        &self,
        ask: &RowQuery<'_>,
    ) -> Result<Vec<Range<u64>>, ParquetError> {
        let rows = self.row_ranges();
        let mut ranges = Vec::new();
        for (_, column) in self.wanted_columns(ask) {
            ranges.extend(column.byte_ranges(&rows)?);
        }
        Ok(ranges)
    }

    /// The records of the rows. `bytes` are those of [`Self::ranges`].
    pub(crate) fn read_records(
        &self,
        ask: &RowQuery<'_>,
        bytes: FileSegments,
    ) -> Result<Vec<LogRecord>, ParquetError> {
        let bytes = Arc::new(bytes);
        let rows = self.row_ranges();
        let mut records = vec![LogRecord::default(); self.rows.len()];
        for (set, column) in self.wanted_columns(ask) {
            let cells = column.read_rows(&bytes, &rows)?;
            for (row, record) in records.iter_mut().enumerate() {
                let Some(value) = cells.value(row)? else {
                    continue;
                };
                if !set(record, value) {
                    return Err(broken_bytes("a value is out of range"));
                }
            }
        }
        Ok(records)
    }

    /// The columns that this program knows and wants, of those that the file has.
    fn wanted_columns(
        &self,
        ask: &RowQuery<'_>,
    ) -> impl Iterator<Item = (SetMember, ColumnPages<'_>)> {
        COLUMNS
            .iter()
            .filter(|column| ask.wants_column(column.name))
            .filter_map(|column| {
                let position = self.group.footer.column_index(column.name)?;
                Some((column.set, self.group.column_pages(&self.pages, position)))
            })
    }

    fn row_ranges(&self) -> Vec<Range<usize>> {
        row_ranges(self.rows.iter().map(|(row, _)| *row))
    }
}

/// Sets a member of a record.
type SetMember = fn(&mut LogRecord, ColumnValue<'_>) -> bool;
