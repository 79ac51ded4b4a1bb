//! The summary of a day: for each of its hours a bloom filter of the ids of its records.
//!
//! A summary is a table. Each of its rows has one block of the filter of every hour, side by side,
//! so that one range of it says of a whole day which hours cannot have an id. A row also names the
//! files that the filters were made of, and carries a checksum of its own. So it holds by itself: an
//! hour with other files, and every hour of a row that is damaged, counts as one without a filter.
//!
//! Filters are the split block bloom filters of Parquet.
//! <https://parquet.apache.org/docs/file-format/bloomfilter/>

use bytes::Bytes;
use posthaste_core::delivery_log::{LogDay, LogHour};
use twox_hash::XxHash64;

use crate::log_file::LogFile;

/// Hours of a day.
const HOURS: usize = 24;

/// Most ids for each block of a filter. With 16 bits for each id, a full filter says "maybe" of
/// [`FALSE_POSITIVES_PER_MILLION_MAX`] ids that it does not have: a search of 30 days reads about
/// one hour in vain. Eight bits would be ten hours, and 32 bits would double the summary for one.
pub(crate) const IDS_PER_BLOCK_MAX: usize = 16;

/// Most ids in a million of which a full filter wrongly says that it may have them.
#[cfg(test)]
const FALSE_POSITIVES_PER_MILLION_MAX: u32 = 2_000;

/// Fewest rows of a summary: 15 KiB, less than the files of a quiet day.
const ROWS_MIN: usize = 16;

/// Most rows of a summary: 30.5 MiB, which the program rewrites each hour. They have room for
/// 524,288 ids an hour, a day of ten million events. An hour with more is searched by the filters
/// of its files, which are large then and few.
const ROWS_MAX: usize = 32 * 1024;

/// Most ids of an hour that has a filter.
pub(crate) const IDS_MAX: usize = ROWS_MAX * IDS_PER_BLOCK_MAX;

/// The seed of checksums, which changes with the form of rows.
const CHECKSUM_SEED: u64 = 1;

/// 32-bit words of a block.
const WORDS: usize = 8;

const DIGEST_BYTES: usize = 8;
const BLOCK_BYTES: usize = 4 * WORDS;
const BLOCKS_AT: usize = HOURS * DIGEST_BYTES;
const PLACE_AT: usize = BLOCKS_AT + HOURS * BLOCK_BYTES;
const CHECKSUM_AT: usize = PLACE_AT + 8;

/// Bytes of a row.
pub(crate) const ROW_BYTES: usize = CHECKSUM_AT + 8;

/// The multipliers that choose the bit of each word of a block.
const SALT: [u32; WORDS] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// A digest of the files of an hour; 0 for no files.
pub(crate) fn files_digest<'a>(files: impl IntoIterator<Item = &'a LogFile>) -> u64 {
    let mut names: Vec<_> = files
        .into_iter()
        .map(|file| format!("{} {}\n", file.key, file.size))
        .collect();
    names.sort_unstable();
    if names.is_empty() {
        return 0;
    }
    XxHash64::oneshot(0, names.concat().as_bytes()).max(1)
}

/// The hash by which filters know an id.
pub(crate) fn id_hash(id: &str) -> u64 {
    XxHash64::oneshot(0, id.as_bytes())
}

/// The rows of a summary of so many bytes; `None` if no summary has as many.
pub(crate) fn rows_for_bytes(bytes: u64) -> Option<usize> {
    let bytes = usize::try_from(bytes).ok()?;
    let rows = bytes / ROW_BYTES;
    let is_whole = bytes % ROW_BYTES == 0;
    (is_whole && rows.is_power_of_two() && (ROWS_MIN..=ROWS_MAX).contains(&rows)).then_some(rows)
}

/// The row that says whether an id may be there, in a summary of so many rows.
pub(crate) fn row_for_hash(hash: u64, rows: usize) -> usize {
    let rows = u64::try_from(rows).unwrap_or(u64::MAX);
    usize::try_from(((hash >> 32) * rows) >> 32).unwrap_or_default()
}

/// A row of a summary, whose checksum holds.
#[derive(Debug)]
pub(crate) struct SummaryRow(Bytes);

impl SummaryRow {
    /// A row of a day's summary. `None` if it is damaged, of another day, or of another form.
    pub(crate) fn parse(bytes: Bytes, day: LogDay) -> Option<Self> {
        let is_valid =
            bytes.len() == ROW_BYTES && bytes[CHECKSUM_AT..] == row_checksum(&bytes, day);
        is_valid.then_some(Self(bytes))
    }

    /// Whether the row has this place, in a summary of so many rows.
    pub(crate) fn is_at(&self, row: usize, rows: usize) -> bool {
        self.0[PLACE_AT..CHECKSUM_AT] == encoded_place(row, rows)
    }

    /// The digest of the files of which the filter of an hour was made; 0 if it has none.
    pub(crate) fn hour_digest(&self, hour: LogHour) -> u64 {
        read_u64(&self.0, LogDay::hour_index(hour) * DIGEST_BYTES)
    }

    /// Whether the hour may have an id. `false` is sure where the hour has the files of
    /// [`Self::hour_digest`].
    pub(crate) fn may_have(&self, hour: LogHour, hash: u64) -> bool {
        let at = block_at(LogDay::hour_index(hour));
        let block = &self.0[at..at + BLOCK_BYTES];
        let (words, _) = block.as_chunks::<4>();
        words
            .iter()
            .zip(block_bits(hash))
            .all(|(word, bit)| u32::from_le_bytes(*word) & bit != 0)
    }
}

/// The summary of a day, whole, as it is made.
#[derive(Debug)]
pub struct DaySummary {
    day: LogDay,
    table: Vec<u8>,
}

impl DaySummary {
    /// A summary in which no hour has a filter.
    pub fn new(day: LogDay) -> Self {
        Self {
            day,
            table: vec![0; ROWS_MIN * ROW_BYTES],
        }
    }

    /// Reads a summary. `None` if a part of it is damaged, or of another form.
    pub fn parse(day: LogDay, bytes: &Bytes) -> Option<Self> {
        let rows = rows_for_bytes(u64::try_from(bytes.len()).ok()?)?;
        let is_whole = (0..rows).all(|row| {
            let bytes = bytes.slice(row * ROW_BYTES..(row + 1) * ROW_BYTES);
            SummaryRow::parse(bytes, day).is_some_and(|parsed| parsed.is_at(row, rows))
        });
        is_whole.then(|| Self {
            day,
            table: bytes.to_vec(),
        })
    }

    /// The digest of the files of which the filter of an hour was made; 0 if it has none.
    pub fn hour_digest(&self, hour: LogHour) -> u64 {
        read_u64(&self.table, LogDay::hour_index(hour) * DIGEST_BYTES)
    }

    /// Sets the filter of an hour, which was made of files with this digest. Without ids it says
    /// "maybe" of every one.
    pub fn set_hour(&mut self, hour: LogHour, files: u64, ids: Option<&[u64]>) {
        let ids = ids.filter(|ids| ids.len() <= IDS_MAX);
        let blocks = ids.map_or(0, |ids| ids.len().div_ceil(IDS_PER_BLOCK_MAX));
        while self.row_count() < blocks.next_power_of_two() {
            self.double_rows();
        }
        let place = LogDay::hour_index(hour);
        let empty = if ids.is_some() { 0 } else { u8::MAX };
        for row in self.table.chunks_exact_mut(ROW_BYTES) {
            let at = place * DIGEST_BYTES;
            row[at..at + DIGEST_BYTES].copy_from_slice(&files.to_le_bytes());
            row[block_at(place)..][..BLOCK_BYTES].fill(empty);
        }
        for id in ids.unwrap_or_default() {
            self.insert_id(place, *id);
        }
    }

    /// The bytes.
    pub fn render(mut self) -> Bytes {
        let rows = self.row_count();
        for (row, bytes) in self.table.chunks_exact_mut(ROW_BYTES).enumerate() {
            bytes[PLACE_AT..CHECKSUM_AT].copy_from_slice(&encoded_place(row, rows));
            let sum = row_checksum(bytes, self.day);
            bytes[CHECKSUM_AT..].copy_from_slice(&sum);
        }
        Bytes::from(self.table)
    }

    fn row_count(&self) -> usize {
        self.table.len() / ROW_BYTES
    }

    /// Doubles the rows. Each row becomes two with the same content.
    fn double_rows(&mut self) {
        let rows = self.table.chunks_exact(ROW_BYTES);
        self.table = rows.flat_map(|row| [row, row]).flatten().copied().collect();
    }

    fn insert_id(&mut self, place: usize, hash: u64) {
        let at = row_for_hash(hash, self.row_count()) * ROW_BYTES + block_at(place);
        let (words, _) = self.table[at..at + BLOCK_BYTES].as_chunks_mut::<4>();
        for (word, bit) in words.iter_mut().zip(block_bits(hash)) {
            *word = (u32::from_le_bytes(*word) | bit).to_le_bytes();
        }
    }
}

/// The bit of each word of a block that an id sets.
fn block_bits(hash: u64) -> [u32; WORDS] {
    let low = u32::try_from(hash & u64::from(u32::MAX)).unwrap_or_default();
    SALT.map(|salt| 1 << (low.wrapping_mul(salt) >> 27))
}

/// The place of an hour's block in a row.
const fn block_at(place: usize) -> usize {
    BLOCKS_AT + place * BLOCK_BYTES
}

/// The place of a row, as the row says it.
fn encoded_place(row: usize, rows: usize) -> [u8; 8] {
    let [row, rows] = [row, rows].map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    (u64::from(rows) << 32 | u64::from(row)).to_le_bytes()
}

fn row_checksum(row: &[u8], day: LogDay) -> [u8; 8] {
    let mut summed = row[..CHECKSUM_AT].to_vec();
    summed.extend(day.since_epoch().to_le_bytes());
    XxHash64::oneshot(CHECKSUM_SEED, &summed).to_le_bytes()
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    let number = bytes
        .get(at..at + DIGEST_BYTES)
        .and_then(|it| it.try_into().ok());
    number.map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
