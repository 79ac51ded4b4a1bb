//! The note that a server leaves in the data folder for the next start: when it ran, on which file,
//! how far the delivery log went. From the note of the process before, a start knows of which times
//! the log may lack records.

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use posthaste_cli::backup::RestoreNote;
use posthaste_core::delivery_log::{GapCause, LogGap, RecordFilter, StartLook};
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{FormatError, Timestamp, UNBATCHED_EVENTS_PER_MESSAGE_MAX};
use posthaste_core::stored::delivery::parse_delivery;
use posthaste_core::stored::layout::SERVE_RUN;
use posthaste_core::stored::{CONSOLE_SESSIONS, FileMark, RunEnd, ServeRun};
use posthaste_local::{EmbeddedStore, FileStore, LocalOptions, StateStore};
use posthaste_manage::DeliveryLog;
use posthaste_ports::{Clock, ObjectStore, PortError, PutCondition};
use posthaste_system::SystemClock;
use tokio::sync::Mutex;

use super::error::ServeError;
use super::settings::ServeSettings;

/// Longest look for the newest record of the log.
const LOOK_TIME_MAX: Duration = Duration::from_secs(5);

/// The note of a running server.
#[derive(Debug)]
pub(super) struct RunNote {
    state: StateStore,
    log: DeliveryLog<FileStore>,
    /// Whether a newer program wrote the note that is there. It stays for that program.
    is_newer: bool,
    /// The gaps that this start found.
    found: Vec<LogGap>,
    /// The moment of the backup of which the data folder was made, if it was made of one.
    restored_from: Option<Timestamp>,
    run: Mutex<ServeRun>,
}

impl RunNote {
    /// Reads the note of the process before, and prepares that of this one, with the gaps that are
    /// found. The pollers must not run yet.
    pub(super) async fn prepare(
        local: &EmbeddedStore<SystemClock>,
        log: DeliveryLog<FileStore>,
        settings: &ServeSettings,
    ) -> Result<Self, ServeError> {
        let state = local.state_store();
        let now = SystemClock.now();
        let read = read_former(&state).await.map_err(ServeError::RunNote)?;
        let is_newer = matches!(read, Err(FormatError::Newer(_)));
        let former = read.ok().flatten();
        let known_end = former.as_ref().and_then(|former| former.log_end);
        let log_end = match newest_record_time(&log, known_end).await {
            Some(None) if known_end.is_some() => newest_record_time(&log, None).await,
            found => found,
        };
        let log_end = log_end.unwrap_or(known_end);
        let first_started_at = former
            .as_ref()
            .map_or(now, |former| former.first_started_at);
        let database = local
            .open_files()
            .and_then(|place| file_mark(place.engine.path()))
            .or(former.as_ref().map(|former| former.database))
            .unwrap_or(FileMark {
                inode: 0,
                created_ns: 0,
            });
        let restored_from = restored_from(former.as_ref(), &settings.data_dir);
        let before = former.as_ref().map(|former| former.database);
        let is_copy = before.is_some_and(|before| is_copy(before, database));
        if is_copy || restored_from.is_some() {
            // Sessions of the console that have ended since must not come back.
            let deleted = state.delete(CONSOLE_SESSIONS).await;
            deleted.map_err(ServeError::RunNote)?;
        }
        let (gaps, found) = match &former {
            Some(former) => {
                let look = StartLook {
                    now,
                    is_copy,
                    copied_at: restored_from,
                    log_end,
                    under_way_max: under_way_max(local, former, is_copy).await,
                    quiet_max: settings.monitor.pressure.interval,
                };
                let found = LogGap::found_at_start(
                    former.as_former_run(local.opening_report().written_until),
                    look,
                );
                let retention = settings.record.retention;
                let oldest =
                    retention.map(|kept| now.as_millis().saturating_sub(whole_millis(kept)));
                let oldest = Timestamp::from_millis(oldest.unwrap_or_default());
                (former.gaps_with(found.clone(), oldest), found)
            }
            None => (Vec::new(), Vec::new()),
        };
        Ok(Self {
            state,
            log,
            is_newer,
            found,
            restored_from,
            run: Mutex::new(ServeRun {
                first_started_at,
                started_at: now,
                database,
                log_end,
                ended: None,
                gaps,
            }),
        })
    }

    /// Says what was found, and writes the note. The start cannot fail any more, and the pollers do
    /// not run yet: a start that fails would find all of it again, and its note would look like that
    /// of a process that was killed. A note that cannot be written is logged: the server works
    /// without it.
    pub(super) async fn report_and_write(&self) {
        for gap in &self.found {
            report_gap(gap, self.restored_from == Some(gap.from));
        }
        self.write_note(&*self.run.lock().await).await;
    }

    /// The times of which the log may lack records.
    pub(super) async fn gaps(&self) -> Vec<LogGap> {
        self.run.lock().await.gaps.clone()
    }

    /// Notes how far the log goes, if that has changed.
    pub(super) async fn note_log_end(&self) {
        let mut run = self.run.lock().await;
        let log_end = newest_record_time(&self.log, run.log_end).await.flatten();
        if log_end > run.log_end {
            run.log_end = log_end;
            self.write_note(&run).await;
        }
    }

    /// Notes where the log ends after files of it were deleted for their age or for room: the next
    /// start must not miss their records.
    pub(super) async fn note_deleted(&self) {
        let mut run = self.run.lock().await;
        if run.log_end.is_none() || newest_record_time(&self.log, run.log_end).await != Some(None) {
            return;
        }
        if let Some(log_end) = newest_record_time(&self.log, None).await {
            run.log_end = log_end;
            self.write_note(&run).await;
        }
    }

    /// Notes an end in order, with the number of delivery messages that were still worked on.
    pub(super) async fn note_end(&self, in_flight: u64) {
        let mut run = self.run.lock().await;
        let log_end = newest_record_time(&self.log, run.log_end).await.flatten();
        run.log_end = log_end.max(run.log_end);
        run.ended = Some(RunEnd {
            at: SystemClock.now(),
            in_flight,
        });
        self.write_note(&run).await;
    }

    async fn write_note(&self, run: &ServeRun) {
        if self.is_newer {
            return;
        }
        let put = self
            .state
            .put(SERVE_RUN, run.render(), PutCondition::Always);
        if let Err(error) = put.await {
            tracing::warn!(
                error = &error as &dyn Error,
                "the note for the next start is not written; it may not say what the delivery log lacks"
            );
        }
    }
}

/// The note of the process before, or why it cannot be used.
async fn read_former(
    state: &StateStore,
) -> Result<Result<Option<ServeRun>, FormatError>, PortError> {
    let Some(object) = state.get(SERVE_RUN).await? else {
        return Ok(Ok(None));
    };
    let run = ServeRun::parse(&object.bytes).inspect_err(|error| {
        tracing::warn!(
            error = error as &dyn Error,
            "the note of the process before cannot be used; what the delivery log lacks is not known"
        );
    });
    Ok(run.map(Some))
}

/// The time of the newest record in the log of `from` or later; `Some(None)` if there is none, and
/// `None` if that cannot be known. With a recent `from`, little is read.
async fn newest_record_time(
    log: &DeliveryLog<FileStore>,
    from: Option<Timestamp>,
) -> Option<Option<Timestamp>> {
    let filter = RecordFilter {
        from,
        without_payload: true,
        ..RecordFilter::default()
    };
    let until = SystemClock.monotonic() + LOOK_TIME_MAX;
    let listed = log
        .list_records(&filter, 1, || SystemClock.monotonic() < until)
        .await;
    match listed {
        Ok(page) if page.records.is_empty() && page.next.is_some() => None,
        Ok(page) => Some(page.records.first().map(|record| record.time)),
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn Error,
                "the end of the delivery log is not known"
            );
            None
        }
    }
}

/// The moment of the backup of which a data folder was made, if that is where the process before
/// ended: one that started later ran on the folder itself.
fn restored_from(former: Option<&ServeRun>, data_dir: &Path) -> Option<Timestamp> {
    let moment = RestoreNote::moment_of(data_dir)?;
    former
        .is_some_and(|former| former.started_at <= moment)
        .then_some(moment)
}

/// The mark of a file. `None` if the file cannot be looked at.
fn file_mark(path: &Path) -> Option<FileMark> {
    let found = fs::metadata(path).ok()?;
    let created = found.created().ok();
    let since = created.and_then(|created| created.duration_since(UNIX_EPOCH).ok());
    Some(FileMark {
        inode: found.ino(),
        created_ns: since.map_or(0, |since| {
            u64::try_from(since.as_nanos()).unwrap_or_default()
        }),
    })
}

/// Whether a file is another one than before. A file system that does not say when a file was made
/// knows it by its inode alone.
fn is_copy(before: FileMark, now: FileMark) -> bool {
    let has_times = before.created_ns > 0 && now.created_ns > 0;
    before.inode != now.inode || (has_times && before.created_ns != now.created_ns)
}

/// The most attempts that were under way when the process before ended: those of the deliveries
/// that are due now, of which the process can have worked on a bounded number.
async fn under_way_max(
    local: &EmbeddedStore<SystemClock>,
    former: &ServeRun,
    is_copy: bool,
) -> u64 {
    let ended_whole = former.ended.is_some_and(|end| end.in_flight == 0);
    let due = local.opening_report().due_deliveries;
    if is_copy || ended_whole || due == 0 {
        return 0;
    }
    let in_flight_max = LocalOptions::default().deliveries_in_flight_max;
    let counted = local.sum_over_due(|body| {
        let delivery = parse_delivery(body);
        delivery.map_or(1, |delivery| delivery.events.len() as u64)
    });
    let counted = counted.await.unwrap_or_else(|error| {
        tracing::warn!(
            error = &error as &dyn Error,
            "the attempts of the process before are not counted"
        );
        due.min(in_flight_max as u64)
    });
    if due <= in_flight_max as u64 {
        return counted;
    }
    // Which of them were under way is not known: as many as there can be.
    counted.max((in_flight_max * UNBATCHED_EVENTS_PER_MESSAGE_MAX) as u64)
}

fn report_gap(gap: &LogGap, is_restored: bool) {
    let LogGap {
        from,
        to,
        cause,
        attempts_max,
    } = gap;
    match (cause, attempts_max) {
        (GapCause::Killed, Some(attempts)) if *attempts > 0 => tracing::warn!(
            attempts,
            %from,
            %to,
            "the process before was killed: up to {attempts} attempts of before are not in the log; they are \
             made again"
        ),
        (GapCause::Copy, _) if is_restored => tracing::warn!(
            %from,
            %to,
            "the data folder was restored from a backup of {from}: the delivery log is unknown from then until now"
        ),
        (GapCause::Copy, _) => tracing::warn!(
            %from,
            %to,
            "the data folder is a copy: the delivery log is unknown from when it was made until now"
        ),
        (GapCause::MissingFiles, _) => tracing::warn!(
            %from,
            %to,
            "the delivery log ends before the database does: files of it are missing"
        ),
        (GapCause::Killed | GapCause::Unknown, _) => tracing::warn!(
            %from,
            %to,
            "the process before did not end in order: the delivery log may lack records of the time since"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_of_a_file_has_another_mark() {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("a");
        let moved = folder.path().join("b");
        fs::write(&original, "x").unwrap();
        let before = file_mark(&original).unwrap();
        fs::write(&original, "y").unwrap();
        fs::rename(&original, &moved).unwrap();
        assert!(!is_copy(before, file_mark(&moved).unwrap()));
        fs::copy(&moved, &original).unwrap();
        assert!(is_copy(before, file_mark(&original).unwrap()));
        assert_eq!(file_mark(&folder.path().join("none")), None);
    }

    #[test]
    fn inode_that_is_used_again_is_another_file() {
        let mark = |inode, created_ns| FileMark { inode, created_ns };
        assert!(is_copy(mark(1, 5), mark(1, 6)));
        assert!(is_copy(mark(1, 5), mark(2, 5)));
        assert!(!is_copy(mark(1, 5), mark(1, 5)));
        assert!(!is_copy(mark(1, 0), mark(1, 6)));
        assert!(!is_copy(mark(1, 5), mark(1, 0)));
    }
}
