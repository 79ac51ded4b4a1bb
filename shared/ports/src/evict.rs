//! Caches that can free memory.

use std::iter::Sum;

/// A cache of things that are kept only because they are likely to be used again.
///
/// Both calls return soon and wait for nothing. An entry that is dropped is made again when it is
/// needed. An entry that cannot be made again, or is in use at the moment, is kept.
pub trait EvictableCache: Send + Sync {
    /// Frees memory.
    fn trim(&self) -> EvictedAmount;

    /// Forgets resolved names, and returns how many. A cache without names returns 0.
    fn flush_dns(&self) -> usize {
        0
    }
}

/// The amount that was freed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EvictedAmount {
    /// The number of things that were forgotten or closed.
    pub entries: usize,
    /// The bytes that they are known to have held; never a guess, and so less than what the
    /// allocator got back.
    pub bytes: usize,
}

impl Sum for EvictedAmount {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, freed| Self {
            entries: sum.entries + freed.entries,
            bytes: sum.bytes + freed.bytes,
        })
    }
}
