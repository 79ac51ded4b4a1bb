//! The record function: its ports and settings, and its parts wired up.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::LogDisk;
use posthaste_core::model::size::DiskShare;
use posthaste_core::model::{LOG_DISK_PERCENT_DEFAULT, LOG_RETENTION_DEFAULT};
use posthaste_delivery_log::SummaryStore;
use posthaste_ports::{BatchResponse, Clock, Ports, ReceivedMessage};
use posthaste_services::LogTally;

use crate::aside::{AsideStore, LogFiles};
use crate::busy::BusyHours;
use crate::end::{EndedFiles, LogRetention};
use crate::error::LogFilesError;
use crate::handle::BatchWriter;
use crate::health::HealthPorts;
use crate::merge::{BEGUN_BEFORE, HourMergePorts, LogMerger, MergeReport};
use crate::requeue::MessageRequeuer;
use crate::stop::StopFlag;
use crate::summarize::DaySummarizer;
use crate::summarized::SummarizedHours;
use crate::tries::TryCounter;
use crate::unwritten::OldestUnwritten;
use crate::waiting::WaitingCounter;
use crate::waiting_ports::WaitingPorts;
use crate::write::HourWriter;
use crate::written::WrittenFiles;

/// Longest time of a merge without a deadline of its own.
const MERGE_TIME_MAX: Duration = Duration::from_secs(110);

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
    clock: P::Clock,
    batches: BatchWriter<P>,
    busy: BusyHours<P>,
    merger: Arc<LogMerger<P>>,
    waiting: Arc<WaitingCounter<P>>,
    retention: LogRetention<P>,
    stopped: StopFlag,
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
    /// Handles a batch until `deadline`, a time of the clock's `monotonic`. The answer names the
    /// messages with records that are not durable. All of their records are written again when
    /// they come back.
    pub async fn handle(&self, batch: Vec<ReceivedMessage>, deadline: Duration) -> BatchResponse {
        let refused = self.batches.write_batch(batch, deadline).await;
        self.busy.merge_busy_hours(deadline).await;
        BatchResponse { failures: refused }
    }

    /// Merges what is to be merged, for less than two minutes.
    pub async fn merge(&self) -> Result<MergeReport, LogFilesError> {
        self.merge_until(self.clock.monotonic() + MERGE_TIME_MAX)
            .await
    }

    /// Merges what is to be merged, and ends before `deadline`, a time of [`Clock::monotonic`].
    pub async fn merge_until(&self, deadline: Duration) -> Result<MergeReport, LogFilesError> {
        self.waiting
            .look_at_waiting(deadline.saturating_sub(BEGUN_BEFORE))
            .await;
        self.merger.merge_log(deadline).await
    }

    /// Deletes files as the settings say. No file is deleted for a share of a disk that is not
    /// known.
    pub async fn delete_ended_files(
        &self,
        disk: Option<LogDisk>,
    ) -> Result<EndedFiles, LogFilesError> {
        self.retention.delete_ended_files(disk).await
    }

    /// Stops the merge, for a process that is about to end. The rest waits for the next process.
    pub fn stop(&self) {
        self.stopped.stop();
    }

    /// Wires the function up.
    pub fn new(ports: RecordPorts<P>, settings: RecordSettings) -> Self {
        let RecordPorts {
            records,
            state,
            log,
            aside,
            summaries,
            health,
            waiting,
            clock,
            entropy,
        } = ports;
        let records = Arc::new(records);
        let log = Arc::new(log);
        let summaries = Arc::new(summaries);
        let written = Arc::new(WrittenFiles::default());
        let stopped = StopFlag::default();
        let files = Arc::new(LogFiles {
            log: log.clone(),
            aside,
        });
        let waiting = Arc::new(WaitingCounter {
            waiting,
            records: records.clone(),
            clock: clock.clone(),
        });
        let merger = Arc::new(LogMerger {
            state,
            log: log.clone(),
            clock: clock.clone(),
            entropy: entropy.clone(),
            hours: HourMergePorts {
                log: log.clone(),
                clock: clock.clone(),
                entropy: entropy.clone(),
                files: files.clone(),
                work_folder: settings.work_folder,
                stopped: stopped.clone(),
            },
            summarizer: DaySummarizer {
                summaries: summaries.clone(),
                log: log.clone(),
                clock: clock.clone(),
                summarized: SummarizedHours::default(),
                stopped: stopped.clone(),
            },
        });
        Self {
            batches: BatchWriter {
                hours: HourWriter {
                    log,
                    clock: clock.clone(),
                    entropy,
                    written: written.clone(),
                    unwritten: LogTally::default(),
                },
                tries: TryCounter {
                    health,
                    clock: clock.clone(),
                },
                waiting: waiting.clone(),
                requeuer: MessageRequeuer {
                    queue: records,
                    clock: clock.clone(),
                },
                oldest_unwritten: OldestUnwritten::default(),
                clock: clock.clone(),
            },
            busy: BusyHours {
                merger: merger.clone(),
                written,
                clock: clock.clone(),
                is_on: settings.merges_busy_hours,
            },
            merger,
            waiting,
            retention: LogRetention {
                files,
                summaries,
                clock: clock.clone(),
                kept_for: settings.retention,
                size_max: settings.size_max,
            },
            stopped,
            clock,
        }
    }
}
