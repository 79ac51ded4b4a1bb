//! One file of many: sorted, each record once, in bounded memory.
//!
//! The order of all rows is found from four columns. Then row group after row group is written,
//! column by column: the rows of one column are gathered from all inputs, written, and dropped.
//! Pages that are not needed are skipped and not decoded. Columns that this program does not know
//! are kept.

mod input;
mod order;
mod sizes;

use std::io::{self, Write};

use parquet::errors::ParquetError;
use posthaste_core::model::LOG_FILE_BYTES_MAX;

pub use self::input::MergeInput;
use self::input::OpenedMergeInput;
use self::order::{RowPlace, order_rows};
use crate::cells::ColumnCells;
use crate::error::LogError;
use crate::footer::{file_notes, sources_note};
use crate::schema::StoredColumn;
use crate::writer::{FileWriter, RowGroups};

/// The sizes of the files that a merge makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeLimits {
    /// The size of row groups.
    pub groups: RowGroups,
    /// Bytes of a file before the next part is begun.
    pub file_bytes_max: u64,
}

impl Default for MergeLimits {
    fn default() -> Self {
        Self {
            groups: RowGroups::default(),
            file_bytes_max: LOG_FILE_BYTES_MAX,
        }
    }
}

/// A part that a merge made.
#[derive(Debug)]
pub struct MergedPart<W> {
    /// The sink that it was written to.
    pub sink: W,
    /// The number of its records.
    pub records: usize,
    /// The file's bytes.
    pub bytes: u64,
}

/// Merges files into as few parts as fit. `open` makes the sink of a part. The last part names all
/// inputs ([`MergeNote`](posthaste_core::delivery_log::MergeNote)): once it is stored, they may be
/// deleted.
///
/// The memory that it takes is 48 bytes a row, one column of a row group, and the inputs that are
/// in memory.
pub fn merge_files<W: Write + Send>(
    inputs: Vec<MergeInput>,
    limits: MergeLimits,
    open: impl FnMut(u16) -> io::Result<W>,
) -> Result<Vec<MergedPart<W>>, LogError> {
    let inputs: Vec<OpenedMergeInput> = inputs
        .into_iter()
        .map(OpenedMergeInput::open)
        .collect::<Result<_, _>>()?;
    let columns = input::union_columns(&inputs)?;
    let order = order_rows(&inputs)?;
    let mut merge = FileMerge {
        inputs: &inputs,
        columns,
        limits,
        open,
        parts: Vec::new(),
        current: None,
    };
    for group in cut_into_groups(&order, &inputs, limits.groups) {
        merge.write_group(group)?;
    }
    merge.finish()
}

struct FileMerge<'a, W: Write + Send, O> {
    inputs: &'a [OpenedMergeInput],
    columns: Vec<StoredColumn>,
    limits: MergeLimits,
    open: O,
    parts: Vec<MergedPart<W>>,
    current: Option<(FileWriter<W>, usize)>,
}

impl<W: Write + Send, O: FnMut(u16) -> io::Result<W>> FileMerge<'_, W, O> {
    fn write_group(&mut self, group: &[RowPlace]) -> Result<(), LogError> {
        let is_full = self
            .current
            .as_ref()
            .is_some_and(|(file, _)| file.bytes() >= self.limits.file_bytes_max);
        if is_full {
            self.close_part().map_err(LogError::write_failed)?;
        }
        let (mut file, records) = match self.current.take() {
            Some(current) => current,
            None => (self.begin_part()?, 0),
        };
        write_rows(&mut file, self.inputs, group)?;
        self.current = Some((file, records + group.len()));
        Ok(())
    }

    fn begin_part(&mut self) -> Result<FileWriter<W>, LogError> {
        let part = u16::try_from(self.parts.len()).unwrap_or(u16::MAX);
        let sink = (self.open)(part).map_err(|error| LogError::Write(error.into()))?;
        let group_records = self.limits.groups.records_max;
        FileWriter::new(
            sink,
            self.columns.clone(),
            group_records,
            file_notes(Some(part)),
        )
        .map_err(LogError::write_failed)
    }

    fn close_part(&mut self) -> Result<(), ParquetError> {
        if let Some((file, records)) = self.current.take() {
            let (sink, bytes) = file.finish()?;
            self.parts.push(MergedPart {
                sink,
                records,
                bytes,
            });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Vec<MergedPart<W>>, LogError> {
        let names: Vec<&str> = self.inputs.iter().map(OpenedMergeInput::name).collect();
        if let Some((file, _)) = &mut self.current {
            file.add_note(sources_note(&names));
        }
        self.close_part().map_err(LogError::write_failed)?;
        Ok(self.parts)
    }
}

/// Rows cut into row groups: by their number, and by the bytes that they take in their inputs.
fn cut_into_groups<'a>(
    order: &'a [RowPlace],
    inputs: &'a [OpenedMergeInput],
    limits: RowGroups,
) -> impl Iterator<Item = &'a [RowPlace]> {
    let mut rest = order;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let len = rest
            .iter()
            .take(limits.records_max)
            .take_while(|place| {
                let fits = bytes < limits.bytes_max;
                bytes += inputs[place.input()].row_bytes(place.row());
                fits
            })
            .count();
        let (group, behind) = rest.split_at(len);
        rest = behind;
        (!group.is_empty()).then_some(group)
    })
}

fn write_rows<W: Write + Send>(
    file: &mut FileWriter<W>,
    inputs: &[OpenedMergeInput],
    group: &[RowPlace],
) -> Result<(), LogError> {
    let picked = order::rows_by_input(group, inputs.len());
    let mut failed = None;
    let written = file.write_group(|_, column| {
        let cells = gather_column(inputs, &picked, column, group.len()).map_err(|error| {
            failed = Some(error);
            ParquetError::General("an input failed".to_owned())
        });
        [cells]
    });
    match failed {
        Some(error) => Err(error),
        None => written.map_err(LogError::write_failed),
    }
}

fn gather_column(
    inputs: &[OpenedMergeInput],
    picked: &[order::PickedRows],
    column: &StoredColumn,
    rows: usize,
) -> Result<ColumnCells, LogError> {
    let mut cells = ColumnCells::empty(column.column_type, rows);
    for (input, picked) in inputs.iter().zip(picked) {
        input.gather_rows(&column.name, &picked.rows, &picked.places, &mut cells)?;
    }
    Ok(cells)
}
