//! Caches that give memory back.

use std::iter::Sum;

/// Something that is kept only because it is likely to be wanted again.
///
/// Both calls return soon and wait for nothing. An entry that is dropped is made again when it is
/// needed. An entry that cannot be made again, or is in use at the moment, is kept.
pub trait EvictableCache: Send + Sync {
    /// Gives memory back.
    fn trim(&self) -> EvictedAmount;

    /// Forgets resolved names, and answers how many. A cache that has none forgets none.
    fn flush_dns(&self) -> usize {
        0
    }
}

/// The amount that was given back.
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
