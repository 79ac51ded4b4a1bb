//! The schedules of the delivery log: its files are merged, and the oldest of them deleted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use posthaste_core::delivery_log::{LogDisk, has_room_to_merge};
use posthaste_core::model::size::DiskShare;
use posthaste_core::pressure::PressureSettings;
use posthaste_ports::Clock;
use posthaste_record::LogRecorder;
use posthaste_services::LogTally;
use posthaste_system::SystemClock;
use posthaste_system::probe::disk_usage;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::adapters::EmbeddedPorts;
use super::former::RunNote;
use super::schedule::run_every;
use super::settings::ServeSettings;

/// Time between two merges. At most three files a second are written, so that an hour never has
/// more than 120 files that are not merged.
const MERGE_PERIOD: Duration = Duration::from_secs(10);

/// Time between two looks at how old the log is and how much it takes.
const END_PERIOD: Duration = Duration::from_mins(1);

/// record on its schedules, and the disk of the log.
pub(super) struct LogUpkeep {
    record: Arc<LogRecorder<EmbeddedPorts>>,
    data_dir: PathBuf,
    pressure: PressureSettings,
    size_max: Option<DiskShare>,
}

impl LogUpkeep {
    pub(super) fn new(record: &Arc<LogRecorder<EmbeddedPorts>>, settings: &ServeSettings) -> Self {
        let pressure = settings.monitor.pressure.clone();
        let data_dir = settings.data_dir.clone();
        let size_max = settings.record.size_max;
        Self {
            record: Arc::clone(record),
            data_dir,
            pressure,
            size_max,
        }
    }

    /// Starts the schedules. `note` is told of files that are deleted.
    pub(super) fn spawn(
        &self,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
        note: &Arc<RunNote>,
    ) {
        let record = Arc::clone(&self.record);
        let data_dir = self.data_dir.clone();
        let size_max = self.size_max;
        let refused = Arc::new(LogTally::default());
        tasks.spawn(run_every(
            "log-merge",
            MERGE_PERIOD,
            SystemClock,
            stop.clone(),
            move || {
                let record = Arc::clone(&record);
                let refused = Arc::clone(&refused);
                let has_room =
                    disk_usage(&data_dir).is_none_or(|disk| has_room_to_merge(size_max, disk));
                async move {
                    if has_room {
                        merge_log(&record).await;
                    } else {
                        report_no_room(&refused);
                    }
                }
            },
        ));
        let record = Arc::clone(&self.record);
        let data_dir = self.data_dir.clone();
        let pressure = self.pressure.clone();
        let note = Arc::clone(note);
        tasks.spawn(run_every(
            "log-end",
            END_PERIOD,
            SystemClock,
            stop.clone(),
            move || {
                let record = Arc::clone(&record);
                let note = Arc::clone(&note);
                let disk = log_disk(&data_dir, &pressure);
                async move { delete_old_files(&record, &note, disk).await }
            },
        ));
        let record = Arc::clone(&self.record);
        let stopped = stop.clone();
        tasks.spawn(async move {
            stopped.cancelled().await;
            record.stop();
        });
    }
}

/// The disk of the log. `None` if it cannot be measured.
fn log_disk(data_dir: &Path, pressure: &PressureSettings) -> Option<LogDisk> {
    let usage = disk_usage(data_dir)?;
    Some(LogDisk {
        usage,
        calm_percent: pressure.calm_disk_percent(usage),
    })
}

fn report_no_room(refused: &LogTally) {
    if refused.add(1, SystemClock.monotonic()).is_some() {
        tracing::warn!("delivery log not merged, its disk is nearly full");
    }
}

async fn merge_log(record: &LogRecorder<EmbeddedPorts>) {
    if let Err(error) = record.merge().await {
        let error = &error as &dyn std::error::Error;
        tracing::error!(error, "delivery log not merged, the next run goes on");
    }
}

async fn delete_old_files(
    record: &LogRecorder<EmbeddedPorts>,
    note: &RunNote,
    disk: Option<LogDisk>,
) {
    match record.delete_ended_files(disk).await {
        Ok(ended) if ended.old + ended.over > 0 => note.note_deleted().await,
        Ok(_) => {}
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::error!(
                error,
                "old files of the delivery log not deleted, the next run goes on"
            );
        }
    }
}
