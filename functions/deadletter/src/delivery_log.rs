//! Records of the delivery log: a dead letter was written, dropped, or not needed, as its endpoint
//! answered late. They are sent when that is durable, before the messages are acknowledged. What
//! cannot be recorded in time is a gap in the log; it is counted, and the dead letters stand.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use posthaste_core::delivery_log::{
    EventChange, RecordDetails, RecordText, RecordedEvent, join_records,
};
use posthaste_core::model::{
    DeadLetterReason, Delivery, DeliveryEntry, DeliveryLogMode, Subscription, Timestamp, TopicName,
};
use posthaste_ports::{Clock, ErrorKind, PortError, Ports};
use posthaste_services::catch_panic::catch_panic_now;
use posthaste_services::delivery_log::{
    RECORDS_TIME, RecordNotMade, count_lost, log_lost, send_records,
};
use posthaste_services::{LogTally, TopicRegistry, timeout_at};

use crate::letter::{LoadedLetter, ReceivedLetter};

/// Records what became of events of letters.
pub(crate) struct ChangeRecorder<P: Ports> {
    pub(crate) registry: Arc<TopicRegistry<P::Store, P::Clock>>,
    /// The queue of the delivery log's records.
    pub(crate) records: P::Queue,
    pub(crate) clock: P::Clock,
    /// The mode of topics that do not say one.
    pub(crate) delivery_log: DeliveryLogMode,
    /// Records of the delivery log that were lost.
    pub(crate) lost_records: LogTally,
}

/// An event, the letter with which it came, and its payload if that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordedEntry<'a> {
    pub(crate) letter: &'a ReceivedLetter,
    pub(crate) entry: &'a DeliveryEntry,
    pub(crate) text: Option<&'a Bytes>,
}

/// A change of events of letters of one subscription.
#[derive(Debug)]
pub(crate) struct RecordedChange<'a> {
    pub(crate) events: Vec<RecordedEntry<'a>>,
    pub(crate) change: fn(&ReceivedLetter) -> EventChange,
    /// The dead-letter object that has them.
    pub(crate) object: Option<&'a str>,
}

impl<P: Ports> ChangeRecorder<P> {
    /// Records a change, within [`RECORDS_TIME`] and before `until`.
    pub(crate) async fn record_change(&self, recorded: RecordedChange<'_>, until: Duration) {
        let Some(first) = recorded.events.first() else {
            return;
        };
        let delivery = &first.letter.dead.delivery;
        let until = until.min(self.clock.monotonic() + RECORDS_TIME);
        let sent = timeout_at(&self.clock, until, self.send_records(delivery, &recorded)).await;
        let error: Box<dyn Error> = match sent {
            Some(Ok(())) => return,
            Some(Err(error)) => error,
            None => PortError::new("record dead letters", ErrorKind::TimedOut).into(),
        };
        self.report_lost(&delivery.topic, recorded.events.len(), &*error);
    }

    /// Counts records that are missing in the log, and logs them: one line a minute.
    fn report_lost(&self, topic: &TopicName, records: usize, error: &(dyn Error + 'static)) {
        let records = count_lost(&BTreeMap::from([(topic, records)]));
        if let Some(records) = self.lost_records.add(records, self.clock.monotonic()) {
            log_lost(records, error);
        }
    }

    async fn send_records(
        &self,
        delivery: &Delivery,
        recorded: &RecordedChange<'_>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let topic = self.registry.topic(&delivery.topic).await?;
        let subscription = topic
            .as_ref()
            .and_then(|topic| topic.find_subscription(&delivery.subscription));
        let kept = recorded.events.iter().filter_map(|event| {
            let mode = log_mode(
                event.letter,
                subscription.map(|it| &**it),
                self.delivery_log,
            );
            mode.keeps_attempts().then_some((*event, mode))
        });
        let kept: Vec<_> = kept.collect();
        if kept.is_empty() {
            return Ok(());
        }
        let now = self.clock.now();
        let records = kept
            .iter()
            .filter_map(|(event, mode)| recorded.record_text(*event, *mode, now));
        let records: Vec<_> = records.collect();
        let missing = kept.len() - records.len();
        if missing > 0 {
            self.report_lost(&delivery.topic, missing, &RecordNotMade);
        }
        Ok(send_records(&self.records, &self.clock, join_records(records.iter())).await?)
    }
}

/// The mode in which the log keeps a letter. Deliver has recorded the end of what it did not fail
/// on.
fn log_mode(
    letter: &ReceivedLetter,
    subscription: Option<&Subscription>,
    default: DeliveryLogMode,
) -> DeliveryLogMode {
    if letter.dead.reason == DeadLetterReason::HandlerFailed {
        return letter.dead.delivery.log_mode(subscription, default);
    }
    subscription
        .and_then(|subscription| subscription.delivery_log)
        .unwrap_or(default)
}

impl RecordedChange<'_> {
    /// A record. `None` if it cannot be made: that never harms the dead letter.
    fn record_text(
        &self,
        recorded: RecordedEntry<'_>,
        mode: DeliveryLogMode,
        now: Timestamp,
    ) -> Option<RecordText> {
        let RecordedEntry {
            letter,
            entry,
            text,
        } = recorded;
        // Deliver has recorded the event with its payload, unless it failed on it.
        let is_first = letter.dead.reason == DeadLetterReason::HandlerFailed;
        let event = RecordedEvent {
            message_id: &letter.message.id.0,
            receive_count: letter.message.receive_count,
            delivery: &letter.dead.delivery,
            entry,
            text,
            keeps_payload: is_first && mode.keeps_payloads(),
            is_given_up: !is_first,
        };
        let details = RecordDetails {
            dead_letter_object: self.object,
            ..RecordDetails::default()
        };
        catch_panic_now(|| event.render_record(&(self.change)(letter), details, now))
            .ok()?
            .ok()
    }
}

/// The events of letters whose payloads were read.
pub(crate) fn events_of(letters: &[LoadedLetter]) -> Vec<RecordedEntry<'_>> {
    let mut events = Vec::new();
    for LoadedLetter { letter, payloads } in letters {
        let entries = letter.dead.delivery.events.iter().zip(payloads);
        events.extend(entries.map(|(entry, payload)| RecordedEntry {
            letter,
            entry,
            text: Some(payload),
        }));
    }
    events
}
