//! Files of the log that cannot be read, and where they are kept.

use std::pin::pin;
use std::sync::Arc;

use futures_util::stream::TryStreamExt;
use posthaste_core::delivery_log::{ASIDE_BEFORE, ASIDE_IN_LOG};
use posthaste_ports::{ObjectStore, Ports, PutCondition};
use posthaste_services::list_objects;

use crate::error::LogFilesError;

/// Files that are deleted at once.
pub(crate) const DELETED_AT_ONCE: usize = 8;

/// The place of files of the log that cannot be read. Readers of the log must not find them in it.
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

/// Files of the log, which are deleted or set aside.
pub(crate) struct LogFiles<P: Ports> {
    pub(crate) log: Arc<P::Log>,
    pub(crate) aside: AsideStore<P::Log>,
}

impl<P: Ports> LogFiles<P> {
    /// Deletes a file of the log.
    pub(crate) async fn delete_file(&self, key: String) -> Result<(), LogFilesError> {
        self.log.delete(&key).await.map_err(LogFilesError::Store)
    }

    /// Moves a file out of the log. `key` is that of the file in the log's store, `of_log` the one
    /// that it had among the files that are read. The copy is there before the file goes.
    pub(crate) async fn move_aside(&self, key: &str, of_log: &str) -> Result<(), LogFilesError> {
        let aside = &self.aside;
        let found = self.log.get(key).await.map_err(LogFilesError::Store)?;
        if let Some(found) = found {
            let copy = aside.key_for(of_log);
            let put = aside.store.put(&copy, found.bytes, PutCondition::Always);
            put.await.map_err(LogFilesError::Store)?;
        }
        self.delete_file(key.to_owned()).await
    }

    /// Moves what an earlier version set aside within the log.
    pub(crate) async fn move_misplaced_files(&self) -> Result<(), LogFilesError> {
        let mut left = pin!(list_objects(&*self.log, ASIDE_BEFORE, None));
        while let Some(object) = left.try_next().await.map_err(LogFilesError::Store)? {
            let of_log = object.key.strip_prefix(ASIDE_BEFORE);
            let of_log = of_log.unwrap_or(&object.key);
            self.move_aside(&object.key, of_log).await?;
            tracing::info!(
                key = object.key,
                "damaged file of an earlier version moved out of the delivery log"
            );
        }
        Ok(())
    }
}
