//! The walk through the objects of one replay: read a few, send what was asked for, write how far
//! the walk has come.

use std::error::Error;
use std::ops::Range;

use futures_util::future::{join_all, try_join};
use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::attempt::PackingLimits;
use posthaste_core::model::DEAD_LETTER_OBJECT_BYTES_PREFERRED;
use posthaste_core::release::recovery::{RecoveryRules, ramped_rate};
use posthaste_core::release::{ReplayContext, ReplayPace, ReplaySelection};
use posthaste_core::stored::{ReplayProgress, ResolvedLetters};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PortError, Ports, StoredObject};
use posthaste_services::replay::{LetterObject, LetterObjects, letter_objects};
use posthaste_services::resolved::resolved_letters;
use posthaste_services::timeout_at;

use super::pick::{LetterSelector, LoadedLetters, error_with_causes, pick_letters};
use super::receiver::ReplayReceiver;
use super::records::{ReplayError, ReplayJob};
use super::recovery;
use super::sender::queue_messages;
use crate::ports::WakePorts;
use crate::run::WakeRun;

/// Objects read side by side, with one record written after them. A larger object is read alone.
const AT_ONCE: PackingLimits = PackingLimits {
    items_max: 8,
    bytes_preferred: 8 * 1024 * 1024,
};

/// Largest object that is read, in bytes: four times what deadletter gathers. Its events take as
/// much again.
const OBJECT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Runs in which an object that cannot be read is tried before it counts as failed.
const READS_MAX: u32 = 5;

/// The same where nobody asked for the replay, and nobody may look at what became of it: the runs
/// of a day. One object takes them, so that a store that is out of reach for days costs few.
const READS_OF_RECOVERY_MAX: u32 = 24 * 60;

/// One replay in one run.
struct LetterWalk<'a, P: Ports> {
    run: WakeRun<'a, P>,
    job: &'a mut ReplayJob,
    to: ReplayReceiver,
    selection: ReplaySelection,
    /// The rules of a recovery.
    recovery: Option<RecoveryRules>,
    pace: ReplayPace,
    /// The number of events that may be sent in this run beside its rate.
    room: usize,
}

/// The next step of a replay in this run.
#[derive(PartialEq, Eq)]
enum LetterWalkStep {
    Object,
    /// The rate is used up for this minute, or the time is.
    Rest,
}

/// Continues a replay where its record says, until its end or until this run must stop.
pub(super) async fn resume_letter_walk<P: Ports>(
    run: WakeRun<'_, P>,
    job: &mut ReplayJob,
    to: ReplayReceiver,
) -> Result<(), ReplayError> {
    let selection = job.record.selection().map_err(ReplayError::Request)?;
    let paced_until = job.record.progress.paced_until;
    let now = run.ports.clock.now();
    let mut rate = selection.rate_per_second();
    let mut room = usize::MAX;
    let mut recovery = None;
    if let Some(origin) = &job.record.recovery {
        room = recovery::room_in_run(run, &to.subscription).await?;
        rate = ramped_rate(
            to.subscription.recovery.rate_per_second,
            origin.ramp_from,
            now,
        );
        recovery = Some(recovery::rules(origin, &to.subscription, now));
    }
    LetterWalk {
        run,
        job,
        to,
        selection,
        recovery,
        pace: ReplayPace::new(rate, paced_until, now),
        room,
    }
    .continue_walk()
    .await
}

impl<P: Ports> LetterWalk<'_, P> {
    async fn continue_walk(&mut self) -> Result<(), ReplayError> {
        let ports = self.run.ports;
        loop {
            let after = self.job.record.progress.after.clone();
            let listed =
                letter_objects(&ports.dead_letters, &self.selection, after.as_deref()).await;
            let listed = listed.map_err(ReplayError::List)?;
            for range in AT_ONCE.cut_into_runs(listed.objects.iter().map(object_size)) {
                if self.replay_some(&listed, range).await? == LetterWalkStep::Rest {
                    return Ok(());
                }
            }
            let progress = &mut self.job.record.progress;
            let left_out = listed.left_out(progress.after.as_deref(), None);
            progress.left_out.add_all(&left_out);
            match listed.next_after {
                Some(after) => self.job.record.progress.after = Some(after),
                None => return self.job.change_state(ports, ReplayState::Done, None).await,
            }
            if self.must_rest() {
                return self.job.save(ports).await;
            }
        }
    }

    fn must_rest(&self) -> bool {
        !self.run.has_time() || self.room_now() == 0
    }

    fn room_now(&self) -> usize {
        self.pace.room_in_run().min(self.room)
    }

    /// Replays some objects, and writes how far that went.
    async fn replay_some(
        &mut self,
        listed: &LetterObjects,
        range: Range<usize>,
    ) -> Result<LetterWalkStep, ReplayError> {
        let run = self.run;
        let objects = &listed.objects[range];
        let begin = self.job.record.progress.after.clone();
        if self.must_rest() {
            return Ok(LetterWalkStep::Rest);
        }
        if !run.ports.pressure.takes_replays(&self.to.topic.name).await {
            self.job
                .change_state(
                    run.ports,
                    ReplayState::Waiting,
                    Some(ReplayReason::Pressure),
                )
                .await?;
            return Ok(LetterWalkStep::Rest);
        }
        let reads = join_all(
            objects
                .iter()
                .map(|object| read_letters(run, object, &self.selection)),
        )
        .await;
        if !self.to.refresh_and_check(run.ports, self.job).await? {
            return Ok(LetterWalkStep::Rest);
        }
        let mut replayed = Ok(LetterWalkStep::Object);
        for (object, read) in objects.iter().zip(reads) {
            let sent = self.send_object(&object.key, read).await;
            let is_whole = self.job.record.progress.part.is_none();
            replayed = sent.map(|()| {
                if is_whole {
                    LetterWalkStep::Object
                } else {
                    LetterWalkStep::Rest
                }
            });
            if !matches!(replayed, Ok(LetterWalkStep::Object)) {
                break;
            }
        }
        let record = &mut self.job.record;
        record.progress.paced_until = self.pace.paced_until();
        // Up to the objects that are done with: the next run lists those behind them again.
        let until = record
            .progress
            .after
            .clone()
            .filter(|_| record.progress.after != begin);
        if let Some(until) = until {
            let left_out = listed.left_out(begin.as_deref(), Some(&until));
            record.progress.left_out.add_all(&left_out);
        }
        if replayed.is_ok() {
            record.state = ReplayState::Running;
            record.reason = None;
        } else {
            record.state = ReplayState::Waiting;
            record.reason = Some(ReplayReason::Unavailable);
        }
        self.job.save(run.ports).await?;
        replayed
    }

    /// Sends what was asked for of one object, as far as the rate allows.
    async fn send_object(
        &mut self,
        key: &str,
        read: Result<LoadedLetters, PortError>,
    ) -> Result<(), ReplayError> {
        let record = &mut self.job.record;
        let progress = &mut record.progress;
        let letters = match read {
            Ok(letters) => letters,
            Err(error) => {
                let reads_max = reads_max(&error, record.recovery.is_some());
                if progress.count_failed_run(key) < reads_max {
                    return Err(ReplayError::Read(error));
                }
                skip_failed_object(progress, key, &error);
                return Ok(());
            }
        };
        let ReplayReceiver {
            topic,
            subscription,
        } = &self.to;
        let done = progress.events_done_of(key);
        let picked = match pick_letters(
            &letters,
            subscription,
            LetterSelector {
                selection: &self.selection,
                recovery: self.recovery.as_ref(),
            },
            done,
            self.pace.room_in_run().min(self.room),
        ) {
            Ok(picked) => picked,
            Err(error) => {
                skip_failed_object(progress, key, &error);
                return Ok(());
            }
        };
        let replay = ReplayContext {
            id: &record.id,
            subscription,
            default_time_to_live: topic.default_time_to_live,
            gives_new_ids: record.request.new_id,
            counts_recovery: record.recovery.is_some(),
        };
        let messages = replay.messages_of_object(
            key,
            &picked.events,
            &mut self.pace,
            self.run.ports.clock.now(),
        );
        self.room = self.room.saturating_sub(picked.events.len());
        let sent = queue_messages(self.run, &messages).await;
        picked
            .record_results(key, &messages, sent, progress)
            .map_or(Ok(()), |error| Err(ReplayError::Send(error)))
    }
}

/// Reads an object, and which of its letters are resolved unless they are asked for too. An object
/// that is too large, or gone, is an error that lasts.
pub(in crate::jobs) async fn read_letters<P: Ports>(
    run: WakeRun<'_, P>,
    object: &LetterObject,
    selection: &ReplaySelection,
) -> Result<LoadedLetters, PortError> {
    if object.bytes.is_some_and(|bytes| bytes > OBJECT_BYTES_MAX) {
        return Err(PortError::new(
            "read an object of more than 16 MiB",
            ErrorKind::Invalid,
        ));
    }
    let WakePorts {
        dead_letters,
        clock,
        ..
    } = run.ports;
    let resolved = async {
        if selection.includes_resolved() {
            return Ok(ResolvedLetters::default());
        }
        resolved_letters(dead_letters, &object.key).await
    };
    let read = try_join(dead_letters.get(&object.key), resolved);
    match timeout_at(clock, run.send, Box::pin(read)).await {
        Some(Ok((Some(StoredObject { bytes, .. }), resolved))) => Ok(LoadedLetters {
            key: object.key.clone(),
            bytes,
            resolved,
        }),
        Some(Ok((None, _))) => Err(PortError::new("find the object", ErrorKind::NotFound)),
        Some(Err(error)) => Err(error),
        None => Err(PortError::new(
            "read the object in time",
            ErrorKind::TimedOut,
        )),
    }
}

/// Counts an object that cannot be replayed, and goes on past it.
fn skip_failed_object(progress: &mut ReplayProgress, key: &str, error: &dyn Error) {
    progress.add_failure(key, None, error_with_causes(error));
    progress.finish_object(key);
}

/// The runs in which an object is tried that cannot be read for this error.
fn reads_max(error: &PortError, is_recovery: bool) -> u32 {
    match (is_lasting(error), is_recovery) {
        // The permission is missing, or that for the key of the objects: somebody mends that.
        (true, true) if error.kind == ErrorKind::Denied => READS_OF_RECOVERY_MAX,
        (true, _) => 1,
        (false, true) => READS_OF_RECOVERY_MAX,
        (false, false) => READS_MAX,
    }
}

/// Tells whether a store will answer no better in a minute.
pub(super) fn is_lasting(error: &PortError) -> bool {
    matches!(
        error.kind,
        ErrorKind::Denied | ErrorKind::Invalid | ErrorKind::NotFound
    )
}

fn object_size(object: &LetterObject) -> usize {
    // An object that the replay names has no known size: it counts as large as deadletter makes
    // objects.
    let bytes = object
        .bytes
        .unwrap_or(DEAD_LETTER_OBJECT_BYTES_PREFERRED as u64);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use posthaste_core::api::{IsoTimestamp, LeftOutReason, RecoveredOutage};
    use posthaste_core::model::{
        DeadLetter, DeadLetterReason, EventPayload, SubscriptionCreation, Timestamp,
    };
    use posthaste_core::stored::dead_letter::dead_letter_record;
    use posthaste_core::stored::{DeadLetterArray, RecoveryOrigin, ReplayRecord, layout};
    use posthaste_testkit::records::{delivery, subscription_name, topic_name};
    use posthaste_testkit::{CallFault, FaultPlan, PortOperation};
    use serde_json::{Value, json};
    use std::time::Duration;

    use super::*;
    use crate::testing::{Kit, subscription};

    const ID: &str = "20260307T040500Z-x";

    /// Writes a dead-letter object with this number of events.
    fn dead_letters(kit: &Kit, id: &str, events: usize) {
        let topic = topic_name("orders");
        let subscription = subscription_name("billing");
        let now = kit.clock.now();
        let key = layout::dead_letter_key(&topic, &subscription, now, id);
        let event = |n| {
            Bytes::from(
                json!({ "specversion": "1.0", "id": n, "source": "/s", "type": "t" }).to_string(),
            )
        };
        let payloads: Vec<_> = (0..events).map(|n| event(format!("{id}-{n}"))).collect();
        let inline = payloads.iter().cloned().map(EventPayload::Inline);
        let delivery = delivery((topic, subscription), id, inline, now);
        let reason = DeadLetterReason::TimeToLiveExceeded;
        let dead = DeadLetter::new(reason, delivery);
        let mut gathered = DeadLetterArray::default();
        for (entry, payload) in dead.delivery.events.iter().zip(&payloads) {
            gathered.push(&dead_letter_record(&dead, entry, payload));
        }
        kit.store.write(&key, gathered.into_object());
    }

    /// One run of a replay with this rate; how it ended, and its record.
    async fn run(kit: &Kit, rate: u32) -> (Result<(), ReplayError>, ReplayRecord) {
        run_around(kit, rate, |_| {}).await
    }

    fn settings(status: &str) -> Value {
        let status = json!({ "state": status, "since": "1970-01-01T00:00:00Z" });
        let billing = subscription(json!({ "status": status }));
        json!({ "subscriptions": { "billing": billing } })
    }

    /// The same, with something that happens after the subscription was looked up.
    async fn run_around(
        kit: &Kit,
        rate: u32,
        happens: impl FnOnce(&mut ReplayRecord),
    ) -> (Result<(), ReplayError>, ReplayRecord) {
        kit.topic(settings("Active"));
        if kit.store.keys(layout::REPLAYS).is_empty() {
            let request = serde_json::from_value(json!({ "ratePerSecond": rate })).unwrap();
            let name = (subscription_name("billing"), &SubscriptionCreation::UNKNOWN);
            let record = ReplayRecord::new(
                ID.to_owned(),
                topic_name("orders"),
                name,
                request,
                kit.clock.now(),
            );
            kit.store
                .write(&layout::replay_record_key(ID), record.render());
        }
        let mut job = ReplayJob::load(&kit.ports, ID).await.unwrap().unwrap();
        let to = ReplayReceiver::find_for_replay(&kit.ports, &job.record).await;
        let to = to.unwrap().unwrap();
        let mut changed = job.record.clone();
        happens(&mut changed);
        if changed != job.record {
            kit.store
                .write(&layout::replay_record_key(ID), changed.render());
        }
        let ended = resume_letter_walk(kit.run(), &mut job, to).await;
        let after = ReplayJob::load(&kit.ports, ID).await.unwrap().unwrap();
        (ended, after.record)
    }

    /// Nothing is sent for a subscription that was paused or deleted since it was looked up.
    #[tokio::test]
    async fn subscription_that_changed_since_gets_nothing() {
        let paused = settings("Paused");
        for changed in [paused, json!({ "subscriptions": {} })] {
            let kit = Kit::new();
            dead_letters(&kit, "a", 2);
            let (ended, record) = run_around(&kit, 100, |_| kit.topic(changed)).await;
            ended.unwrap();
            assert_eq!(counts(&record).1, [0; 3]);
            assert_eq!(kit.queue.take_bodies().len(), 0);
            // The next run goes on where it may.
            let (ended, record) = run(&kit, 100).await;
            ended.unwrap();
            assert_eq!(counts(&record), (ReplayState::Done, [2, 2, 0]));
        }
    }

    #[tokio::test]
    async fn replay_that_was_cancelled_seconds_ago_sends_nothing() {
        let kit = Kit::new();
        dead_letters(&kit, "a", 2);
        let cancel = |record: &mut ReplayRecord| {
            record.state = ReplayState::Cancelled;
            kit.clock.advance(Duration::from_secs(1));
        };
        let (ended, record) = run_around(&kit, 100, cancel).await;
        ended.unwrap();
        assert_eq!(counts(&record), (ReplayState::Cancelled, [0; 3]));
        assert_eq!(kit.queue.take_bodies().len(), 0);
    }

    fn counts(record: &ReplayRecord) -> (ReplayState, [u64; 3]) {
        let progress = &record.progress;
        (
            record.state,
            [progress.found, progress.queued, progress.failed],
        )
    }

    /// All objects are sent, and one that holds no dead letters counts as failed.
    #[tokio::test]
    async fn objects_are_all_sent_and_a_broken_one_counts_as_failed() {
        let kit = Kit::new();
        dead_letters(&kit, "a", 2);
        dead_letters(&kit, "c", 3);
        let topic = topic_name("orders");
        let subscription = subscription_name("billing");
        kit.store.write(
            &layout::dead_letter_key(&topic, &subscription, kit.clock.now(), "b"),
            "{",
        );
        let (ended, record) = run(&kit, 100).await;
        ended.unwrap();
        assert_eq!(counts(&record), (ReplayState::Done, [5, 5, 1]));
        assert!(!kit.queue.take_bodies().is_empty());
    }

    /// Letters beside those that were named are neither sent nor counted, also where the walk rests
    /// between them. Places that the object does not have count as failed, once.
    #[tokio::test]
    async fn only_letters_that_were_named_are_sent() {
        for rate in [1, 100] {
            let kit = Kit::new();
            dead_letters(&kit, "a", 100);
            dead_letters(&kit, "b", 2);
            let keys = kit.store.keys("ORDERS/BILLING/");
            let letters: Vec<_> = (0..100)
                .step_by(2)
                .chain([100, 250])
                .map(|index| json!({ "object": keys[0], "index": index }))
                .collect();
            let request = json!({ "letters": letters, "ratePerSecond": rate });
            let name = (subscription_name("billing"), &SubscriptionCreation::UNKNOWN);
            let record = ReplayRecord::new(
                ID.to_owned(),
                topic_name("orders"),
                name,
                serde_json::from_value(request).unwrap(),
                kit.clock.now(),
            );
            kit.store
                .write(&layout::replay_record_key(ID), record.render());
            let mut after = run(&kit, rate).await.1;
            while after.state == ReplayState::Running {
                kit.clock.advance(Duration::from_mins(1));
                after = run(&kit, rate).await.1;
            }
            assert_eq!(counts(&after), (ReplayState::Done, [50, 50, 2]));
            assert!(after.progress.left_out.is_empty());
            let failures = after.progress.failures.iter();
            let places: Vec<_> = failures
                .map(|failure| (&failure.key, failure.index))
                .collect();
            assert_eq!(places, [(&keys[0], Some(100)), (&keys[0], Some(250))]);
        }
    }

    #[tokio::test]
    async fn letters_that_are_resolved_are_left_out_and_counted() {
        let kit = Kit::new();
        dead_letters(&kit, "a", 3);
        let topic = topic_name("orders");
        let subscription = subscription_name("billing");
        let key = layout::dead_letter_key(&topic, &subscription, kit.clock.now(), "a");
        kit.store.write(
            &layout::resolved_letters_key(&key),
            ResolvedLetters::from_places([0, 2]).render(),
        );
        let (ended, record) = run(&kit, 100).await;
        ended.unwrap();
        assert_eq!(
            (counts(&record), record.progress.resolved),
            ((ReplayState::Done, [1, 1, 0]), 2)
        );
    }

    /// Also where the replay rests in the middle of a list of objects.
    #[tokio::test]
    async fn left_out_objects_are_counted_once() {
        let kit = Kit::new();
        dead_letters(&kit, "a", 2);
        dead_letters(&kit, "c", 70);
        for name in ["0.json", "2026/3/zzz.json", "zzz.json"] {
            kit.store.write(&format!("ORDERS/BILLING/{name}"), "[]");
        }
        let first = run(&kit, 1).await.1;
        assert_eq!(first.state, ReplayState::Running);
        kit.clock.advance(Duration::from_mins(1));
        let after = run(&kit, 1).await.1;
        assert_eq!(counts(&after), (ReplayState::Done, [72, 72, 0]));
        let left_out: Vec<_> = after.progress.left_out.iter().collect();
        assert_eq!(left_out, [(LeftOutReason::NoTime, 3)]);
    }

    /// An object that cannot be read waits, and counts as failed after some runs.
    #[tokio::test]
    async fn unread_object_waits_and_fails_after_some_runs() {
        let plan = FaultPlan::by(|effect| {
            let is_hit = effect.operation == PortOperation::Get && effect.key.ends_with("a.json");
            is_hit.then_some(CallFault::Before(ErrorKind::TimedOut))
        });
        let kit = Kit::with(&plan, &FaultPlan::none());
        dead_letters(&kit, "a", 2);
        for _ in 1..READS_MAX {
            let (ended, record) = run(&kit, 100).await;
            assert!(matches!(ended, Err(ReplayError::Read(_))), "{ended:?}");
            assert_eq!(record.reason, Some(ReplayReason::Unavailable));
            assert_eq!(counts(&record), (ReplayState::Waiting, [0, 0, 0]));
        }
        let (ended, record) = run(&kit, 100).await;
        ended.unwrap();
        assert_eq!(counts(&record), (ReplayState::Done, [0, 0, 1]));
    }

    /// The same, of a replay that nobody asked for.
    async fn recover(kit: &Kit, tried: u32) -> (Result<(), ReplayError>, ReplayRecord) {
        let begun = kit.store.keys(layout::REPLAYS).is_empty();
        run_around(kit, 100, |record| {
            if begun {
                let origin = RecoveryOrigin {
                    outage: RecoveredOutage {
                        outage_since: IsoTimestamp(Timestamp::EPOCH),
                    },
                    cancelled_at: None,
                    on_its_way: Vec::new(),
                    ramp_from: Timestamp::EPOCH,
                };
                *record = record.clone().with_recovery_origin(origin);
                let key = kit.store.keys("ORDERS/").remove(0);
                (0..tried).for_each(|_| {
                    record.progress.count_failed_run(&key);
                });
            }
        })
        .await
    }

    /// Reads of this kind of error, until the plan is switched off.
    fn unreadable(kind: ErrorKind) -> FaultPlan {
        FaultPlan::by(move |effect| {
            let is_hit = effect.operation == PortOperation::Get && effect.key.ends_with("a.json");
            is_hit.then_some(CallFault::Before(kind))
        })
    }

    #[tokio::test]
    async fn recovery_waits_for_letters_that_are_denied_or_late() {
        for kind in [ErrorKind::Denied, ErrorKind::TimedOut] {
            let plan = unreadable(kind);
            let kit = Kit::with(&plan, &FaultPlan::none());
            dead_letters(&kit, "a", 2);
            // The first run finds that the record was written since, and fails.
            drop(recover(&kit, 0).await);
            for _ in 0..2 * READS_MAX {
                let (ended, record) = recover(&kit, 0).await;
                assert!(matches!(ended, Err(ReplayError::Read(_))), "{ended:?}");
                assert_eq!(record.reason, Some(ReplayReason::Unavailable));
                assert_eq!(counts(&record), (ReplayState::Waiting, [0, 0, 0]));
            }
            plan.switch(false);
            let (ended, record) = recover(&kit, 0).await;
            ended.unwrap();
            assert_eq!(record.state, ReplayState::Done);
            assert_eq!(record.progress.failed, 0);
        }
    }

    #[tokio::test]
    async fn recovery_passes_an_object_that_is_not_read_for_a_day() {
        let kit = Kit::with(&unreadable(ErrorKind::Denied), &FaultPlan::none());
        dead_letters(&kit, "a", 2);
        drop(recover(&kit, READS_OF_RECOVERY_MAX - 2).await);
        let (ended, record) = recover(&kit, 0).await;
        assert!(matches!(ended, Err(ReplayError::Read(_))), "{ended:?}");
        assert_eq!(record.state, ReplayState::Waiting);
        let (ended, record) = recover(&kit, 0).await;
        ended.unwrap();
        assert_eq!(counts(&record), (ReplayState::Done, [0, 0, 1]));
    }

    /// An object larger than the rate goes in parts, and the record remembers how far it went.
    #[tokio::test]
    async fn object_above_the_rate_goes_in_parts_kept_in_the_record() {
        let kit = Kit::new();
        dead_letters(&kit, "a", 100);
        let (ended, record) = run(&kit, 1).await;
        ended.unwrap();
        let (state, [found, queued, failed]) = counts(&record);
        assert_eq!((state, queued, failed), (ReplayState::Running, found, 0));
        assert_eq!(
            record.progress.part.map(|part| part.events as u64),
            Some(found)
        );
        assert!((1..100).contains(&found), "{found}");
    }
}
