//! The embedded durable queues and state objects: one data folder, one engine (redb), one commit thread.
//!
//! What is answered `Ok` was fsynced. Everything else about a message (visible, in flight, how often received) lives
//! in memory and is rebuilt on open: a restart ends every visibility timeout and starts the receive counts again,
//! while delays go on.

mod bodies;
mod check;
mod commit;
mod damage;
mod disk;
mod engine;
mod failure;
mod gauges;
mod inbox;
mod index;
mod lock;
mod queue;
mod record;
mod scan;
mod store;
mod unwritten;
mod versions;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use posthaste_core::model::limits::{MAX_RECEIVE_COUNT, SQS_IN_FLIGHT_MAX};
use posthaste_core::pressure::BatchPointSettings;
use posthaste_ports::validate::RECEIVE_WAIT_MAX;
use posthaste_ports::{Clock, Entropy, Evict, Evicted, QueueName};
use tokio::sync::{Notify, watch};

use bodies::Bodies;
pub use check::{CheckReport, check};
use commit::Committer;
use disk::{Disk, FolderDisk};
use engine::{Engine, EngineError};
use gauges::Counters;
pub use gauges::Gauges;
use inbox::Inbox;
use index::{Now, QueueIndex};
use lock::FolderLock;
pub use queue::LocalQueue;
pub use store::StateStore;
use versions::Versions;

use crate::private;

/// Names the lock file inside the data folder.
const LOCK_FILE: &str = "lock";

/// Names the engine's file inside the data folder.
const ENGINE_FILE: &str = "posthaste.redb";

/// All queues, in the order of their numbers on disk.
const QUEUES: [QueueName; 3] = [QueueName::Deliveries, QueueName::DeadLetters, QueueName::Redrive];

/// What can be set about the embedded store.
#[derive(Debug, Clone)]
pub struct LocalOptions {
    /// How often a message may be received before it moves to the redrive queue.
    pub max_receive_count: u32,
    /// Most messages of the delivery queue in flight at once. One group never takes the last free ones: it gets
    /// another only while it has fewer in flight than are free.
    pub deliveries_in_flight_max: usize,
    /// Bytes of recently sent bodies kept in memory, so that the healthy path does not read the engine.
    pub body_cache_bytes: usize,
    /// Bytes of pages the engine keeps in memory.
    pub engine_cache_bytes: usize,
    /// Sends are refused as `Full` while less than this is free on the device and in the store's own file. The rest
    /// is kept for what empties the queues: acknowledgements, replacements and state.
    pub disk_reserve_bytes: u64,
    /// How batch points are counted.
    pub batch_points: BatchPointSettings,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            max_receive_count: MAX_RECEIVE_COUNT,
            deliveries_in_flight_max: 1000,
            body_cache_bytes: 64 << 20,
            engine_cache_bytes: 64 << 20,
            disk_reserve_bytes: 32 << 20,
            batch_points: BatchPointSettings::default(),
        }
    }
}

/// Why a data folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder or its lock file cannot be made or opened.
    #[error("the data folder {path} cannot be used")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Another process has the folder open.
    #[error("the data folder {path} is open in another posthaste{}", in_process(*pid))]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The other process, where it could be read from the lock file.
        pid: Option<u32>,
    },
    /// The engine's file cannot be opened or read.
    #[error("the store {} cannot be opened and is left where it is: {advice}", file.display())]
    Engine {
        /// The file.
        file: PathBuf,
        /// What to do.
        advice: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl OpenError {
    fn of(dir: &Path, source: EngineError) -> Self {
        Self::Engine { file: dir.join(ENGINE_FILE), advice: source.advice(), source: Box::new(source) }
    }
}

fn in_process(pid: Option<u32>) -> String {
    pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
}

/// The embedded store of one data folder. Clones, queues and the state store share it.
///
/// It needs a tokio runtime around its calls. When the last of them is dropped, what waits is still written, in the
/// background; [`close`](Self::close) waits for that.
#[derive(Debug, Clone)]
pub struct Local<C> {
    handle: Arc<Handle>,
    clock: C,
}

impl<C: Clock> Local<C> {
    /// Opens the data folder, making it if need be, and takes its lock. `entropy` names a new folder, so that message
    /// ids differ between folders.
    #[expect(clippy::needless_pass_by_value, reason = "options and entropy are built for this one call")]
    pub fn open(
        dir: &Path,
        options: LocalOptions,
        clock: C,
        entropy: impl Entropy,
    ) -> Result<Self, OpenError> {
        let folder = |source| OpenError::Folder { path: dir.to_owned(), source };
        disk::make_folder(dir).and_then(|()| private::narrow(dir)).map_err(folder)?;
        let mut lock = FolderLock::take(dir)?;
        let disk = FolderDisk::new(dir.to_owned());
        let engine = |source| OpenError::of(dir, source);
        if !disk.exists().map_err(folder)? {
            Engine::make(&disk, new_folder_id(&entropy)).map_err(engine)?;
        }
        lock.take_engine(dir)?;
        Self::open_disk(Box::new(disk), lock, &options, clock, &entropy).map_err(engine)
    }

    /// The seam for tests: the same over any disk.
    fn open_disk(
        disk: Box<dyn Disk>,
        lock: FolderLock,
        options: &LocalOptions,
        clock: C,
        entropy: &impl Entropy,
    ) -> Result<Self, EngineError> {
        let (engine, begin) = Engine::open(disk, options.engine_cache_bytes, new_folder_id(entropy))?;
        let queues = QUEUES.map(|name| Queue::new(name, options));
        let now = clock.now();
        let visit = |sequence, header: Option<record::Header<'_>>| match header {
            Some(header) => queues[usize::from(record::number_of(header.queue))].lock().insert(
                sequence,
                header.group,
                header.due,
                now,
            ),
            None => damage::set_aside(&queues, sequence, now),
        };
        let live_bytes = engine.read(|transaction| scan::scan(transaction, begin.first_sequence, visit))?;
        let time = clock.clone();
        let shared = Arc::new(Shared {
            engine,
            folder_id: begin.folder_id,
            // Receipts name the opening they come from: receive counts start again with each.
            opening: begin.first_sequence >> engine::SEQUENCES_PER_OPENING_BITS,
            inbox: Inbox::new(),
            queues,
            bodies: Mutex::new(Bodies::new(options.body_cache_bytes)),
            versions: Versions::default(),
            counters: Arc::new(Counters::new(options.batch_points)),
            now: Box::new(move || now_of(&time)),
            disk_reserve_bytes: options.disk_reserve_bytes,
        });
        let ended = Committer::spawn(shared.clone(), begin, live_bytes, lock)?;
        Ok(Self { handle: Arc::new(Handle { shared, ended }), clock })
    }

    /// One of the queues.
    pub fn queue(&self, name: QueueName) -> LocalQueue<C> {
        LocalQueue::new(self.handle.clone(), self.clock.clone(), name)
    }

    /// The state objects.
    pub fn state(&self) -> StateStore {
        StateStore::new(self.handle.clone())
    }

    /// What the monitor reads.
    pub fn gauges(&self) -> Gauges {
        self.handle.shared.counters.read()
    }

    /// Writes what waits, acknowledgements included, closes the engine and gives the folder back. Whoever still
    /// uses the queues or the state store gets errors of kind `Other` from then on.
    pub async fn close(self) {
        self.handle.shared.inbox.close();
        self.ended().await;
    }

    /// Completes when the thread that writes has ended: after a close, or by a fault. From then on every write is refused.
    pub async fn ended(&self) {
        // An error means that the sender is gone, and it never sends.
        let _ = self.handle.ended.clone().changed().await;
    }
}

impl<C: Clock> Evict for Local<C> {
    /// Forgets the bodies of recent messages, which lie on disk too. The engine's own pages stay: it bounds them, but
    /// cannot be asked to give them back.
    fn trim(&self) -> Evicted {
        // Dropped without the lock, on which every send and receive waits.
        let bodies = self.handle.shared.bodies().take_all();
        bodies.held()
    }
}

fn new_folder_id(entropy: &impl Entropy) -> u64 {
    let mut id = [0; 8];
    entropy.fill(&mut id);
    u64::from_le_bytes(id)
}

fn now_of(clock: &impl Clock) -> Now {
    // In this order: time that passes in between must not look as if the clock had been set back.
    let monotonic = clock.monotonic();
    Now { wall: clock.now(), monotonic }
}

/// What all users of a store hold; dropping the last one ends the commit thread.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    ended: watch::Receiver<()>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.inbox.close();
    }
}

/// What the callers and the commit thread share.
struct Shared {
    engine: Engine,
    folder_id: u64,
    opening: u64,
    inbox: Inbox,
    queues: [Queue; 3],
    bodies: Mutex<Bodies>,
    versions: Versions,
    counters: Arc<Counters>,
    now: Box<dyn Fn() -> Now + Send + Sync>,
    disk_reserve_bytes: u64,
}

impl Shared {
    fn queue(&self, name: QueueName) -> &Queue {
        &self.queues[usize::from(record::number_of(name))]
    }

    fn bodies(&self) -> MutexGuard<'_, Bodies> {
        // Nothing panics while it holds the lock.
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("opening", &self.opening).finish_non_exhaustive()
    }
}

/// The memory of one queue, and who waits for a change of it.
struct Queue {
    index: Mutex<QueueIndex>,
    changed: Notify,
}

impl Queue {
    fn new(name: QueueName, options: &LocalOptions) -> Self {
        let in_flight_max = match name {
            QueueName::Deliveries => options.deliveries_in_flight_max,
            _ => usize::try_from(SQS_IN_FLIGHT_MAX).unwrap_or(usize::MAX),
        };
        let receives_max = match name {
            QueueName::Redrive => u32::MAX,
            _ => options.max_receive_count,
        };
        Self { index: Mutex::new(QueueIndex::new(in_flight_max, receives_max)), changed: Notify::new() }
    }

    /// Changes the index, and wakes who waits for what the change brings: one receiver for visible messages, which
    /// passes it on if it leaves some, and all for an end of a delay that is sooner than the one they sleep until.
    fn update<R>(&self, now: Now, change: impl FnOnce(&mut QueueIndex) -> R) -> R {
        let mut index = self.lock();
        let before = index.until_next(now).unwrap_or(RECEIVE_WAIT_MAX);
        let result = change(&mut index);
        let (has_next, after) = (index.has_next(), index.until_next(now));
        drop(index);
        if has_next {
            self.changed.notify_one();
        }
        if after.is_some_and(|after| after < before) {
            self.changed.notify_waiters();
        }
        result
    }

    fn lock(&self) -> MutexGuard<'_, QueueIndex> {
        // Nothing panics while it holds the lock.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
