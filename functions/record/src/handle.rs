//! The steps for a batch: read it, write a file for each hour, settle what is written, and put off
//! what the store has refused for long.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use posthaste_ports::{Clock, MessageId, Ports, ReceivedMessage};

use crate::receive::{MalformedMessage, ReceivedRecords, receive_batch};
use crate::refused::RefusedMessages;
use crate::requeue::MessageRequeuer;
use crate::tries::TryCounter;
use crate::unwritten::OldestUnwritten;
use crate::waiting::WaitingCounter;
use crate::work::run_blocking;
use crate::write::HourWriter;

/// Time before the deadline from which on no file is written, where messages may have to be put
/// off.
const PUT_OFF_BEFORE: Duration = Duration::from_secs(10);

/// Writes batches.
pub(crate) struct BatchWriter<P: Ports> {
    pub(crate) hours: HourWriter<P>,
    pub(crate) tries: TryCounter<P>,
    pub(crate) waiting: Arc<WaitingCounter<P>>,
    pub(crate) requeuer: MessageRequeuer<P>,
    pub(crate) oldest_unwritten: OldestUnwritten,
    pub(crate) clock: P::Clock,
}

impl<P: Ports> BatchWriter<P> {
    /// Writes a batch, and returns the messages with records that are not durable.
    pub(crate) async fn write_batch(
        &self,
        batch: Vec<ReceivedMessage>,
        deadline: Duration,
    ) -> Vec<MessageId> {
        let mut refused = RefusedMessages::new(&batch);
        let write_by = if refused.may_put_off() {
            deadline.saturating_sub(PUT_OFF_BEFORE)
        } else {
            deadline
        };
        let messages: Vec<_> = batch.iter().map(|message| message.id.clone()).collect();
        // A full batch takes some ten milliseconds to read.
        let received = match run_blocking(move || Ok(receive_batch(batch))).await {
            Ok(received) => received,
            Err(error) => {
                tracing::error!(
                    error = &error as &dyn Error,
                    "records not read, their messages come back"
                );
                return messages;
            }
        };
        let ReceivedRecords {
            hours,
            waits,
            newer,
            malformed,
        } = received;
        malformed.iter().for_each(count_lost);
        self.tries.know_health(write_by).await;
        let mut written = Vec::with_capacity(hours.len());
        // The newest hour is the largest, and what is asked for most.
        for (hour, gathered) in hours.into_iter().rev() {
            let oldest = gathered.oldest_time();
            let tries = self.tries.tries_by_key(&gathered.records);
            match self.hours.write_hour(hour, gathered, write_by).await {
                Ok(()) => written.push(tries),
                Err(unwritten) => refused.add_hour(unwritten, oldest),
            }
        }
        self.tries
            .add_tries(written.into_iter().rev(), &messages, write_by)
            .await;
        self.waiting
            .add_waiting(waits, &refused.messages, write_by)
            .await;
        self.oldest_unwritten
            .set_gauge(refused.oldest, self.clock.now());
        let mut failures = self.requeuer.put_off(refused, deadline).await;
        for (message, version) in newer {
            failures.extend(
                self.requeuer
                    .wait_for_newer(message, version, deadline)
                    .await,
            );
        }
        failures
    }
}

/// Counts the records of a message that cannot be read: as many as it shows, or one.
fn count_lost(malformed: &MalformedMessage) {
    let MalformedMessage { id, records, error } = malformed;
    metrics::counter!("LogRecordsLostCount").increment(*records as u64);
    tracing::error!(
        message_id = %id.0, records, error = error as &dyn Error,
        "records not readable, the delivery log has a gap"
    );
}
