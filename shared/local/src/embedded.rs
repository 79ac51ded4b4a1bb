//! The embedded durable queues and state objects: one data folder, one engine (redb), one commit
//! thread.
//!
//! Work whose result is `Ok` was fsynced. Everything else about a message (visible, in flight, how
//! often received) lives in memory and is rebuilt on open: a restart ends every visibility timeout
//! and restarts the receive counts, while delays continue.

mod bodies;
mod check;
mod closings;
mod commit;
mod damage;
mod disk;
mod engine;
mod failure;
mod gauges;
mod inbox;
mod index;
mod live;
mod lock;
mod open_files;
mod opening;
mod options;
mod queue;
mod queue_state;
mod rebuild;
mod record;
mod row;
mod scan;
mod shared;
mod snapshot;
mod stopped;
mod store;
mod tables;
mod unwritten;
mod versions;
mod waiting_objects;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_ports::{
    Clock, Entropy, ErrorKind, EvictableCache, EvictedAmount, PortError, QueueName,
};
use tokio::task::spawn_blocking;

use bodies::BodyCache;
pub use check::{CheckReport, check_folder};
use commit::CommitThread;
pub use disk::{ENGINE_FILE, make_folder};
use disk::{EngineDisk, FolderDisk};
use engine::StoreEngine;
use failure::EngineError;
pub use failure::OpenError;
use gauges::CallCounters;
pub use gauges::WaitingCalls;
use inbox::CommitInbox;
pub use inbox::SHARING_DELAY;
use index::ArrivingMessage;
use lock::FolderLock;
pub use open_files::{OpenStoreFiles, PlacedFile};
pub use opening::OpeningReport;
pub use options::LocalOptions;
pub use queue::LocalQueue;
use queue_state::QueueState;
pub use rebuild::{RebuildError, rebuild_database};
use record::QUEUES;
pub use row::CopyCounts;
use shared::{SharedStore, StoreHandle, now_of};
pub use snapshot::{Snapshot, SnapshotError};
pub use store::StateStore;
use versions::KnownVersions;
use waiting_objects::WaitingObjects;

use crate::private;

/// The embedded store of one data folder. Clones, queues and the state store share it.
///
/// Calls need a tokio runtime. When the last clone is dropped, waiting work is still written in the
/// background; [`close`](Self::close) waits for that.
#[derive(Debug, Clone)]
pub struct EmbeddedStore<C> {
    handle: Arc<StoreHandle>,
    clock: C,
    /// `None` over a disk of a test.
    place: Option<Arc<OpenStoreFiles>>,
    opening: Arc<OpeningReport>,
}

impl<C: Clock> EmbeddedStore<C> {
    /// Opens the data folder, makes it if it is missing, and takes its lock. `entropy` names a new
    /// folder, so that message ids differ between folders.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "options and entropy are built for this one call"
    )]
    pub fn open(
        dir: &Path,
        options: LocalOptions,
        clock: C,
        entropy: impl Entropy,
    ) -> Result<Self, OpenError> {
        make_folder(dir)
            .and_then(|()| private::narrow_mode(dir))
            .map_err(|source| OpenError::for_folder(dir, source))?;
        let mut lock = FolderLock::take_folder(dir)?;
        let disk = FolderDisk::new(dir);
        let has_engine_file = disk.has_engine_file();
        if !has_engine_file.map_err(|source| OpenError::for_folder(dir, source))? {
            StoreEngine::create_file(&disk, new_folder_id(&entropy))
                .map_err(|source| OpenError::for_engine(dir, source))?;
        }
        let place = lock.take_engine(dir)?;
        disk.keep_to(place.engine.identity());
        let local = Self::open_disk(Box::new(disk), lock, &options, clock, &entropy)
            .map_err(|source| OpenError::for_engine(dir, source))?;
        Ok(Self {
            place: Some(Arc::new(place)),
            ..local
        })
    }

    /// Opens a store over any disk: the seam for tests.
    fn open_disk(
        disk: Box<dyn EngineDisk>,
        lock: FolderLock,
        options: &LocalOptions,
        clock: C,
        entropy: &impl Entropy,
    ) -> Result<Self, EngineError> {
        let (engine, begin) =
            StoreEngine::open(disk, options.engine_cache_bytes, new_folder_id(entropy))?;
        let queues = QUEUES.map(|name| QueueState::new(name, options));
        let now = clock.now();
        let mut opening = OpeningReport::default();
        let waiting_objects = WaitingObjects::default();
        let (live, last_object) = engine.read(|transaction| {
            scan::visit_all(
                transaction,
                begin.first_sequence,
                |sequence, found, bytes| {
                    let Some((header, body)) = found else {
                        damage::set_aside(&queues, sequence, now);
                        return;
                    };
                    opening.note_message(sequence, &header, now, options.deliveries_in_flight_max);
                    let arrived = ArrivingMessage {
                        sequence,
                        group: header.group,
                        due: header.due,
                        bytes,
                        carried: record::carried_events(header.queue, body, header.sent_at),
                    };
                    let queue = &queues[usize::from(record::number_of(header.queue))];
                    queue.index.lock().insert(arrived, now);
                },
                |key| waiting_objects.add(key),
            )
        })?;
        opening.written_until = opening.written_until.max(last_object);
        let time = clock.clone();
        let shared = Arc::new(SharedStore {
            engine,
            folder_id: begin.folder_id,
            // Receipts name the opening they come from: receive counts start again with each.
            opening: begin.first_sequence >> tables::SEQUENCES_PER_OPENING_BITS,
            inbox: CommitInbox::new(),
            queues,
            bodies: Mutex::new(BodyCache::new(options.body_cache_bytes)),
            versions: KnownVersions::default(),
            waiting_objects,
            counters: Arc::new(CallCounters::new(options.batch_points)),
            now: Box::new(move || now_of(&time)),
            disk_reserve_bytes: options.disk_reserve_bytes,
            records_reserve_bytes: options.records_reserve_bytes,
            records_bytes_max: options.records_bytes_max,
        });
        let ended = CommitThread::spawn(shared.clone(), begin, live, lock)?;
        Ok(Self {
            handle: Arc::new(StoreHandle { shared, ended }),
            clock,
            place: None,
            opening: Arc::new(opening),
        })
    }

    /// One of the queues.
    pub fn queue(&self, name: QueueName) -> LocalQueue<C> {
        LocalQueue {
            handle: self.handle.clone(),
            clock: self.clock.clone(),
            name,
        }
    }

    /// The state objects.
    pub fn state_store(&self) -> StateStore {
        StateStore {
            handle: self.handle.clone(),
        }
    }

    /// The files that are kept open, and their paths.
    pub fn open_files(&self) -> Option<&Arc<OpenStoreFiles>> {
        self.place.as_ref()
    }

    /// Returns the report on what the data folder held when it was opened.
    pub fn opening_report(&self) -> &OpeningReport {
        &self.opening
    }

    /// The sum of `count` over the bodies of the deliveries that were due at the opening: of the
    /// first ones, as many as can be in flight at once.
    pub async fn sum_over_due(
        &self,
        count: impl Fn(&Bytes) -> u64 + Send + 'static,
    ) -> Result<u64, PortError> {
        const DOING: &str = "read the deliveries of before";
        let shared = self.handle.shared.clone();
        let opening = self.opening.clone();
        let sum = spawn_blocking(move || opening.sum_over_due(&shared.engine, count)).await;
        sum.map_err(|error| PortError::with_cause(DOING, ErrorKind::Other, error))?
            .map_err(|error| PortError::with_cause(DOING, error.kind(), error))
    }

    /// Takes a snapshot of the database as it is now: everything that was acknowledged before is in
    /// it. It does not hold up what is written meanwhile. Blocks for a moment.
    ///
    /// # Errors
    ///
    /// The store is closed, or its file cannot be read.
    pub fn snapshot(&self) -> Result<Snapshot, PortError> {
        const DOING: &str = "begin a copy of the database";
        let begun = self.handle.shared.engine.begin_read();
        let (transaction, closings) =
            begun.map_err(|error| PortError::with_cause(DOING, error.kind(), error))?;
        Ok(Snapshot::new(transaction, closings))
    }

    /// The times that it has waited for the disk since it was opened: about one a commit.
    pub fn sync_count(&self) -> u64 {
        self.handle.shared.engine.sync_count()
    }

    /// Measurements for the monitor.
    pub fn waiting_calls(&self) -> WaitingCalls {
        self.handle.shared.counters.read()
    }

    /// Writes waiting work, acknowledgements included, closes the engine and frees the folder.
    /// Later calls to the queues and the state store get errors of kind `Other`.
    pub async fn close(self) {
        self.handle.shared.inbox.close();
        self.wait_until_ended().await;
    }

    /// Completes when the thread that writes has ended: after a close, or by a fault. From then on
    /// every write is refused.
    pub async fn wait_until_ended(&self) {
        // An error means that the sender is gone, and it never sends.
        let _ = self.handle.ended.clone().changed().await;
    }
}

impl<C: Clock> EvictableCache for EmbeddedStore<C> {
    /// Forgets the bodies of recent messages, which are on disk too. The engine's own pages stay:
    /// it bounds them but cannot free them on demand.
    fn trim(&self) -> EvictedAmount {
        // Dropped without the lock, on which every send and receive waits.
        let bodies = self.handle.shared.bodies.lock().take_all();
        bodies.held_totals()
    }
}

fn new_folder_id(entropy: &impl Entropy) -> u64 {
    let mut id = [0; 8];
    entropy.fill(&mut id);
    u64::from_le_bytes(id)
}

#[cfg(test)]
mod tests;
