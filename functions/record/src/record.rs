//! The record function: its ports and settings, and what its parts share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_core::delivery_log::ASIDE_IN_LOG;
use posthaste_core::model::size::DiskShare;
use posthaste_core::model::{LOG_DISK_PERCENT_DEFAULT, LOG_RETENTION_DEFAULT};
use posthaste_delivery_log::SummaryStore;
use posthaste_ports::{ObjectStore, Ports};
use posthaste_services::{LogTally, timeout_at};

use crate::error::LogFilesError;
use crate::health::HealthPorts;
use crate::summarized::SummarizedHours;
use crate::unwritten::OldestUnwritten;
use crate::waiting_ports::WaitingPorts;
use crate::written::WrittenFiles;

/// Files that are deleted at once.
pub(crate) const DELETED_AT_ONCE: usize = 8;

/// The ports of record.
#[derive(Debug)]
pub struct RecordPorts<P: Ports> {
    /// The queue of records.
    pub records: P::Queue,
    /// The state bucket, for the lease of the merge.
    pub state: P::Store,
    /// The bucket of the log.
    pub log: P::Log,
    /// The place of its files that cannot be read.
    pub aside: AsideStore<P::Log>,
    /// The summaries of the log's days.
    pub summaries: SummaryStore<P::Log>,
    /// The book of failing subscriptions, where it is made of records. `None` embedded: there
    /// deliver sees each try.
    pub health: Option<HealthPorts<P>>,
    /// The numbers of what waits, where they are made of records. `None` embedded: there the queue
    /// counts.
    pub waiting: Option<WaitingPorts<P>>,
    /// Time.
    pub clock: P::Clock,
    /// Chance.
    pub entropy: P::Entropy,
}

/// The place of files of the log that cannot be read. Who reads the log must not find them in it.
#[derive(Debug, Clone)]
pub struct AsideStore<L> {
    /// The store.
    pub store: L,
    /// The beginning of their keys in it.
    pub prefix: &'static str,
}

impl<L> AsideStore<L> {
    /// A store of their own: Polars reads every file of a folder, whatever its name.
    pub fn in_own_store(store: L) -> Self {
        Self { store, prefix: "" }
    }

    /// The bucket of the log itself, under a prefix that readers skip.
    pub fn in_log(store: L) -> Self {
        let prefix = ASIDE_IN_LOG;
        Self { store, prefix }
    }

    /// The key of a file of the log once it is set aside.
    pub(crate) fn key_for(&self, of_log: &str) -> String {
        format!("{}{of_log}", self.prefix)
    }
}

/// Settings of the function.
#[derive(Debug, Clone)]
pub struct RecordSettings {
    /// Time for which records are kept. `None` where the bucket's lifecycle deletes them.
    pub retention: Option<Duration>,
    /// The most that the log may take. `None` for no bound.
    pub size_max: Option<DiskShare>,
    /// Whether batches merge busy hours, because the schedule of the merge comes seldom.
    pub merges_busy_hours: bool,
    /// The folder for files in progress, which have no names: a merge takes up to 256 MiB in it.
    pub work_folder: PathBuf,
}

/// The function.
pub struct LogRecorder<P: Ports> {
    pub(crate) ports: RecordPorts<P>,
    pub(crate) settings: RecordSettings,
    /// Tries to write a record that failed.
    pub(crate) unwritten: LogTally,
    pub(crate) oldest_unwritten: OldestUnwritten,
    pub(crate) written: WrittenFiles,
    pub(crate) summarized: SummarizedHours,
    is_stopped: AtomicBool,
}

impl Default for RecordSettings {
    /// The settings of the embedded log.
    fn default() -> Self {
        Self {
            retention: Some(LOG_RETENTION_DEFAULT),
            size_max: Some(DiskShare::Percent(LOG_DISK_PERCENT_DEFAULT)),
            merges_busy_hours: false,
            work_folder: std::env::temp_dir(),
        }
    }
}

impl RecordSettings {
    /// The settings of AWS: the bucket's lifecycle deletes old files, and the schedule of the merge
    /// comes seldom.
    #[must_use]
    pub fn on_aws(self) -> Self {
        Self {
            retention: None,
            size_max: None,
            merges_busy_hours: true,
            ..self
        }
    }
}

impl<P: Ports> LogRecorder<P> {
    /// Wires the function up.
    pub fn new(ports: RecordPorts<P>, settings: RecordSettings) -> Self {
        Self {
            ports,
            settings,
            unwritten: LogTally::default(),
            oldest_unwritten: OldestUnwritten::default(),
            written: WrittenFiles::default(),
            summarized: SummarizedHours::default(),
            is_stopped: AtomicBool::new(false),
        }
    }

    /// Stops the merge, for a process that is about to end. The rest waits for the next process.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Deletes a file of the log.
    pub(crate) async fn delete_file(&self, key: String) -> Result<(), LogFilesError> {
        self.ports
            .log
            .delete(&key)
            .await
            .map_err(LogFilesError::Store)
    }

    /// The result of a call, or an error at `deadline`. After that it is not known whether the call
    /// had an effect.
    pub(crate) async fn in_time<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, LogFilesError>> + Send,
    ) -> Result<T, LogFilesError> {
        timeout_at(&self.ports.clock, deadline, call)
            .await
            .unwrap_or(Err(LogFilesError::OutOfTime))
    }
}
