//! Footers: the places of row groups and columns in a file.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use parquet::errors::ParquetError;
use parquet::file::FOOTER_SIZE;
use parquet::file::metadata::{
    ColumnChunkMetaData, FooterTail, KeyValue, ParquetMetaData, ParquetMetaDataOptions,
    ParquetMetaDataReader, ParquetStatisticsPolicy,
};
use posthaste_core::delivery_log::{MergeNote, SCHEMA_VERSION};

use crate::error::broken_bytes;
use crate::schema::check_types;

/// Bytes at the end of a file that are read at first: enough for the footer of a file of some
/// minutes.
const TAIL_BYTES_MIN: u64 = 32 * 1024;

/// Most such bytes: enough for a file of about half a million records.
const TAIL_BYTES_MAX: u64 = 64 * 1024;

/// Bytes of a file for each byte of its footer, at least.
const FILE_BYTES_PER_FOOTER_BYTE: u64 = 1_000;

/// Most rows that a row group is believed to have: 200 times what our writers make.
const GROUP_ROWS_MAX: i64 = 10_000_000;

const NOTE_VERSION: &str = "posthaste.schema_version";
const NOTE_PART: &str = "posthaste.merged_part";
const NOTE_FROM: &str = "posthaste.merged_from";

/// A footer.
#[derive(Debug)]
pub(crate) struct FileFooter {
    pub(crate) meta: ParquetMetaData,
    columns: BTreeMap<String, usize>,
}

/// The end of a file to read at first.
pub(crate) fn tail_range(size: u64) -> Range<u64> {
    let tail = (size / FILE_BYTES_PER_FOOTER_BYTE).clamp(TAIL_BYTES_MIN, TAIL_BYTES_MAX);
    size.saturating_sub(tail)..size
}

/// The part of a footer that lies before the `tail` of a file. `None` if all of it is there.
pub(crate) fn missing_range(size: u64, tail: &Bytes) -> Result<Option<Range<u64>>, ParquetError> {
    let end: [u8; FOOTER_SIZE] = tail
        .len()
        .checked_sub(FOOTER_SIZE)
        .and_then(|at| tail[at..].try_into().ok())
        .ok_or_else(|| broken_bytes("the file is too short"))?;
    let footer = FooterTail::try_new(&end)?.metadata_length() as u64 + FOOTER_SIZE as u64;
    let start = size
        .checked_sub(footer)
        .ok_or_else(|| broken_bytes("the footer is longer than the file"))?;
    let tail_start = size.saturating_sub(tail.len() as u64);
    Ok((start < tail_start).then_some(start..tail_start))
}

/// Decodes a footer from the end of a file, `tail`, and the part before it that was missing.
pub(crate) fn parse(missing: Option<Bytes>, tail: &Bytes) -> Result<FileFooter, ParquetError> {
    let bytes = join_tail(missing, tail);
    let end = bytes.len().saturating_sub(FOOTER_SIZE);
    let footer: [u8; FOOTER_SIZE] = bytes[end..]
        .try_into()
        .map_err(|_| broken_bytes("the file is too short"))?;
    let length = FooterTail::try_new(&footer)?.metadata_length();
    let start = end
        .checked_sub(length)
        .ok_or_else(|| broken_bytes("the footer is longer than the file"))?;
    // No code here uses these; without them a footer takes much less memory.
    let options = ParquetMetaDataOptions::new()
        .with_encoding_stats_policy(ParquetStatisticsPolicy::SkipAll)
        .with_size_stats_policy(ParquetStatisticsPolicy::SkipAll);
    FileFooter::new(ParquetMetaDataReader::decode_metadata_with_options(
        &bytes[start..end],
        Some(&options),
    )?)
}

fn join_tail(missing: Option<Bytes>, tail: &Bytes) -> Bytes {
    let Some(missing) = missing else {
        return tail.clone();
    };
    let mut bytes = BytesMut::from(missing.as_ref());
    bytes.extend_from_slice(tail);
    bytes.freeze()
}

impl FileFooter {
    pub(crate) fn new(meta: ParquetMetaData) -> Result<Self, ParquetError> {
        let schema = meta.file_metadata().schema_descr();
        check_types(schema.columns().iter().map(AsRef::as_ref))?;
        let columns = schema
            .columns()
            .iter()
            .enumerate()
            .map(|(index, column)| (column.path().string(), index))
            .collect();
        let width = schema.num_columns();
        let fits_schema = meta.row_groups().iter().all(|group| {
            group.num_columns() == width && (0..=GROUP_ROWS_MAX).contains(&group.num_rows())
        });
        if !fits_schema {
            return Err(broken_bytes("a row group does not fit the schema"));
        }
        Ok(Self { meta, columns })
    }

    /// The position of a column.
    pub(crate) fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.get(name).copied()
    }

    /// A column of a row group.
    pub(crate) fn column_chunk(&self, group: usize, name: &str) -> Option<&ColumnChunkMetaData> {
        self.column_index(name)
            .map(|column| self.meta.row_group(group).column(column))
    }

    /// The number of rows of a row group.
    pub(crate) fn row_count(&self, group: usize) -> usize {
        usize::try_from(self.meta.row_group(group).num_rows()).unwrap_or_default()
    }

    /// The bytes of a row group's offset indexes, which lie together.
    pub(crate) fn offset_indexes(&self, group: usize) -> Result<Range<u64>, ParquetError> {
        let mut ranges = Vec::new();
        for chunk in self.meta.row_group(group).columns() {
            ranges.push(
                chunk
                    .offset_index_range()
                    .ok_or_else(|| broken_bytes("a column has no offset index"))?,
            );
        }
        let start = ranges
            .iter()
            .map(|range| range.start)
            .min()
            .unwrap_or_default();
        let end = ranges
            .iter()
            .map(|range| range.end)
            .max()
            .unwrap_or_default();
        Ok(start..end)
    }

    /// The note of a merge; `None` if no merge made the file.
    pub(crate) fn merge_note(&self) -> Option<MergeNote> {
        let notes = self.meta.file_metadata().key_value_metadata()?;
        let part = note_text(notes, NOTE_PART)?.parse().ok()?;
        let sources =
            note_text(notes, NOTE_FROM).map(|names| names.split(',').map(str::to_owned).collect());
        Some(MergeNote { part, sources })
    }
}

fn note_text<'a>(notes: &'a [KeyValue], key: &str) -> Option<&'a str> {
    notes.iter().find(|note| note.key == key)?.value.as_deref()
}

/// The notes of a file as it is begun.
pub(crate) fn file_notes(part: Option<u16>) -> Vec<KeyValue> {
    let version = KeyValue::new(NOTE_VERSION.to_owned(), SCHEMA_VERSION.to_string());
    let part = part.map(|part| KeyValue::new(NOTE_PART.to_owned(), part.to_string()));
    [version].into_iter().chain(part).collect()
}

/// The note of the last part of a merge.
pub(crate) fn sources_note(names: &[&str]) -> KeyValue {
    KeyValue::new(NOTE_FROM.to_owned(), names.join(","))
}
