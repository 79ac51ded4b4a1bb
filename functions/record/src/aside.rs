//! Files of the log that cannot be read, and where they are kept.

use std::pin::pin;

use futures_util::stream::TryStreamExt;
use posthaste_core::delivery_log::ASIDE_BEFORE;
use posthaste_ports::{ObjectStore, Ports, PutCondition};
use posthaste_services::list_objects;

use crate::error::LogFilesError;
use crate::record::LogRecorder;

impl<P: Ports> LogRecorder<P> {
    /// Moves a file out of the log. `key_for` is that of the file in the log's store, `of_log` the one
    /// that it had among the files that are read. The copy is there before the file goes.
    pub(crate) async fn move_aside(&self, key: &str, of_log: &str) -> Result<(), LogFilesError> {
        let aside = &self.ports.aside;
        let found = self
            .ports
            .log
            .get(key)
            .await
            .map_err(LogFilesError::Store)?;
        if let Some(found) = found {
            let copy = aside.key_for(of_log);
            let put = aside.store.put(&copy, found.bytes, PutCondition::Always);
            put.await.map_err(LogFilesError::Store)?;
        }
        self.delete_file(key.to_owned()).await
    }

    /// Moves what an earlier version set aside within the log.
    pub(crate) async fn move_misplaced_files(&self) -> Result<(), LogFilesError> {
        let mut left = pin!(list_objects(&self.ports.log, ASIDE_BEFORE, None));
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
