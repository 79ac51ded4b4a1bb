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
use self::input::Opened;
use self::order::{Place, order};
use crate::cells::Cells;
use crate::error::LogError;
use crate::footer::{notes, sources_note};
use crate::schema::StoredColumn;
use crate::writer::{FileWriter, RowGroups};

/// The sizes of what a merge makes.
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
pub fn merge<W: Write + Send>(
    inputs: Vec<MergeInput>,
    limits: MergeLimits,
    open: impl FnMut(u16) -> io::Result<W>,
) -> Result<Vec<MergedPart<W>>, LogError> {
    let inputs: Vec<Opened> = inputs
        .into_iter()
        .map(Opened::open)
        .collect::<Result<_, _>>()?;
    let columns = input::union(&inputs)?;
    let order = order(&inputs)?;
    let mut merge = Merge {
        inputs: &inputs,
        columns,
        limits,
        open,
        parts: Vec::new(),
        current: None,
    };
    for group in groups(&order, &inputs, limits.groups) {
        merge.write_group(group)?;
    }
    merge.finish()
}

struct Merge<'a, W: Write + Send, O> {
    inputs: &'a [Opened],
    columns: Vec<StoredColumn>,
    limits: MergeLimits,
    open: O,
    parts: Vec<MergedPart<W>>,
    current: Option<(FileWriter<W>, usize)>,
}

impl<W: Write + Send, O: FnMut(u16) -> io::Result<W>> Merge<'_, W, O> {
    fn write_group(&mut self, group: &[Place]) -> Result<(), LogError> {
        let full = |(file, _): &(FileWriter<W>, usize)| file.bytes() >= self.limits.file_bytes_max;
        if self.current.as_ref().is_some_and(full) {
            self.close().map_err(LogError::write)?;
        }
        let (mut file, records) = match self.current.take() {
            Some(current) => current,
            None => (self.begin()?, 0),
        };
        write_rows(&mut file, self.inputs, group)?;
        self.current = Some((file, records + group.len()));
        Ok(())
    }

    fn begin(&mut self) -> Result<FileWriter<W>, LogError> {
        let part = u16::try_from(self.parts.len()).unwrap_or(u16::MAX);
        let sink = (self.open)(part).map_err(|error| LogError::Write(error.into()))?;
        let group_records = self.limits.groups.records_max;
        FileWriter::new(sink, self.columns.clone(), group_records, notes(Some(part)))
            .map_err(LogError::write)
    }

    fn close(&mut self) -> Result<(), ParquetError> {
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
        let names: Vec<&str> = self.inputs.iter().map(Opened::name).collect();
        if let Some((file, _)) = &mut self.current {
            file.note(sources_note(&names));
        }
        self.close().map_err(LogError::write)?;
        Ok(self.parts)
    }
}

/// Rows cut into row groups: by their number, and by the bytes that they take in their inputs.
fn groups<'a>(
    order: &'a [Place],
    inputs: &'a [Opened],
    limits: RowGroups,
) -> impl Iterator<Item = &'a [Place]> {
    let mut rest = order;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |place: &&Place| {
            let fitted = bytes < limits.bytes_max;
            bytes += inputs[place.input()].row_bytes(place.row());
            fitted
        };
        let len = rest
            .iter()
            .take(limits.records_max)
            .take_while(fits)
            .count();
        let (group, behind) = rest.split_at(len);
        rest = behind;
        (!group.is_empty()).then_some(group)
    })
}

fn write_rows<W: Write + Send>(
    file: &mut FileWriter<W>,
    inputs: &[Opened],
    group: &[Place],
) -> Result<(), LogError> {
    let picked = order::by_input(group, inputs.len());
    let mut failed = None;
    let written = file.write_group(|_, column| {
        let cells = gather(inputs, &picked, column, group.len()).map_err(|error| {
            failed = Some(error);
            ParquetError::General("an input failed".to_owned())
        });
        [cells]
    });
    match failed {
        Some(error) => Err(error),
        None => written.map_err(LogError::write),
    }
}

fn gather(
    inputs: &[Opened],
    picked: &[order::Picked],
    column: &StoredColumn,
    rows: usize,
) -> Result<Cells, LogError> {
    let mut cells = Cells::empty(column.column_type, rows);
    for (input, picked) in inputs.iter().zip(picked) {
        input.gather(&column.name, &picked.rows, &picked.places, &mut cells)?;
    }
    Ok(cells)
}
