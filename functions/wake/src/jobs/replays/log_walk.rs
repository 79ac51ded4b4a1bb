//! The walk of one replay through the delivery log: read some records, send the events whose
//! deliveries ended with them, write how far the walk has come.

use std::time::Duration;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use posthaste_core::api::{LeftOutCounts, LeftOutReason, ReplayReason, ReplayState};
use posthaste_core::delivery_log::{
    DeliveryHistory, LogRecord, LogResult, RecordKind, RecordLookup, gather_by_delivery,
};
use posthaste_core::model::time::whole_millis;
use posthaste_core::model::{EarlierLife, Timestamp};
use posthaste_core::release::{
    LogPosition, ReplayContext, ReplayPace, ReplaySelection, ResentEvent, replayed_key,
};
use posthaste_ports::{Clock, ErrorKind, Ports};
use posthaste_services::kept_event::KeptEvent;
use posthaste_services::resolved::resolved_letters;

use super::log_records::{LogPart, LogPartReader};
use super::pick::error_with_causes;
use super::receiver::ReplayReceiver;
use super::records::{ReplayError, ReplayJob};
use super::sender::queue_messages;
use super::walk::is_lasting;
use crate::ports::WakePorts;
use crate::run::WakeRun;

/// Deliveries that are looked up side by side.
const LOOK_UPS_AT_ONCE: usize = 8;

/// Bytes of events with which some are sent before more are read.
const BYTES_PREFERRED: usize = 8 * 1024 * 1024;

/// The reason why an event cannot be sent where the log has too much of its id.
const TOO_MANY_RECORDS: &str = "the delivery log has more records of its id than are read";

/// The time by which clocks may differ.
const CLOCKS_DIFFER_MAX: Duration = Duration::from_hours(1);

/// The reason why an event cannot be sent.
const NO_PAYLOAD: &str = "neither the delivery log nor a dead letter has its payload";

/// One replay in one run.
struct LogWalk<'a, P: Ports> {
    run: WakeRun<'a, P>,
    job: &'a mut ReplayJob,
    to: ReplayReceiver,
    selection: ReplaySelection,
    pace: ReplayPace,
    at: LogPosition,
}

/// The events of a part that were looked at.
#[derive(Debug, Default)]
struct PickedLogEvents {
    sent: Vec<ResentEvent>,
    /// Bytes of those events.
    bytes: usize,
    /// Their ids.
    ids: Vec<String>,
    /// The number of events whose dead letters are resolved.
    resolved: u64,
    /// The counts of what else was left out.
    left_out: LeftOutCounts,
    /// The ids of events that cannot be sent, and why.
    failed: Vec<(String, String)>,
}

impl PickedLogEvents {
    fn add_fate(&mut self, record: &LogRecord, fate: RecordFate) {
        match fate {
            RecordFate::Sent(event) => {
                self.bytes += event.event.json().len();
                self.sent.push(ResentEvent {
                    index: self.sent.len(),
                    ..*event
                });
                self.ids.push(shown_id(record));
            }
            RecordFate::Passed => {}
            RecordFate::LeftOut(reason) => self.left_out.add(reason),
            RecordFate::Resolved => self.resolved += 1,
            RecordFate::Failed(why) => self.failed.push((shown_id(record), why.to_owned())),
        }
    }
}

/// The id of a record's event, or the key of its delivery where the event has none.
fn shown_id(record: &LogRecord) -> String {
    record
        .event_id
        .clone()
        .unwrap_or_else(|| record.delivery_key.clone())
}

/// The next step of a replay in this run.
enum LogWalkStep {
    Part,
    /// It was cancelled, or its subscription is not sent to any more: the next run says so.
    Rest,
}

/// The fate of a record's event.
enum RecordFate {
    /// It is sent again.
    Sent(Box<ResentEvent>),
    /// The delivery has not ended with this record.
    Passed,
    /// It was not asked for.
    LeftOut(LeftOutReason),
    /// The dead letter of the event is resolved.
    Resolved,
    /// It cannot be sent.
    Failed(&'static str),
}

/// Continues a replay where its record says, until its end or until this run must stop.
pub(super) async fn resume<P: Ports>(
    run: WakeRun<'_, P>,
    job: &mut ReplayJob,
    to: ReplayReceiver,
) -> Result<(), ReplayError> {
    let selection = job.record.selection().map_err(ReplayError::Request)?;
    let progress = &job.record.progress;
    let pace = ReplayPace::new(
        selection.rate_per_second(),
        progress.paced_until,
        run.ports.clock.now(),
    );
    let begun = progress.after.as_deref().and_then(LogPosition::parse);
    let from = selection.from().unwrap_or(Timestamp::EPOCH);
    let at = begun.unwrap_or_else(|| LogPosition::before_time(from));
    LogWalk {
        run,
        job,
        to,
        selection,
        pace,
        at,
    }
    .continue_walk()
    .await
}

impl<P: Ports> LogWalk<'_, P> {
    async fn continue_walk(&mut self) -> Result<(), ReplayError> {
        let ports = self.run.ports;
        if self.complete_until() < self.selection.to_time() {
            // Records of the time that is asked for are still on their way.
            return self.save_progress().await;
        }
        let mut reads = LogPartReader::new();
        self.skip_to_log_start().await?;
        let to = self.selection.to_time();
        loop {
            if !self.run.has_time() || self.pace.room_in_run() == 0 {
                return self.save_progress().await;
            }
            if !ports.pressure.takes_replays(&self.to.topic.name).await {
                return self
                    .job
                    .change_state(ports, ReplayState::Waiting, Some(ReplayReason::Pressure))
                    .await;
            }
            if self.at.time >= to {
                self.save_progress().await?;
                return self.job.change_state(ports, ReplayState::Done, None).await;
            }
            let read = reads.next(
                self.run,
                &self.selection,
                &self.to.subscription,
                &self.at,
                to,
            );
            let replayed = match read.await.map_err(ReplayError::Log) {
                Ok(part) => self.replay_part(part).await,
                Err(error) => Err(error),
            };
            if matches!(replayed, Ok(LogWalkStep::Rest)) {
                return Ok(());
            }
            if let Err(error) = replayed {
                let record = &mut self.job.record;
                record.state = ReplayState::Waiting;
                record.reason = Some(ReplayReason::Unavailable);
                self.save_progress().await?;
                return Err(error);
            }
        }
    }

    /// The time up to which every record has come into the log.
    fn complete_until(&self) -> Timestamp {
        let WakePorts {
            clock, log_delay, ..
        } = self.run.ports;
        let delay = whole_millis(*log_delay);
        Timestamp::from_millis(clock.now().as_millis().saturating_sub(delay))
    }

    /// Goes on where the log begins.
    async fn skip_to_log_start(&mut self) -> Result<(), ReplayError> {
        let begins = self
            .run
            .ports
            .log
            .begins_at()
            .await
            .map_err(ReplayError::Log)?;
        let begins = LogPosition::before_time(begins.unwrap_or_else(|| self.selection.to_time()));
        self.at = self.at.clone().max(begins);
        Ok(())
    }

    async fn save_progress(&mut self) -> Result<(), ReplayError> {
        let progress = &mut self.job.record.progress;
        progress.after = Some(self.at.to_text());
        progress.paced_until = self.pace.paced_until();
        self.job.save(self.run.ports).await
    }

    /// Sends the events of a part, as far as the rate and the time allow, and writes how far that
    /// went.
    async fn replay_part(
        &mut self,
        LogPart {
            records,
            end,
            damaged,
        }: LogPart,
    ) -> Result<LogWalkStep, ReplayError> {
        let (records, left_out) = self.split_selected(records);
        let mut picked = PickedLogEvents::default();
        let mut at = self.at.clone();
        let mut is_whole = true;
        'part: for some in records.chunks(LOOK_UPS_AT_ONCE) {
            let fates: Vec<_> = some.iter().map(|record| self.find_fate(record)).collect();
            let fates: Vec<RecordFate> = stream::iter(fates)
                .buffered(LOOK_UPS_AT_ONCE)
                .try_collect()
                .await?;
            for (record, fate) in some.iter().zip(fates) {
                if matches!(fate, RecordFate::Sent(_))
                    && picked.sent.len() == self.pace.room_in_run()
                {
                    is_whole = false;
                    break 'part;
                }
                picked.add_fate(record, fate);
                at = LogPosition::after_record(record);
            }
            if !self.run.has_time() || picked.bytes >= BYTES_PREFERRED {
                is_whole = false;
                break;
            }
        }
        if !self.to.refresh_and_check(self.run.ports, self.job).await? {
            return Ok(LogWalkStep::Rest);
        }
        self.queue_events(picked).await?;
        // What comes behind the place is read again.
        let counted = left_out.iter().filter(|(of, _)| is_whole || *of <= at);
        let record = &mut self.job.record;
        counted.for_each(|(_, reason)| record.progress.left_out.add(*reason));
        self.at = if is_whole {
            LogPosition::before_time(end)
        } else {
            at
        };
        for (file, why) in damaged {
            if !record
                .progress
                .failures
                .iter()
                .any(|failure| failure.key == file)
            {
                record.progress.add_failure(&file, None, why);
            }
        }
        record.state = ReplayState::Running;
        record.reason = None;
        self.save_progress().await.map(|()| LogWalkStep::Part)
    }

    /// The records with which a selected delivery may have ended, and the places of those with
    /// which others count as left out.
    fn split_selected(
        &self,
        records: Vec<LogRecord>,
    ) -> (Vec<LogRecord>, Vec<(LogPosition, LeftOutReason)>) {
        let created = &self.to.subscription.created;
        let mut selected = Vec::new();
        let mut left_out = Vec::new();
        for record in records {
            match self.selection.leaves_out_record(&record, created) {
                None => selected.push(record),
                Some(reason) if self.selection.counts_with(&record) => {
                    left_out.push((LogPosition::after_record(&record), reason));
                }
                Some(_) => {}
            }
        }
        (selected, left_out)
    }

    /// Queues events, and counts what became of all. After an error the part is read again: what
    /// was queued goes out twice, under one key.
    async fn queue_events(&mut self, picked: PickedLogEvents) -> Result<(), ReplayError> {
        let PickedLogEvents {
            sent,
            ids,
            resolved,
            left_out,
            mut failed,
            ..
        } = picked;
        let ReplayReceiver {
            topic,
            subscription,
        } = &self.to;
        let default_time_to_live = topic.default_time_to_live;
        let replay = ReplayContext {
            id: &self.job.record.id,
            subscription,
            default_time_to_live,
            gives_new_ids: self.job.record.request.new_id,
            counts_recovery: false,
        };
        let messages = replay.messages_of_events(&sent, &mut self.pace, self.run.ports.clock.now());
        let mut queued = 0;
        for (message, result) in messages
            .iter()
            .zip(queue_messages(self.run, &messages).await)
        {
            match result {
                Ok(()) => queued += len_as_u64(&message.indexes),
                // The queue will never take it.
                Err(error) if error.kind == ErrorKind::Invalid => {
                    failed.extend(
                        message
                            .indexes
                            .iter()
                            .map(|index| (ids[*index].clone(), error_with_causes(&error))),
                    );
                }
                Err(error) => return Err(ReplayError::Send(error)),
            }
        }
        let progress = &mut self.job.record.progress;
        progress.queued += queued;
        progress.resolved += resolved;
        progress.left_out.add_all(&left_out);
        progress.found += queued + len_as_u64(&failed);
        for (id, why) in failed {
            progress.add_failure(&id, None, why);
        }
        Ok(())
    }

    async fn find_fate(&self, record: &LogRecord) -> Result<RecordFate, ReplayError> {
        let Some(id) = record.event_id.clone() else {
            return Ok(RecordFate::Failed("its id is not known"));
        };
        let Some(history) = self.find_history(record, &id).await? else {
            return Ok(RecordFate::Failed(TOO_MANY_RECORDS));
        };
        if history.ending_record().record_id != record.record_id {
            return Ok(RecordFate::Passed);
        }
        if let Some(reason) = self.selection.leaves_out_end(&history) {
            return Ok(RecordFate::LeftOut(reason));
        }
        let WakePorts {
            state,
            dead_letters,
            ..
        } = self.run.ports;
        let include_former = self.selection.includes_former();
        let kept = KeptEvent {
            state,
            dead_letters,
            to: &self.to.subscription,
            id: &id,
            include_former,
        };
        let letter = match kept.find_letter(&history).await {
            Err(error) if is_lasting(&error) => None,
            letter => letter.map_err(ReplayError::Event)?,
        };
        if let Some(place) = letter
            .as_ref()
            .filter(|_| !self.selection.includes_resolved())
        {
            let resolved = resolved_letters(dead_letters, &place.object).await;
            if resolved
                .map_err(ReplayError::Event)?
                .is_resolved(place.index)
            {
                return Ok(RecordFate::Resolved);
            }
        }
        let Some(event) = kept
            .find_event(&history)
            .await
            .map_err(ReplayError::Event)?
        else {
            return Ok(RecordFate::Failed(NO_PAYLOAD));
        };
        let key = replayed_key(&self.job.record.id, &history.key);
        let webhook_id = history.webhook_id();
        Ok(RecordFate::Sent(Box::new(ResentEvent {
            index: 0,
            event,
            key,
            letter,
            earlier: Some(EarlierLife {
                accepted_at: history.first().accepted_at,
                recoveries: 0,
            }),
            webhook_id,
        })))
    }

    /// The delivery of a record. One that the endpoint took at once needs no other record. `None`
    /// if the log has too much of its id.
    async fn find_history(
        &self,
        record: &LogRecord,
        id: &str,
    ) -> Result<Option<DeliveryHistory>, ReplayError> {
        if is_whole(record) {
            return Ok(gather_by_delivery(vec![record.clone()]).pop());
        }
        let topic = Some(record.topic.clone());
        let subscription = Some(record.subscription.clone());
        let accepted = record.accepted_at.as_millis();
        let ahead = whole_millis(CLOCKS_DIFFER_MAX);
        let from = Some(Timestamp::from_millis(accepted.saturating_sub(ahead)));
        let event_id = Some(id.to_owned());
        let look_up = RecordLookup {
            topic,
            subscription,
            event_id,
            from,
            ..RecordLookup::default()
        };
        let found = self
            .run
            .ports
            .log
            .look_up_event(look_up, || true)
            .await
            .map_err(ReplayError::Log)?;
        let mut histories = gather_by_delivery(found.records).into_iter();
        Ok(histories.find(|history| history.key == record.delivery_key))
    }
}

/// Whether a record says everything of its delivery: the first attempt, which the endpoint took,
/// with the payload.
fn is_whole(record: &LogRecord) -> bool {
    let is_first = record.kind == RecordKind::Attempt && record.attempt == 1;
    is_first && record.result == LogResult::Delivered && record.payload.is_some()
}

fn len_as_u64<T>(items: &[T]) -> u64 {
    u64::try_from(items.len()).unwrap_or(u64::MAX)
}
