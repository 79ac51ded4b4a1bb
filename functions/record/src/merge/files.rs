//! Files of a merge: those that are read, those that are made, those that go.

use std::error::Error;
use std::fs::File;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::delivery_log::{FileKey, FileName, SizedFile};
use posthaste_delivery_log::{LogError, MergeInput, MergeLimits, MergedPart, merge_files};
use posthaste_ports::{ObjectStore, Ports};

use super::hour::HourMerge;
use crate::aside::DELETED_AT_ONCE;
use crate::error::LogFilesError;
use crate::work::{empty_file, filled_file, run_blocking};

/// Files that are read at once.
const READ_AT_ONCE: usize = 4;

impl<P: Ports> HourMerge<'_, P> {
    /// The files of a step, read into the work folder.
    pub(super) async fn read_inputs(
        &self,
        step: &[FileKey],
    ) -> Result<Vec<MergeInput>, LogFilesError> {
        let inputs: Vec<_> = step
            .iter()
            .map(|file| self.read_input(file.file_name(), file.render()))
            .collect();
        stream::iter(inputs)
            .buffered(READ_AT_ONCE)
            .try_collect()
            .await
    }

    async fn read_input(&self, name: String, key: String) -> Result<MergeInput, LogFilesError> {
        let found = self
            .ports
            .log
            .get(&key)
            .await
            .map_err(LogFilesError::Store)?;
        let bytes = found.ok_or(LogFilesError::Gone(key))?.bytes;
        let folder = self.ports.work_folder.clone();
        let copy =
            run_blocking(move || filled_file(&folder, &bytes).map_err(LogFilesError::WorkFolder))
                .await?;
        Ok(MergeInput::on_disk(name, copy))
    }

    /// The parts that files are merged into, in the work folder.
    pub(super) async fn merge_parts(
        &self,
        inputs: Vec<MergeInput>,
    ) -> Result<Vec<MergedPart<File>>, LogFilesError> {
        let folder = self.ports.work_folder.clone();
        run_blocking(move || {
            let merged = merge_files(inputs, MergeLimits::default(), |_| empty_file(&folder));
            merged.map_err(LogFilesError::Log)
        })
        .await
    }

    /// Deletes files.
    pub(super) async fn delete_files(&self, files: &[FileKey]) -> Result<(), LogFilesError> {
        let deletes: Vec<_> = files
            .iter()
            .map(|file| self.ports.files.delete_file(file.render()))
            .collect();
        stream::iter(deletes)
            .buffer_unordered(DELETED_AT_ONCE)
            .try_collect()
            .await
    }

    /// Puts a damaged file aside, so that the others are merged. A part of several stays where it
    /// is, and so do the other parts: without it they would look like those of a merge that was
    /// cut short.
    pub(super) async fn set_aside(
        &mut self,
        file: &FileKey,
        listed: &[SizedFile],
        error: &LogError,
    ) -> Result<(), LogFilesError> {
        let key = file.render();
        metrics::counter!("LogFilesDamagedCount").increment(1);
        tracing::error!(
            key,
            error = error as &dyn Error,
            "damaged file of the delivery log left out"
        );
        self.report.damaged += 1;
        let id = merge_id(file);
        if id.is_some()
            && listed
                .iter()
                .filter(|other| merge_id(&other.key) == id)
                .count()
                > 1
        {
            self.damaged_merges.extend(id.map(str::to_owned));
            return Ok(());
        }
        self.ports.files.move_aside(&key, &key).await
    }

    /// Whether a file is of a merge of which a part is damaged.
    pub(super) fn is_of_damaged(&self, file: &FileKey) -> bool {
        merge_id(file).is_some_and(|id| self.damaged_merges.contains(id))
    }
}

fn merge_id(file: &FileKey) -> Option<&str> {
    match &file.name {
        FileName::Merged { id, .. } => Some(id),
        FileName::Fresh { .. } => None,
    }
}
