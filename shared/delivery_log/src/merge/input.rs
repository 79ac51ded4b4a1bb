//! Files that are merged.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::slice::from_ref;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::page_index::offset_index::OffsetIndexMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::ColumnDescPtr;
use posthaste_core::delivery_log::{ColumnEncoding, ColumnType, find_column};

use super::sizes::RowSizes;
use crate::cells::ColumnCells;
use crate::decode::{ColumnPages, page_index, row_ranges};
use crate::error::{LogError, broken_bytes, decode_guarded};
use crate::footer::FileFooter;
use crate::schema::{StoredColumn, column_type, own_columns, stored_encoding};

/// A file that is merged.
#[derive(Debug)]
pub struct MergeInput {
    name: String,
    bytes: InputBytes,
}

#[derive(Debug)]
enum InputBytes {
    Memory(Bytes),
    File(File),
}

impl MergeInput {
    /// A file whose bytes are in memory. The name is noted in the merged file; it has no comma.
    pub fn in_memory(name: String, bytes: Bytes) -> Self {
        Self {
            name,
            bytes: InputBytes::Memory(bytes),
        }
    }

    /// A file of the machine, which is read where it lies.
    pub fn on_disk(name: String, file: File) -> Self {
        Self {
            name,
            bytes: InputBytes::File(file),
        }
    }
}

impl Length for InputBytes {
    fn len(&self) -> u64 {
        match self {
            Self::Memory(bytes) => bytes.len() as u64,
            Self::File(file) => Length::len(file),
        }
    }
}

impl ChunkReader for InputBytes {
    type T = Box<dyn Read>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        match self {
            Self::Memory(bytes) => Ok(Box::new(slice_bytes(bytes, start, None)?.reader())),
            Self::File(file) => Ok(Box::new(file.get_read(start)?)),
        }
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        match self {
            Self::Memory(bytes) => slice_bytes(bytes, start, Some(length)),
            Self::File(file) if start.saturating_add(length as u64) <= Length::len(file) => {
                file.get_bytes(start, length)
            }
            Self::File(_) => Err(broken_bytes("it names bytes behind its end")),
        }
    }
}

fn slice_bytes(bytes: &Bytes, start: u64, length: Option<usize>) -> Result<Bytes, ParquetError> {
    let start = usize::try_from(start)?;
    let end = length.map_or(Some(bytes.len()), |length| start.checked_add(length));
    let end = end.filter(|end| start <= *end && *end <= bytes.len());
    end.map(|end| bytes.slice(start..end))
        .ok_or_else(|| broken_bytes("it names bytes behind its end"))
}

/// A file that is merged, with its footer and the places of its pages.
pub(super) struct OpenedMergeInput {
    name: String,
    bytes: Arc<InputBytes>,
    footer: FileFooter,
    /// The places of pages, by row group and column.
    pages: Vec<Vec<OffsetIndexMetaData>>,
    /// The first row of each row group, and the number of all rows.
    starts: Vec<usize>,
    /// The bytes that the rows of each row group take in memory.
    sizes: Vec<RowSizes>,
}

impl OpenedMergeInput {
    pub(super) fn open(input: MergeInput) -> Result<Self, LogError> {
        let MergeInput { name, bytes } = input;
        let bytes = Arc::new(bytes);
        let (footer, pages) = decode_guarded(&name, || {
            let footer =
                FileFooter::new(ParquetMetaDataReader::new().parse_and_finish(bytes.as_ref())?)?;
            let pages = page_indexes(&footer, &bytes)?;
            Ok((footer, pages))
        })?;
        let mut starts = vec![0];
        for group in 0..footer.meta.num_row_groups() {
            starts.push(starts[group] + footer.row_count(group));
        }
        let groups = footer.meta.row_groups().iter().zip(&pages);
        let sizes = groups
            .map(|(group, pages)| RowSizes::new(group, pages))
            .collect();
        Ok(Self {
            name,
            bytes,
            footer,
            pages,
            starts,
            sizes,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn group_count(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn first_row(&self, group: usize) -> usize {
        self.starts[group]
    }

    pub(super) fn group_rows(&self, group: usize) -> usize {
        self.starts[group + 1] - self.starts[group]
    }

    /// The bytes that a row takes in memory: the average of its pages.
    pub(super) fn row_bytes(&self, row: usize) -> usize {
        let group = self.group_of_row(row);
        self.sizes[group].row_bytes(row - self.starts[group])
    }

    /// A column of a row group; without values if the file does not have it.
    pub(super) fn group_column(
        &self,
        group: usize,
        name: &str,
        column_type: ColumnType,
    ) -> Result<ColumnCells, LogError> {
        let rows = self.group_rows(group);
        let Some(column) = self.footer.column_index(name) else {
            return Ok(ColumnCells::empty(column_type, rows));
        };
        decode_guarded(&self.name, || {
            self.pages_of_column(group, column)
                .read_rows(&self.bytes, from_ref(&(0..rows)))
        })
    }

    /// Puts rows of a column, in ascending order, in their places.
    pub(super) fn gather_rows(
        &self,
        name: &str,
        mut rows: &[usize],
        mut places: &[usize],
        cells: &mut ColumnCells,
    ) -> Result<(), LogError> {
        let Some(column) = self.footer.column_index(name) else {
            return Ok(());
        };
        while let Some(first) = rows.first() {
            let group = self.group_of_row(*first);
            let len = rows.partition_point(|row| *row < self.starts[group + 1]);
            let in_group = row_ranges(rows[..len].iter().map(|row| row - self.starts[group]));
            decode_guarded(&self.name, || {
                let from = self
                    .pages_of_column(group, column)
                    .read_rows(&self.bytes, &in_group)?;
                cells.put_rows(from, &places[..len])
            })?;
            rows = &rows[len..];
            places = &places[len..];
        }
        Ok(())
    }

    fn group_of_row(&self, row: usize) -> usize {
        self.starts
            .partition_point(|start| *start <= row)
            .saturating_sub(1)
            .min(self.group_count().saturating_sub(1))
    }

    fn pages_of_column(&self, group: usize, column: usize) -> ColumnPages<'_> {
        let chunk = self.footer.meta.row_group(group).column(column);
        ColumnPages {
            chunk,
            pages: self.pages[group][column].page_locations(),
            group_rows: self.group_rows(group),
        }
    }

    /// Returns the columns of the file, or an error if one is of a type that the log does not have.
    fn stored_columns(&self) -> Result<Vec<StoredColumn>, ParquetError> {
        let schema = self.footer.meta.file_metadata().schema_descr();
        schema
            .columns()
            .iter()
            .enumerate()
            .map(|(index, descr)| self.stored_column(index, descr))
            .collect()
    }

    fn stored_column(
        &self,
        index: usize,
        descr: &ColumnDescPtr,
    ) -> Result<StoredColumn, ParquetError> {
        let column_type = column_type(descr)
            .ok_or_else(|| broken_bytes("a column is of a type that the log does not have"))?;
        let group = self.footer.meta.row_groups().first();
        let encoding = match find_column(descr.name()) {
            Some(own) => own.encoding,
            None => group.map_or(ColumnEncoding::Distinct, |group| {
                stored_encoding(group.column(index))
            }),
        };
        Ok(StoredColumn {
            name: descr.name().to_owned(),
            column_type,
            required: descr.max_def_level() == 0,
            encoding,
        })
    }
}

fn page_indexes(
    footer: &FileFooter,
    bytes: &InputBytes,
) -> Result<Vec<Vec<OffsetIndexMetaData>>, ParquetError> {
    let groups = footer.meta.row_groups().iter();
    groups
        .map(|group| {
            group
                .columns()
                .iter()
                .map(|chunk| page_index(chunk, bytes))
                .collect()
        })
        .collect()
}

/// The columns of all inputs: ours in our order, then those that this program does not know. A
/// column that an input does not have is not required.
pub(super) fn union_columns(inputs: &[OpenedMergeInput]) -> Result<Vec<StoredColumn>, LogError> {
    let mut columns: Vec<StoredColumn> = own_columns();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for input in inputs {
        for column in decode_guarded(&input.name, || input.stored_columns())? {
            *seen.entry(column.name.clone()).or_default() += usize::from(column.required);
            match columns.iter().find(|known| known.name == column.name) {
                Some(known) if known.column_type != column.column_type => {
                    return Err(LogError::damaged(
                        &input.name,
                        format!("column {} is of another type", column.name),
                    ));
                }
                Some(_) => {}
                None => columns.push(column),
            }
        }
    }
    for column in &mut columns {
        column.required = seen.get(&column.name) == Some(&inputs.len());
    }
    Ok(columns)
}
