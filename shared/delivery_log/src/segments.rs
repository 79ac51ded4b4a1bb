//! Ranges of a file that were read, as a file to the Parquet reader.

use std::ops::Range;

use bytes::buf::Reader;
use bytes::{Buf, Bytes};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};

use crate::error::broken;

/// Greatest gap between two ranges that are read as one, in bytes: a read costs about as much time as that
/// many bytes more of it.
const GAP_MAX: u64 = 64 * 1024;

/// Parts of a file, in order and apart. Bytes between them are an error.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    parts: Vec<(u64, Bytes)>,
    len: u64,
}

impl Segments {
    pub(crate) fn new(mut parts: Vec<(u64, Bytes)>, len: u64) -> Self {
        parts.sort_by_key(|(start, _)| *start);
        Self { parts, len }
    }

    /// The bytes from `start` to the end of their part.
    fn from(&self, start: u64) -> Result<Bytes, ParquetError> {
        let behind = self.parts.partition_point(|(part, _)| *part <= start);
        let found = behind.checked_sub(1).map(|index| &self.parts[index]);
        let inside = found.and_then(|(part, bytes)| {
            let skip = usize::try_from(start - part).ok()?;
            (skip <= bytes.len()).then(|| bytes.slice(skip..))
        });
        inside.ok_or_else(|| broken("bytes are asked for that are not in their place"))
    }
}

impl Length for Segments {
    fn len(&self) -> u64 {
        self.len
    }
}

impl ChunkReader for Segments {
    type T = Reader<Bytes>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(self.from(start)?.reader())
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        let bytes = self.from(start)?;
        if length > bytes.len() {
            return Err(broken("bytes are asked for that are not in their place"));
        }
        Ok(bytes.slice(..length))
    }
}

/// Joins ranges that overlap or lie near each other.
pub(crate) fn coalesce(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges.into_iter().filter(|range| range.start < range.end) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end.saturating_add(GAP_MAX) => {
                last.end = last.end.max(range.end);
            }
            _ => joined.push(range),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_read_as_one() {
        let far = GAP_MAX + 100;
        let ranges = vec![far + 5..far + 9, 50..99, 0..10, 5..7, 20..20];
        assert_eq!(coalesce(ranges), [0..99, far + 5..far + 9]);
        let at_the_limit = vec![0..1, 1 + GAP_MAX..2 + GAP_MAX, 5 * GAP_MAX..5 * GAP_MAX + 1];
        assert_eq!(coalesce(at_the_limit), [0..2 + GAP_MAX, 5 * GAP_MAX..5 * GAP_MAX + 1]);
        assert_eq!(coalesce(Vec::new()), []);
    }

    #[test]
    fn only_bytes_that_were_read_are_there() {
        let part = |at, text: &'static str| (at, Bytes::from_static(text.as_bytes()));
        let segments = Segments::new(vec![part(20, "defg"), part(10, "abc")], 100);
        let bytes = |start, len| segments.get_bytes(start, len).ok();
        assert_eq!(bytes(10, 3).unwrap(), "abc");
        assert_eq!(bytes(21, 2).unwrap(), "ef");
        for (start, len) in [(0, 1), (9, 2), (11, 3), (13, 1), (15, 1), (24, 1), (u64::MAX, 1)] {
            assert_eq!(bytes(start, len), None, "{start} {len}");
        }
        assert_eq!(segments.len(), 100);
    }
}
