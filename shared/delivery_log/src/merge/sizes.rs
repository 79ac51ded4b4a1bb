//! The bytes that rows take in memory, so that a row group is ended in time.
//!
//! Rows differ: a topic may have payloads of 60 KB and the next one payloads of 100 bytes. The
//! average of a whole row group would hide that, and a page is as large as one long text at most.

use std::collections::BTreeMap;

use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::page_index::offset_index::OffsetIndexMetaData;

/// Most bytes that a page is believed to have. Damaged pages may claim any number.
const PAGE_BYTES_MAX: u64 = 1 << 40;

/// Sizes of the rows of a row group.
#[derive(Debug)]
pub(super) struct RowSizes {
    /// The first row of each run of rows, and the bytes that each of its rows takes.
    runs: Vec<(usize, usize)>,
}

/// Changes of the bytes that a row takes, by the row from which on they hold.
type SizeChanges = BTreeMap<usize, i64>;

impl RowSizes {
    /// The averages of the pages in which the rows lie. `indexes` are those of the columns.
    pub(super) fn new(group: &RowGroupMetaData, indexes: &[OffsetIndexMetaData]) -> Self {
        let rows = usize::try_from(group.num_rows()).unwrap_or_default();
        let mut changes = SizeChanges::new();
        for (chunk, index) in group.columns().iter().zip(indexes) {
            match text_bytes(chunk, index) {
                Some(bytes) => add_pages(&mut changes, index, bytes, rows),
                None => spread_bytes(&mut changes, 0, rows, chunk.uncompressed_size()),
            }
        }
        let mut bytes = 0_i64;
        let runs = changes.into_iter().map(|(row, change)| {
            bytes += change;
            (row, usize::try_from(bytes).unwrap_or_default())
        });
        Self {
            runs: runs.collect(),
        }
    }

    /// The bytes of a row.
    pub(super) fn row_bytes(&self, row: usize) -> usize {
        let behind = self.runs.partition_point(|(first, _)| *first <= row);
        behind.checked_sub(1).map_or(0, |run| self.runs[run].1)
    }
}

/// The bytes of texts page by page. `None` for other columns, and for those with a dictionary, of
/// which each text is in memory once.
fn text_bytes<'a>(
    chunk: &ColumnChunkMetaData,
    index: &'a OffsetIndexMetaData,
) -> Option<&'a [i64]> {
    let bytes = index.unencoded_byte_array_data_bytes()?;
    let is_plain = chunk.dictionary_page_offset().is_none();
    (is_plain && bytes.len() == index.page_locations().len()).then_some(bytes)
}

fn add_pages(changes: &mut SizeChanges, index: &OffsetIndexMetaData, bytes: &[i64], rows: usize) {
    for (page, bytes) in bytes.iter().enumerate() {
        let from = first_row(index, page).unwrap_or(rows);
        let to = first_row(index, page + 1).unwrap_or(rows);
        spread_bytes(changes, from, to, *bytes);
    }
}

fn first_row(index: &OffsetIndexMetaData, page: usize) -> Option<usize> {
    let location = index.page_locations().get(page)?;
    usize::try_from(location.first_row_index).ok()
}

/// Spreads bytes over rows.
fn spread_bytes(changes: &mut SizeChanges, start: usize, end: usize, bytes: i64) {
    let rows = u64::try_from(end.saturating_sub(start))
        .unwrap_or(u64::MAX)
        .max(1);
    let bytes = u64::try_from(bytes).unwrap_or_default().min(PAGE_BYTES_MAX);
    let each = i64::try_from(bytes.div_ceil(rows)).unwrap_or(i64::MAX);
    *changes.entry(start).or_default() += each;
    *changes.entry(end.max(start)).or_default() -= each;
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaDataReader};
    use posthaste_core::delivery_log::{LogRecord, RecordPayload};

    use crate::{MergeInput, MergeLimits, RowGroups, merge_files, write_file};

    const FILES: u32 = 4;

    /// Bytes of payloads in a row group of the tests.
    const GROUP_BYTES: usize = 1 << 20;

    /// A file in which a few payloads of one topic are a hundred times as large as the many of the
    /// next.
    fn skewed(file: u32) -> Bytes {
        let payload = |len: usize| RecordPayload::parse(&format!("\"{}\"", "x".repeat(len)));
        let record = |n: u32| LogRecord {
            record_id: format!("{:032x}", n * FILES + file),
            topic: if n < 75 { "a" } else { "b" }.to_owned(),
            payload: payload(if n < 75 { 10_000 } else { 100 }),
            ..LogRecord::default()
        };
        write_file(
            &(0..2_500).map(record).collect::<Vec<_>>(),
            RowGroups::default(),
        )
        .unwrap()
    }

    #[test]
    fn a_row_group_is_bounded_where_payloads_differ() {
        let input = |file: u32| MergeInput::in_memory(file.to_string(), skewed(file));
        let groups = RowGroups {
            bytes_max: GROUP_BYTES,
            ..RowGroups::default()
        };
        let limits = MergeLimits {
            groups,
            ..MergeLimits::default()
        };
        let merged =
            merge_files((0..FILES).map(input).collect(), limits, |_| Ok(Vec::new())).unwrap();
        let footer = ParquetMetaDataReader::new()
            .parse_and_finish(&Bytes::from(merged[0].sink.clone()))
            .unwrap();
        let payloads = footer.row_groups().iter().map(|group| {
            let columns = group.columns().iter();
            columns
                .filter_map(ColumnChunkMetaData::unencoded_byte_array_data_bytes)
                .max()
                .unwrap()
        });
        let payloads: Vec<_> = payloads.collect();
        assert!(payloads.len() >= 4, "{payloads:?}");
        assert!(
            payloads
                .iter()
                .all(|bytes| *bytes <= i64::try_from(GROUP_BYTES).unwrap()),
            "{payloads:?}"
        );
    }
}
