//! Ranges of a file that were read, as a file to the Parquet reader.

use std::ops::Range;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::broken_bytes;

/// Greatest gap between two ranges that are read as one, in bytes: a read costs about as much time
/// as that many bytes more of it.
const GAP_MAX: u64 = 64 * 1024;

/// Longest range that is read at once, in bytes. AWS refuses a longer response than 32 MiB, and a
/// query holds several at a time.
pub(crate) const READ_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Parts of a file, in order and apart. Bytes between them are an error.
#[derive(Debug, Default)]
pub(crate) struct FileSegments {
    parts: Vec<(u64, Bytes)>,
    len: u64,
}

impl FileSegments {
    pub(crate) fn new(mut parts: Vec<(u64, Bytes)>, len: u64) -> Self {
        parts.sort_by_key(|(start, _)| *start);
        Self { parts, len }
    }

    /// The bytes from `start` to the end of their part.
    fn bytes_from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let behind = self.parts.partition_point(|(part, _)| *part <= start);
        let found = behind.checked_sub(1).map(|index| &self.parts[index]);
        let inside = found.and_then(|(part, bytes)| {
            let skip = usize::try_from(start - part).ok()?;
            (skip <= bytes.len()).then(|| bytes.slice(skip..))
        });
        inside.ok_or_else(|| broken_bytes("bytes are asked for that are not in their place"))
    }
}

impl Length for FileSegments {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for FileSegments {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.bytes_from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.bytes_from(start)?;
        if length > bytes.len() {
            return Err(broken_bytes(
                "bytes are asked for that are not in their place",
            ));
        }
        Ok(bytes.slice(..length))
    }
}

/// Joins ranges that overlap or lie near each other, up to [`READ_BYTES_MAX`]. Those that overlap
/// are joined in any case, so that a part has all bytes of each.
pub(crate) fn coalesce_ranges(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.into_iter().filter(|range| range.start < range.end) {
        match joined.last_mut() {
            Some(last) if is_joined(last, &range) => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

fn is_joined(last: &Range<u64>, next: &Range<u64>) -> bool {
    let is_near = next.start <= last.end.saturating_add(GAP_MAX);
    next.start < last.end || (is_near && next.end.saturating_sub(last.start) <= READ_BYTES_MAX)
}

/// A range in pieces that are read at once.
pub(crate) fn range_pieces(range: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let mut start = range.start;
    std::iter::from_fn(move || {
        let piece = start..range.end.min(start.saturating_add(READ_BYTES_MAX));
        start = piece.end;
        (piece.start < piece.end).then_some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_read_as_one() {
        let far = GAP_MAX + 100;
        let ranges = vec![far + 5..far + 9, 50..99, 0..10, 5..7, 20..20];
        assert_eq!(coalesce_ranges(ranges), [0..99, far + 5..far + 9]);
        let at_the_limit = vec![0..1, 1 + GAP_MAX..2 + GAP_MAX, 5 * GAP_MAX..5 * GAP_MAX + 1];
        assert_eq!(
            coalesce_ranges(at_the_limit),
            [0..2 + GAP_MAX, 5 * GAP_MAX..5 * GAP_MAX + 1]
        );
        assert_eq!(coalesce_ranges(Vec::new()), []);
    }

    /// Ranges are joined and cut so that each read stays within its bound.
    #[test]
    fn read_size_is_bounded() {
        let half = READ_BYTES_MAX / 2;
        let most = READ_BYTES_MAX;
        let one = |range| std::iter::once(range).collect::<Vec<_>>();
        assert_eq!(coalesce_ranges(vec![0..half, half..most]), one(0..most));
        assert_eq!(
            coalesce_ranges(vec![0..half, half..most + 1]),
            [0..half, half..most + 1]
        );
        let overlapping = vec![0..most, most - 1..most + 1];
        assert_eq!(
            coalesce_ranges(overlapping),
            one(0..most + 1),
            "a part has all of a range"
        );
        let all = |range| range_pieces(range).collect::<Vec<_>>();
        assert_eq!(all(7..most + 7), one(7..most + 7));
        assert_eq!(
            all(7..2 * most + 8),
            [
                7..most + 7,
                most + 7..2 * most + 7,
                2 * most + 7..2 * most + 8
            ]
        );
        assert_eq!(all(7..7), []);
    }

    #[test]
    fn only_bytes_that_were_read_are_there() {
        let part = |at, text: &'static str| (at, Bytes::from_static(text.as_bytes()));
        let segments = FileSegments::new(vec![part(20, "defg"), part(10, "abc")], 100);
        let bytes = |start, len| segments.get_bytes(start, len).ok();
        assert_eq!(bytes(10, 3).unwrap(), "abc");
        assert_eq!(bytes(21, 2).unwrap(), "ef");
        for (start, len) in [
            (0, 1),
            (9, 2),
            (11, 3),
            (13, 1),
            (15, 1),
            (24, 1),
            (u64::MAX, 1),
        ] {
            assert_eq!(bytes(start, len), None, "{start} {len}");
        }
        assert_eq!(segments.len(), 100);
    }
}
