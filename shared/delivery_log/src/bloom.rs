//! Bloom filters, of which one block of 32 bytes is read. The whole filter of a row group is 128
//! KB.

use std::ops::Range;

use parquet::bloom_filter::Sbbf;
use parquet::file::metadata::ColumnChunkMetaData;
use twox_hash::XxHash64;

/// Bytes of a block: all bits of a value lie in one.
const BLOCK_BYTES: u64 = 32;

/// The place of the block that a value would be in. `None` if the column has no filter, or one that
/// this program did not write: a filter is its header, which is shorter than a block, and whole
/// blocks.
pub(crate) fn block_range(chunk: &ColumnChunkMetaData, value: &str) -> Option<Range<u64>> {
    let offset = u64::try_from(chunk.bloom_filter_offset()?).ok()?;
    let length = u64::try_from(chunk.bloom_filter_length()?).ok()?;
    let blocks = length / BLOCK_BYTES;
    let header = length % BLOCK_BYTES;
    if blocks == 0 || header == 0 {
        return None;
    }
    let hash = XxHash64::oneshot(0, value.as_bytes());
    let block = ((hash >> 32) * blocks) >> 32;
    let start = offset
        .checked_add(header)?
        .checked_add(block * BLOCK_BYTES)?;
    Some(start..start.checked_add(BLOCK_BYTES)?)
}

/// Whether a value may be in the column whose block this is. `false` is sure.
pub(crate) fn may_contain(block: &[u8], value: &str) -> bool {
    // A filter of one block looks nowhere else.
    block.len() as u64 != BLOCK_BYTES || Sbbf::new(block).check(value)
}
