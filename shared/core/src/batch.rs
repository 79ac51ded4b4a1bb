//! Packing: which events travel together, in a request and in a message. It never waits to fill a batch.

use std::ops::Range;

use crate::limits::{
    ENTRY_OVERHEAD_BYTES, ENVELOPE_BYTES_RESERVED, PREFERRED_BATCH_KILOBYTES_DEFAULT, SQS_MESSAGE_BYTES_MAX,
    UNBATCHED_EVENTS_PER_MESSAGE_MAX, UNBATCHED_MESSAGE_BYTES_PREFERRED,
};

/// A subscription's batching: how many events and bytes one request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batching {
    /// Whether the subscription asked for batches at all. Without, a request carries one event.
    pub enabled: bool,
    /// Most events in one request, 1..=5000. Never exceeded.
    pub events_max: usize,
    /// Preferred bytes of one request; exceeded only by an event that is larger by itself.
    pub bytes_preferred: usize,
}

/// How much fits together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pack {
    /// Most items.
    pub items_max: usize,
    /// Most bytes, exceeded only by a single item.
    pub bytes_preferred: usize,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            enabled: false,
            events_max: 1,
            bytes_preferred: PREFERRED_BATCH_KILOBYTES_DEFAULT as usize * 1024,
        }
    }
}

impl Batching {
    /// How events are packed into one request. The two bytes are the brackets of the array.
    pub fn request(self) -> Pack {
        if !self.enabled {
            return Pack { items_max: 1, bytes_preferred: 0 };
        }
        Pack { items_max: self.events_max, bytes_preferred: self.bytes_preferred.saturating_sub(2) }
    }

    /// How events are packed into one delivery message: up to the subscription's batch, never past SQS's limit;
    /// without batching as many as SQS bills as one request.
    pub fn message(self) -> Pack {
        let limit = SQS_MESSAGE_BYTES_MAX - ENVELOPE_BYTES_RESERVED;
        if !self.enabled {
            return Pack {
                items_max: UNBATCHED_EVENTS_PER_MESSAGE_MAX,
                bytes_preferred: UNBATCHED_MESSAGE_BYTES_PREFERRED - ENVELOPE_BYTES_RESERVED,
            };
        }
        let bytes_preferred = self.bytes_preferred + self.events_max * ENTRY_OVERHEAD_BYTES;
        Pack { items_max: self.events_max, bytes_preferred: bytes_preferred.min(limit) }
    }
}

impl Pack {
    /// Cuts items of these sizes, in order, into runs that travel together. Every run has an item; together they
    /// cover all. One byte is counted between two items, for the comma.
    pub fn cut(self, sizes: impl IntoIterator<Item = usize>) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        let (mut start, mut end, mut bytes) = (0, 0, 0_usize);
        for size in sizes {
            let joined = bytes.saturating_add(size).saturating_add(1);
            if end > start && (end - start >= self.items_max || joined > self.bytes_preferred) {
                runs.push(start..end);
                start = end;
            }
            bytes = if end == start { size } else { joined };
            end += 1;
        }
        if end > start {
            runs.push(start..end);
        }
        runs
    }
}

/// Whether a batch that brought this status is split in halves instead of being judged whole: only its offender
/// shall be dead-lettered.
pub fn splits(status: Option<u16>, events: usize) -> bool {
    events > 1 && matches!(status, Some(400 | 413))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_batching_each_event_is_a_request_of_its_own() {
        assert_eq!(Batching::default().request().cut([5, 5, 5]), vec![0..1, 1..2, 2..3]);
    }

    #[test]
    fn an_event_larger_than_the_preferred_size_travels_alone() {
        let batching = Batching { enabled: true, events_max: 100, bytes_preferred: 4096 };
        assert_eq!(batching.request().cut([1000, 10_240, 1000, 1000]), vec![0..1, 1..2, 2..4]);
    }

    #[test]
    fn the_comma_and_the_brackets_count() {
        let batching = Batching { enabled: true, events_max: 100, bytes_preferred: 9 };
        assert_eq!(batching.request().cut([3, 3]), vec![0..2]);
        assert_eq!(batching.request().cut([3, 4]), vec![0..1, 1..2]);
    }

    #[test]
    fn no_events_make_no_request() {
        assert_eq!(Batching::default().request().cut([]), Vec::<Range<usize>>::new());
    }

    #[test]
    fn only_a_batch_refused_for_its_content_is_split() {
        assert!(splits(Some(400), 2) && splits(Some(413), 2));
        assert!(!splits(Some(400), 1) && !splits(Some(500), 2) && !splits(None, 2));
    }

    proptest! {
        #[test]
        fn every_item_is_in_one_run_and_no_run_breaks_a_limit(
            sizes in prop::collection::vec(0_usize..200, 0..60),
            items_max in 1_usize..10,
            bytes_preferred in 0_usize..400,
        ) {
            let runs = Pack { items_max, bytes_preferred }.cut(sizes.iter().copied());
            prop_assert_eq!(runs.iter().cloned().flatten().collect::<Vec<_>>(), (0..sizes.len()).collect::<Vec<_>>());
            for run in runs {
                let bytes = sizes[run.clone()].iter().sum::<usize>() + run.len() - 1;
                prop_assert!(run.len() <= items_max);
                prop_assert!(run.len() == 1 || bytes <= bytes_preferred);
            }
        }
    }
}
