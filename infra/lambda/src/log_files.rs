//! The two tasks of record: its queue makes it write files of the delivery log, its schedule merge
//! them.

use std::sync::Arc;
use std::time::Duration;

use lambda_runtime::Error;
use posthaste_aws::lambda::{BatchHandler, ScheduledFunction, SqsBatch};
use posthaste_ports::{BatchResponse, Ports};
use posthaste_record::LogRecorder;

/// record, as the handler of batches of records.
pub struct WriteFiles<P: Ports>(pub Arc<LogRecorder<P>>);

/// record, as a scheduled function.
pub struct MergeFiles<P: Ports>(pub Arc<LogRecorder<P>>);

impl<P: Ports> BatchHandler for WriteFiles<P> {
    async fn handle(&self, batch: SqsBatch, deadline: Duration) -> BatchResponse {
        // As for deadletter, a box ends the depth of the SDK's futures.
        Box::pin(self.0.handle(batch.messages, deadline)).await
    }
}

impl<P: Ports> ScheduledFunction for MergeFiles<P> {
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        Box::pin(self.0.merge_until(deadline)).await?;
        Ok(())
    }
}
