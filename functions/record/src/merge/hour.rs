//! The merge of one hour, step by step.
//!
//! A step writes its parts in order, and the last one names what was merged. Then it deletes that.
//! So a run that is cut short anywhere loses nothing, and the next one sees what it left behind.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use posthaste_core::delivery_log::{
    FileKey, FileName, LogHour, MergeNote, SizedFile, leftover_files, merge_step,
};
use posthaste_delivery_log::{LogFile, LogReader, MergedPart};
use posthaste_ports::{Clock, Entropy, ObjectStore, Ports, PutCondition};
use posthaste_services::list_pages;

use super::report::{MergeReport, RunTimes};
use crate::aside::LogFiles;
use crate::error::LogFilesError;
use crate::stop::StopFlag;
use crate::work::{read_contents, run_blocking};

/// Bytes of footers that are kept while an hour is merged.
const FOOTERS_BYTES_MAX: usize = 1 << 20;

/// The ports of the merges of hours.
pub(crate) struct HourMergePorts<P: Ports> {
    pub(crate) log: Arc<P::Log>,
    pub(crate) clock: P::Clock,
    pub(crate) entropy: P::Entropy,
    pub(crate) files: Arc<LogFiles<P>>,
    /// The folder for files in progress.
    pub(crate) work_folder: PathBuf,
    pub(crate) stopped: StopFlag,
}

/// The merge of one hour.
pub(super) struct HourMerge<'a, P: Ports> {
    pub(super) ports: &'a HourMergePorts<P>,
    pub(super) report: &'a mut MergeReport,
    hour: LogHour,
    is_closed: bool,
    times: RunTimes,
    reader: LogReader<&'a P::Log>,
    /// Merges with a part that cannot be read. Their other parts stay where they are.
    pub(super) damaged_merges: BTreeSet<String>,
}

impl<'a, P: Ports> HourMerge<'a, P> {
    pub(super) fn new(
        ports: &'a HourMergePorts<P>,
        hour: LogHour,
        is_closed: bool,
        times: RunTimes,
        report: &'a mut MergeReport,
    ) -> Self {
        let reader = LogReader::new(&*ports.log, FOOTERS_BYTES_MAX);
        Self {
            ports,
            report,
            hour,
            is_closed,
            times,
            reader,
            damaged_merges: BTreeSet::new(),
        }
    }

    /// Merges until nothing is left to be merged. Returns all files of a closed hour, as they lie
    /// then.
    pub(super) async fn run(&mut self) -> Result<Option<Vec<LogFile>>, LogFilesError> {
        loop {
            let files = self.mergeable_files().await?;
            let step = merge_step(&files, self.is_closed);
            if step.is_empty() {
                return self.files_of_closed().await;
            }
            if self.ports.stopped.is_stopped() || self.ports.clock.monotonic() >= self.times.begin {
                return Err(LogFilesError::OutOfTime);
            }
            self.run_step(&step, &files).await?;
        }
    }

    async fn files_of_closed(&self) -> Result<Option<Vec<LogFile>>, LogFilesError> {
        if !self.is_closed {
            return Ok(None);
        }
        let files = self.list_hour().await?.into_iter();
        Ok(Some(
            files
                .filter_map(|file| LogFile::new(file.key.render(), file.bytes))
                .collect(),
        ))
    }

    /// The hour's files that may be merged, once leftovers are deleted.
    async fn mergeable_files(&mut self) -> Result<Vec<SizedFile>, LogFilesError> {
        let mut noted = Vec::new();
        let listed = self.list_hour().await?;
        for file in &listed {
            if self.is_of_damaged(&file.key) {
                continue;
            }
            match self.read_note(file).await {
                Err(LogFilesError::Log(error)) if error.damaged_file().is_some() => {
                    self.set_aside(&file.key, &listed, &error).await?;
                }
                note => noted.push((file.clone(), note?)),
            }
        }
        noted.retain(|(file, _)| !self.is_of_damaged(&file.key));
        let keys: Vec<_> = noted
            .iter()
            .map(|(file, note)| (file.key.clone(), note.clone()))
            .collect();
        let left = leftover_files(&keys);
        self.delete_files(&left).await?;
        self.report.leftovers += left.len();
        Ok(noted
            .into_iter()
            .map(|(file, _)| file)
            .filter(|file| !left.contains(&file.key))
            .collect())
    }

    async fn list_hour(&self) -> Result<Vec<SizedFile>, LogFilesError> {
        let prefix = self.hour.key_prefix();
        let mut files = Vec::new();
        let mut pages = pin!(list_pages(&*self.ports.log, &prefix, None));
        while let Some(page) = pages.try_next().await.map_err(LogFilesError::Store)? {
            let sized = page
                .objects
                .iter()
                .filter_map(|object| SizedFile::new(&object.key, object.size));
            files.extend(sized);
        }
        Ok(files)
    }

    /// The note of a merged file. A fresh one has none.
    async fn read_note(&self, file: &SizedFile) -> Result<Option<MergeNote>, LogFilesError> {
        match LogFile::new(file.key.render(), file.bytes) {
            Some(merged) if !file.key.is_fresh() => self
                .reader
                .merge_note(&merged)
                .await
                .map_err(LogFilesError::Log),
            _ => Ok(None),
        }
    }

    /// One step. Where one of the files is damaged, it is set aside, and nothing else is done.
    async fn run_step(
        &mut self,
        step: &[FileKey],
        listed: &[SizedFile],
    ) -> Result<(), LogFilesError> {
        let inputs = self.read_inputs(step).await?;
        let parts = match self.merge_parts(inputs).await {
            Err(LogFilesError::Log(error)) if error.damaged_file().is_some() => {
                let damaged = step
                    .iter()
                    .find(|file| error.damaged_file() == Some(&file.file_name()));
                return match damaged {
                    Some(file) => self.set_aside(file, listed, &error).await,
                    None => Err(LogFilesError::Log(error)),
                };
            }
            parts => parts?,
        };
        self.report.files += step.len();
        self.report.merged += parts.len();
        self.report.records += parts.iter().map(|part| part.records).sum::<usize>();
        self.store_parts(parts).await?;
        // Another run may have begun: what it found of this one it has cleared away.
        if self.ports.clock.now() >= self.times.lapses_at {
            return Err(LogFilesError::OutOfTime);
        }
        self.delete_files(step).await
    }

    /// Stores parts in order. The last one says that all are there.
    async fn store_parts(&self, parts: Vec<MergedPart<File>>) -> Result<(), LogFilesError> {
        let id = self.ports.entropy.uuid().to_string();
        for (part, merged) in (0..).zip(parts) {
            let name = FileName::Merged {
                id: id.clone(),
                part,
            };
            let key = FileKey {
                hour: self.hour,
                name,
            }
            .render();
            let bytes =
                run_blocking(move || read_contents(merged.sink).map_err(LogFilesError::WorkFolder))
                    .await?;
            let put = self.ports.log.put(&key, bytes, PutCondition::Always).await;
            put.map_err(LogFilesError::Store)?;
        }
        Ok(())
    }
}
