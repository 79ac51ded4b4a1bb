//! The order of the rows of all inputs, without the copies of records.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use parquet::data_type::ByteArray;
use posthaste_core::delivery_log::ColumnType;
use twox_hash::XxHash64;

use super::input::OpenedMergeInput;
use crate::cells::ColumnCells;
use crate::error::LogError;

/// The place of a row. Places are in the order of the file that is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowPlace {
    owner: u32,
    time: Reverse<i64>,
    id: u128,
    input: u32,
    row: u32,
}

/// Rows of one input in ascending order, and where they go.
#[derive(Debug, Default)]
pub(super) struct PickedRows {
    pub(super) rows: Vec<usize>,
    pub(super) places: Vec<usize>,
}

type OwnerNames = (Vec<u8>, Vec<u8>);

impl RowPlace {
    pub(super) fn input(&self) -> usize {
        self.input as usize
    }

    pub(super) fn row(&self) -> usize {
        self.row as usize
    }

    fn is_copy_of(&self, other: &Self) -> bool {
        (self.owner, self.time, self.id) == (other.owner, other.time, other.id)
    }
}

/// All rows by topic, subscription and time, the newest first; of copies of a record only one.
pub(super) fn order_rows(inputs: &[OpenedMergeInput]) -> Result<Vec<RowPlace>, LogError> {
    let mut owners = OwnerNumbers::default();
    let mut places = Vec::new();
    for (index, input) in inputs.iter().enumerate() {
        for group in 0..input.group_count() {
            let columns = OrderColumns::read(input, group)?;
            let first = input.first_row(group);
            for row in 0..columns.rows {
                places.push(columns.row_place(&mut owners, index, first, row));
            }
        }
    }
    let ranks = owners.ranks();
    for place in &mut places {
        place.owner = ranks[place.owner as usize];
    }
    places.sort_unstable();
    places.dedup_by(|one, other| one.is_copy_of(other));
    Ok(places)
}

/// The rows of a group by input.
pub(super) fn rows_by_input(group: &[RowPlace], inputs: usize) -> Vec<PickedRows> {
    let mut rows: Vec<Vec<(usize, usize)>> = vec![Vec::new(); inputs];
    for (place, row) in group.iter().enumerate() {
        rows[row.input()].push((row.row(), place));
    }
    rows.into_iter()
        .map(|mut rows| {
            rows.sort_unstable();
            let (rows, places) = rows.into_iter().unzip();
            PickedRows { rows, places }
        })
        .collect()
}

/// Topics and subscriptions, numbered as they come.
#[derive(Default)]
struct OwnerNumbers {
    numbers: BTreeMap<OwnerNames, u32>,
}

impl OwnerNumbers {
    fn assign_number(&mut self, owner: OwnerNames) -> u32 {
        let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
        *self.numbers.entry(owner).or_insert(next)
    }

    /// The rank of each number in the order of the names.
    fn ranks(&self) -> Vec<u32> {
        let mut ranks = vec![0; self.numbers.len()];
        for (rank, number) in (0..).zip(self.numbers.values()) {
            ranks[*number as usize] = rank;
        }
        ranks
    }
}

/// The columns of one row group that decide the order.
struct OrderColumns {
    topics: ColumnCells,
    subscriptions: ColumnCells,
    times: ColumnCells,
    ids: ColumnCells,
    rows: usize,
}

impl OrderColumns {
    fn read(input: &OpenedMergeInput, group: usize) -> Result<Self, LogError> {
        Ok(Self {
            topics: input.group_column(group, "topic", ColumnType::Text)?,
            subscriptions: input.group_column(group, "subscription", ColumnType::Text)?,
            times: input.group_column(group, "time", ColumnType::Time)?,
            ids: input.group_column(group, "record_id", ColumnType::Text)?,
            rows: input.group_rows(group),
        })
    }

    fn row_place(
        &self,
        owners: &mut OwnerNumbers,
        input: usize,
        first: usize,
        row: usize,
    ) -> RowPlace {
        let owner = (
            cell_bytes(&self.topics, row).to_vec(),
            cell_bytes(&self.subscriptions, row).to_vec(),
        );
        let time = match &self.times {
            ColumnCells::Time(times) => times.get(row).copied().flatten().unwrap_or_default(),
            _ => 0,
        };
        RowPlace {
            owner: owners.assign_number(owner),
            time: Reverse(time),
            id: id_number(cell_bytes(&self.ids, row)),
            input: u32::try_from(input).unwrap_or(u32::MAX),
            row: u32::try_from(first + row).unwrap_or(u32::MAX),
        }
    }
}

fn cell_bytes(cells: &ColumnCells, row: usize) -> &[u8] {
    match cells {
        ColumnCells::Text(texts) => texts
            .get(row)
            .and_then(Option::as_ref)
            .map_or(&[], ByteArray::data),
        _ => &[],
    }
}

/// The number that one of our ids is, or a digest of any other id.
fn id_number(id: &[u8]) -> u128 {
    let number = std::str::from_utf8(id).ok().filter(|text| text.len() == 32);
    let number = number.and_then(|text| u128::from_str_radix(text, 16).ok());
    number.unwrap_or_else(|| {
        u128::from(XxHash64::oneshot(0, id)) << 64 | u128::from(XxHash64::oneshot(1, id))
    })
}
