//! Work that is refused for lack of room, before a transaction begins.

use std::cell::OnceCell;

use posthaste_core::stored::layout;
use posthaste_ports::QueueName;

use crate::embedded::inbox::{CommitJob, CommitWork, NewMessage};
use crate::embedded::live::LiveBytes;
use crate::embedded::shared::SharedStore;

/// The room that work asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoomNeed {
    /// Room for this many bytes of records of the delivery log.
    Records(u64),
    /// Room for messages and payloads that producers publish.
    Send,
    /// Room for the work that empties queues and keeps state. It is never refused.
    Upkeep,
}

impl RoomNeed {
    fn for_work(work: &CommitWork) -> Self {
        match work {
            CommitWork::Messages {
                messages,
                instead_of,
                ..
            } => match (records_bytes(messages), instead_of) {
                // The function record returns messages to the queue that it cannot read.
                (_, Some((QueueName::Records, _))) | (0, Some(_)) => Self::Upkeep,
                (0, None) => Self::Send,
                (records, _) => Self::Records(records),
            },
            CommitWork::Put { key, .. } if is_published(key) => Self::Send,
            CommitWork::Put { .. } | CommitWork::Redrive { .. } | CommitWork::Delete { .. } => {
                Self::Upkeep
            }
        }
    }
}

/// Whether an object is a part of what is published. wake writes the rest of a scheduled object
/// under such a key too, but only after the queue took some of its deliveries.
fn is_published(key: &str) -> bool {
    layout::is_payload(key) || layout::is_scheduled(key)
}

fn records_bytes(messages: &[NewMessage]) -> u64 {
    let records = messages
        .iter()
        .filter(|message| message.to == QueueName::Records);
    records.map(|message| message.body.len() as u64).sum()
}

/// Splits jobs into those that there is room for and those that there is none for: sends that would
/// use the reserve, and records that would use a larger one or exceed their bound. A caller that
/// replaces a message by records too then does it without them.
pub(super) fn split_by_room(
    jobs: Vec<CommitJob>,
    shared: &SharedStore,
    live: LiveBytes,
) -> (Vec<CommitJob>, Vec<CommitJob>) {
    let needs: Vec<RoomNeed> = jobs
        .iter()
        .map(|job| RoomNeed::for_work(&job.work))
        .collect();
    if needs.iter().all(|need| *need == RoomNeed::Upkeep) {
        return (jobs, Vec::new());
    }
    let mut room = FreeRoom::measure(shared, live);
    let mut needs = needs.into_iter();
    jobs.into_iter()
        .partition(|_| needs.next().is_none_or(|need| room.admit(need)))
}

/// The bytes that can still be stored: on the device, and in the file, which keeps the room of what
/// was deleted. Where their number is unknown, the device itself refuses.
struct FreeRoom<'a> {
    shared: &'a SharedStore,
    live: LiveBytes,
    free: u64,
    /// The bytes of records in the store, and of those that were admitted.
    records: u64,
    /// Asked for only where the device alone has too little. Since Linux 6.13 a look at the file
    /// gives its next write a time of its own, and a sync that writes the time as well takes a
    /// quarter longer. <https://docs.kernel.org/filesystems/multigrain-ts.html>
    in_file: OnceCell<u64>,
}

impl<'a> FreeRoom<'a> {
    fn measure(shared: &'a SharedStore, live: LiveBytes) -> Self {
        let free = shared.engine.disk().free_bytes().unwrap_or(u64::MAX);
        Self {
            shared,
            live,
            free,
            records: live.records,
            in_file: OnceCell::new(),
        }
    }

    /// Whether there is room for work. Records that are admitted take their share of the bound.
    fn admit(&mut self, need: RoomNeed) -> bool {
        match need {
            RoomNeed::Upkeep => true,
            RoomNeed::Send => self.is_at_least(self.shared.disk_reserve_bytes),
            RoomNeed::Records(bytes) => {
                let after = self.records.saturating_add(bytes);
                let fits = self.is_at_least(self.shared.records_reserve_bytes)
                    && after <= self.shared.records_bytes_max;
                if fits {
                    self.records = after;
                }
                fits
            }
        }
    }

    fn is_at_least(&self, bytes: u64) -> bool {
        self.free >= bytes || self.free.saturating_add(self.in_file()) >= bytes
    }

    fn in_file(&self) -> u64 {
        /// The engine gives a large value pages in powers of two.
        const PAGES_PER_LIVE_BYTES_MAX: u64 = 2;
        *self.in_file.get_or_init(|| {
            let taken = self.live.all.saturating_mul(PAGES_PER_LIVE_BYTES_MAX);
            let used = self.shared.engine.disk().used_bytes();
            used.unwrap_or(u64::MAX).saturating_sub(taken)
        })
    }
}
