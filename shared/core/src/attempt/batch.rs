//! Packing: which events travel together, in a request and in a message. It never waits to fill a
//! batch.

mod split;

use std::ops::Range;

use crate::model::{
    BatchPolicy, ENTRY_OVERHEAD_BYTES, ENVELOPE_BYTES_RESERVED, EventEnvelope, EventPayload,
    SQS_MESSAGE_BYTES_MAX, UNBATCHED_EVENTS_PER_MESSAGE_MAX, UNBATCHED_MESSAGE_BYTES_PREFERRED,
};
pub use split::{
    BatchAnswer, SINGLES_REFUSED_ALIKE_MAX, SplitDecision, SplitProgress, events_of_next_request,
    requests_left,
};

/// Bytes that the member's name takes which holds an event's envelope in a message.
const ENVELOPE_MEMBER_BYTES: usize = r#","envelope":"#.len();

/// The size of one event in a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSize {
    /// Bytes in a request.
    pub request: usize,
    /// Bytes in a message, the entry around it included.
    pub message: usize,
}

/// The size of what fits together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackingLimits {
    /// Most items.
    pub items_max: usize,
    /// Most bytes, exceeded only by a single item.
    pub bytes_preferred: usize,
}

impl BatchPolicy {
    /// The packing of events into one request. The two bytes are the brackets of the array.
    pub fn request_limits(self) -> PackingLimits {
        if !self.enabled {
            return PackingLimits {
                items_max: 1,
                bytes_preferred: 0,
            };
        }
        PackingLimits {
            items_max: self.events_max,
            bytes_preferred: self.bytes_preferred.saturating_sub(2),
        }
    }

    /// Cuts events, in order, into the runs that share a delivery message: up to the subscription's
    /// batch, never past SQS's limit; without batching as many as SQS bills as one request.
    pub fn cut_into_messages(self, events: &[EventSize]) -> Vec<Range<usize>> {
        if !self.enabled {
            let pack = PackingLimits {
                items_max: UNBATCHED_EVENTS_PER_MESSAGE_MAX,
                bytes_preferred: UNBATCHED_MESSAGE_BYTES_PREFERRED - ENVELOPE_BYTES_RESERVED,
            };
            return pack.cut_into_runs(events.iter().map(|event| event.message));
        }
        let limit = PackingLimits {
            items_max: self.events_max,
            bytes_preferred: SQS_MESSAGE_BYTES_MAX - ENVELOPE_BYTES_RESERVED,
        };
        let batches = self
            .request_limits()
            .cut_into_runs(events.iter().map(|event| event.request));
        let mut messages = Vec::with_capacity(batches.len());
        for batch in batches {
            let sizes = events[batch.clone()].iter().map(|event| event.message);
            for part in limit.cut_into_runs(sizes) {
                messages.push(batch.start + part.start..batch.start + part.end);
            }
        }
        messages
    }
}

impl EventSize {
    /// The size of an event with what lies around it.
    pub fn measure(payload: &EventPayload, envelope: Option<&EventEnvelope>) -> Self {
        let envelope = envelope.map_or(0, |envelope| envelope.byte_len() + ENVELOPE_MEMBER_BYTES);
        Self {
            request: payload.len(),
            message: payload.message_bytes() + envelope + ENTRY_OVERHEAD_BYTES,
        }
    }
}

impl PackingLimits {
    /// Cuts items of these sizes, in order, into runs that travel together. Every run has an item;
    /// together they cover all. One byte is counted between two items, for the comma.
    pub fn cut_into_runs(self, sizes: impl IntoIterator<Item = usize>) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        let mut start = 0;
        let mut end = 0;
        let mut bytes = 0_usize;
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_batching_each_event_is_a_request_of_its_own() {
        assert_eq!(
            BatchPolicy::default()
                .request_limits()
                .cut_into_runs([5, 5, 5]),
            vec![0..1, 1..2, 2..3]
        );
    }

    #[test]
    fn an_event_larger_than_the_preferred_size_travels_alone() {
        let batching = BatchPolicy {
            enabled: true,
            events_max: 100,
            bytes_preferred: 4096,
            ..BatchPolicy::default()
        };
        assert_eq!(
            batching
                .request_limits()
                .cut_into_runs([1000, 10_240, 1000, 1000]),
            vec![0..1, 1..2, 2..4]
        );
    }

    #[test]
    fn the_comma_and_the_brackets_count() {
        let batching = BatchPolicy {
            enabled: true,
            events_max: 100,
            bytes_preferred: 9,
            ..BatchPolicy::default()
        };
        assert_eq!(batching.request_limits().cut_into_runs([3, 3]), vec![0..2]);
        assert_eq!(
            batching.request_limits().cut_into_runs([3, 4]),
            vec![0..1, 1..2]
        );
    }

    #[test]
    fn a_message_holds_no_more_than_the_subscription_s_batch() {
        let size = EventSize::measure(
            &EventPayload::Inline(bytes::Bytes::from(vec![b'x'; 1000])),
            None,
        );
        let batching = BatchPolicy {
            enabled: true,
            events_max: 5000,
            bytes_preferred: 4096,
            ..BatchPolicy::default()
        };
        assert_eq!(
            batching.cut_into_messages(&[size; 10]),
            vec![0..4, 4..8, 8..10]
        );
        assert_eq!(
            BatchPolicy::default().cut_into_messages(&[size; 25]),
            vec![0..10, 10..20, 20..25]
        );
    }

    #[test]
    fn a_message_never_breaks_the_limit_of_sqs() {
        let size = EventSize::measure(
            &EventPayload::Inline(bytes::Bytes::from_static(b"{}")),
            None,
        );
        let batching = BatchPolicy {
            enabled: true,
            events_max: 5000,
            bytes_preferred: 1 << 20,
            ..BatchPolicy::default()
        };
        let in_message =
            |run: &Range<usize>| run.len() * (2 + ENTRY_OVERHEAD_BYTES) + ENVELOPE_BYTES_RESERVED;
        let runs = batching.cut_into_messages(&vec![size; 20_000]);
        assert!(
            runs.iter()
                .all(|run| in_message(run) <= SQS_MESSAGE_BYTES_MAX && run.len() <= 5000)
        );
        assert_eq!(runs.iter().map(Range::len).sum::<usize>(), 20_000);
    }

    #[test]
    fn empty_batch_makes_no_request() {
        assert_eq!(
            BatchPolicy::default().request_limits().cut_into_runs([]),
            Vec::<Range<usize>>::new()
        );
    }

    proptest! {
        #[test]
        fn every_item_is_in_one_run_and_no_run_breaks_a_limit(
            sizes in prop::collection::vec(0_usize..200, 0..60),
            items_max in 1_usize..10,
            bytes_preferred in 0_usize..400,
        ) {
            let runs = PackingLimits { items_max, bytes_preferred }.cut_into_runs(sizes.iter().copied());
            let items: Vec<_> = runs.iter().cloned().flatten().collect();
            prop_assert_eq!(items, (0..sizes.len()).collect::<Vec<_>>());
            for run in runs {
                let bytes = sizes[run.clone()].iter().sum::<usize>() + run.len() - 1;
                prop_assert!(run.len() <= items_max);
                prop_assert!(run.len() == 1 || bytes <= bytes_preferred);
            }
        }
    }
}
