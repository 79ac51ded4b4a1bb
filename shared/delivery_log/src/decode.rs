//! Rows of one column of a row group, decoded from bytes that are at hand.

use std::ops::Range;
use std::sync::Arc;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::page_index::index_reader::decode_offset_index;
use parquet::file::page_index::offset_index::{OffsetIndexMetaData, PageLocation};
use parquet::file::reader::ChunkReader;
use parquet::file::serialized_reader::SerializedPageReader;

use crate::cells::ColumnCells;
use crate::error::broken_bytes;

/// A column of a row group, with the places of its pages. Without those, the Parquet reader would
/// walk from page to page instead of skipping those that are not needed.
#[derive(Debug)]
pub(crate) struct ColumnPages<'a> {
    pub(crate) chunk: &'a ColumnChunkMetaData,
    pub(crate) pages: &'a [PageLocation],
    pub(crate) group_rows: usize,
}

impl ColumnPages<'_> {
    /// The bytes of the pages that these rows lie in, and of the dictionary.
    pub(crate) fn byte_ranges(
        &self,
        rows: &[Range<usize>],
    ) -> Result<Vec<Range<u64>>, ParquetError> {
        let (start, _) = self.chunk.byte_range();
        let mut ranges = Vec::new();
        for (index, page) in self.pages.iter().enumerate() {
            if rows
                .iter()
                .any(|rows| do_overlap(rows, &self.page_rows(index)))
            {
                let at = u64::try_from(page.offset)?;
                let len = u64::try_from(page.compressed_page_size)?;
                ranges.push(
                    at..at
                        .checked_add(len)
                        .ok_or_else(|| broken_bytes("a page ends nowhere"))?,
                );
            }
        }
        let first = self
            .pages
            .first()
            .map_or(Ok(start), |page| u64::try_from(page.offset))?;
        if first > start {
            ranges.push(start..first);
        }
        Ok(ranges)
    }

    /// The rows of a page.
    fn page_rows(&self, index: usize) -> Range<usize> {
        let end = self
            .pages
            .get(index + 1)
            .map_or(self.group_rows, first_row_of_page);
        first_row_of_page(&self.pages[index])..end
    }

    /// Reads rows, in ascending ranges.
    pub(crate) fn read_rows<R: ChunkReader + 'static>(
        &self,
        bytes: &Arc<R>,
        rows: &[Range<usize>],
    ) -> Result<ColumnCells, ParquetError> {
        let pages = Some(self.pages.to_vec());
        let pages = SerializedPageReader::new(bytes.clone(), self.chunk, self.group_rows, pages)?;
        match get_column_reader(self.chunk.column_descr_ptr(), Box::new(pages)) {
            ColumnReader::ByteArrayColumnReader(mut reader) => {
                read_cells(&mut reader, rows).map(ColumnCells::Text)
            }
            ColumnReader::Int32ColumnReader(mut reader) => {
                read_cells(&mut reader, rows).map(ColumnCells::Int)
            }
            ColumnReader::Int64ColumnReader(mut reader) => {
                read_cells(&mut reader, rows).map(ColumnCells::Time)
            }
            _ => Err(broken_bytes(
                "a column is of a type that the log does not have",
            )),
        }
    }
}

fn first_row_of_page(page: &PageLocation) -> usize {
    usize::try_from(page.first_row_index).unwrap_or(usize::MAX)
}

/// The places of a column's pages. `index` has the bytes that
/// [`ColumnChunkMetaData::offset_index_range`] names.
pub(crate) fn page_locations<R: ChunkReader>(
    chunk: &ColumnChunkMetaData,
    index: &R,
) -> Result<Vec<PageLocation>, ParquetError> {
    page_index(chunk, index).map(|index| index.page_locations().clone())
}

/// The places and the sizes of a column's pages.
pub(crate) fn page_index<R: ChunkReader>(
    chunk: &ColumnChunkMetaData,
    index: &R,
) -> Result<OffsetIndexMetaData, ParquetError> {
    let range = chunk
        .offset_index_range()
        .ok_or_else(|| broken_bytes("a column has no offset index"))?;
    let len = usize::try_from(range.end.saturating_sub(range.start))?;
    let index = decode_offset_index(&index.get_bytes(range.start, len)?)?;
    let is_sorted = index
        .page_locations()
        .is_sorted_by(|a, b| a.first_row_index < b.first_row_index);
    if is_sorted {
        Ok(index)
    } else {
        Err(broken_bytes("pages are not in order"))
    }
}

fn do_overlap(one: &Range<usize>, other: &Range<usize>) -> bool {
    one.start < other.end && other.start < one.end
}

fn read_cells<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: &[Range<usize>],
) -> Result<Vec<Option<T::T>>, ParquetError> {
    let mut cells = Vec::new();
    let mut at = 0;
    for range in rows {
        let skip = range.start - at;
        if reader.skip_records(skip)? != skip {
            return Err(broken_bytes("a column has too few rows"));
        }
        read_range(reader, range.len(), &mut cells)?;
        at = range.end;
    }
    Ok(cells)
}

fn read_range<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    cells: &mut Vec<Option<T::T>>,
) -> Result<(), ParquetError> {
    let mut values = Vec::new();
    let mut levels = Vec::new();
    let (read, ..) = reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    if read != rows {
        return Err(broken_bytes("a column has too few rows"));
    }
    let mut values = values.into_iter();
    if levels.is_empty() {
        cells.extend(values.map(Some));
    } else {
        cells.extend(
            levels
                .into_iter()
                .map(|level| if level > 0 { values.next() } else { None }),
        );
    }
    Ok(())
}

/// Rows in ascending order as ranges without gaps in them.
pub(crate) fn row_ranges(rows: impl Iterator<Item = usize>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for row in rows {
        match ranges.last_mut() {
            Some(last) if last.end == row => last.end += 1,
            _ => ranges.push(row..row + 1),
        }
    }
    ranges
}
