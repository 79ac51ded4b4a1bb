//! Files of records.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::Range;

use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::writer::SerializedFileWriter;
use posthaste_core::delivery_log::{COLUMNS, LogRecord};
use posthaste_core::model::{LOG_ROW_GROUP_BYTES_MAX, LOG_ROW_GROUP_RECORDS_MAX};

use crate::cells::ColumnCells;
use crate::error::{LogError, broken_bytes};
use crate::footer::file_notes;
use crate::schema::{StoredColumn, WRITE_BATCH, file_schema, own_columns, writer_properties};

/// Rows whose texts are copied at once: with payloads of 1 KiB, they fit into a processor's cache.
const ROWS_AT_ONCE: usize = 4 * WRITE_BATCH;

/// The size of row groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowGroups {
    /// Most records in one.
    pub records_max: usize,
    /// Bytes of long texts in one before the next is begun.
    pub bytes_max: usize,
}

impl Default for RowGroups {
    fn default() -> Self {
        Self {
            records_max: LOG_ROW_GROUP_RECORDS_MAX,
            bytes_max: LOG_ROW_GROUP_BYTES_MAX,
        }
    }
}

/// A file that is being written, row group by row group.
pub(crate) struct FileWriter<W: Write + Send> {
    writer: SerializedFileWriter<CountingSink<W>>,
    columns: Vec<StoredColumn>,
}

/// A sink, and the number of bytes that went into it.
struct CountingSink<W> {
    sink: W,
    bytes: u64,
}

/// The bytes of a file of records. In it they are sorted by topic, subscription and time, the
/// newest first.
pub fn write_file(records: &[LogRecord], groups: RowGroups) -> Result<Bytes, LogError> {
    write_records(&sort_records(records), groups)
        .map(Bytes::from)
        .map_err(LogError::write_failed)
}

/// Records in their places. Many share topic and subscription, which are compared once for each
/// record.
fn sort_records(records: &[LogRecord]) -> Vec<&LogRecord> {
    let mut subscriptions: BTreeMap<_, Vec<&LogRecord>> = BTreeMap::new();
    for record in records {
        subscriptions
            .entry((&*record.topic, &*record.subscription))
            .or_default()
            .push(record);
    }
    let mut sorted = Vec::with_capacity(records.len());
    for mut own in subscriptions.into_values() {
        // A record has some 700 bytes, so that sorting them themselves would take longer than all
        // else.
        own.sort_unstable_by(|one, other| one.place_within().cmp(&other.place_within()));
        sorted.append(&mut own);
    }
    sorted
}

fn write_records(records: &[&LogRecord], groups: RowGroups) -> Result<Vec<u8>, ParquetError> {
    let mut file = FileWriter::new(
        Vec::new(),
        own_columns(),
        groups.records_max,
        file_notes(None),
    )?;
    for range in group_ranges(records, groups) {
        let records = &records[range];
        file.write_group(|index, _| {
            records
                .chunks(ROWS_AT_ONCE)
                .map(move |rows| Ok(ColumnCells::from_records(rows, &COLUMNS[index])))
        })?;
    }
    file.finish().map(|(file, _)| file)
}

fn group_ranges(records: &[&LogRecord], groups: RowGroups) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (index, record) in records.iter().enumerate() {
        bytes += long_text_bytes(record);
        if index + 1 - start >= groups.records_max || bytes >= groups.bytes_max {
            ranges.push(start..index + 1);
            start = index + 1;
            bytes = 0;
        }
    }
    if start < records.len() {
        ranges.push(start..records.len());
    }
    ranges
}

fn long_text_bytes(record: &LogRecord) -> usize {
    record
        .payload
        .as_ref()
        .map_or(0, |payload| payload.as_str().len())
}

impl<W: Write + Send> FileWriter<W> {
    pub(crate) fn new(
        sink: W,
        columns: Vec<StoredColumn>,
        group_records: usize,
        notes: Vec<KeyValue>,
    ) -> Result<Self, ParquetError> {
        let properties = writer_properties(&columns, group_records, notes)?;
        let sink = CountingSink { sink, bytes: 0 };
        Ok(Self {
            writer: SerializedFileWriter::new(sink, file_schema(&columns)?, properties)?,
            columns,
        })
    }

    /// Writes a row group. `cells` makes the values of a column, one column at a time, in runs of
    /// rows.
    pub(crate) fn write_group<R: IntoIterator<Item = Result<ColumnCells, ParquetError>>>(
        &mut self,
        mut cells: impl FnMut(usize, &StoredColumn) -> R,
    ) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (index, column) in self.columns.iter().enumerate() {
            let mut writer = group
                .next_column()?
                .ok_or_else(|| broken_bytes("a column is missing"))?;
            for cells in cells(index, column) {
                cells?.write_column(&mut writer, column.required)?;
            }
            writer.close()?;
        }
        group.close().map(drop)
    }

    /// Bytes that were written by now.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    pub(crate) fn add_note(&mut self, note: KeyValue) {
        self.writer.append_key_value_metadata(note);
    }

    /// Ends the file, and returns its sink with the number of its bytes.
    pub(crate) fn finish(self) -> Result<(W, u64), ParquetError> {
        let CountingSink { sink, bytes } = self.writer.into_inner()?;
        Ok((sink, bytes))
    }
}

impl<W: Write> Write for CountingSink<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.sink.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.sink.flush()
    }
}
