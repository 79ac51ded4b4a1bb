//! The walk through the objects of one replay: read a few, send what was asked for, write how far that is.

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::attempt::Pack;
use posthaste_core::model::{DEAD_LETTER_OBJECT_BYTES_PREFERRED, Subscription, Topic};
use posthaste_core::pressure::{Level, Tier};
use posthaste_core::release::{Pace, Replay, Selection};
use posthaste_core::stored::ReplayProgress;
use posthaste_ports::{Clock, ErrorKind, Object, ObjectStore, PortError, Ports};
use posthaste_services::replay::{LetterObject, letter_objects};
use posthaste_services::{PressureReader, timeout_at};

use super::error::ReplayError;
use super::pick::{chain, pick};
use super::records::{Job, Records};
use super::sender::Sender;
use crate::budget::Budget;

/// Objects read side by side, with one record written after them. A larger one is read alone.
const AT_ONCE: Pack = Pack { items_max: 8, bytes_preferred: 8 * 1024 * 1024 };

/// Largest object that is read, in bytes: four times what deadletter gathers. Its events take as much again.
const OBJECT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// In so many runs an object is tried that cannot be read, before it counts as failed.
const READS_MAX: u32 = 5;

/// Walks through replays.
pub(super) struct Walks<'a, P: Ports> {
    pub(super) records: Records<'a, P>,
    pub(super) sender: Sender<'a, P>,
    pub(super) dead_letters: &'a P::DeadLetters,
    pub(super) pressure: &'a PressureReader<P::Store, P::Clock>,
    pub(super) clock: &'a P::Clock,
}

/// The subscription that the events are sent to, and its topic.
#[derive(Clone, Copy)]
pub(super) struct Receiver<'a> {
    pub(super) topic: &'a Topic,
    pub(super) subscription: &'a Subscription,
}

/// One replay in one run.
struct Walk<'a> {
    selection: Selection,
    pace: Pace,
    to: Receiver<'a>,
    budget: Budget<'a>,
}

/// The next step of a replay in this run.
#[derive(PartialEq, Eq)]
enum Next {
    Object,
    /// The rate is used up for this minute, or the time is.
    Rest,
}

impl<P: Ports> Walks<'_, P> {
    /// Goes on with a replay where its record says, until its end or until this run must stop.
    pub(super) async fn resume(
        &self,
        job: &mut Job,
        to: Receiver<'_>,
        budget: Budget<'_>,
    ) -> Result<(), ReplayError> {
        let selection = job.record.selection().map_err(ReplayError::Request)?;
        let paced_until = job.record.progress.paced_until;
        let pace = Pace::new(selection.rate_per_second(), paced_until, self.clock.now());
        let mut walk = Walk { selection, pace, to, budget };
        loop {
            let after = job.record.progress.after.clone();
            let listed = letter_objects(self.dead_letters, &walk.selection, after.as_deref()).await;
            let listed = listed.map_err(ReplayError::List)?;
            for range in AT_ONCE.cut(listed.objects.iter().map(size)) {
                if self.replay_some(job, &mut walk, &listed.objects[range]).await? == Next::Rest {
                    return Ok(());
                }
            }
            match listed.next_after {
                Some(after) => job.record.progress.after = Some(after),
                None => return self.records.turn(job, ReplayState::Done, None).await,
            }
            if self.must_rest(&walk) {
                return self.records.save(job).await;
            }
        }
    }

    fn must_rest(&self, walk: &Walk<'_>) -> bool {
        !walk.budget.has_time(self.clock) || walk.pace.room() == 0
    }

    /// Replays some objects, and writes how far that went.
    async fn replay_some(
        &self,
        job: &mut Job,
        walk: &mut Walk<'_>,
        objects: &[LetterObject],
    ) -> Result<Next, ReplayError> {
        if self.must_rest(walk) {
            return Ok(Next::Rest);
        }
        if !self.takes_bulk().await {
            let reason = Some(ReplayReason::Pressure);
            self.records.turn(job, ReplayState::Waiting, reason).await?;
            return Ok(Next::Rest);
        }
        let reads = join_all(objects.iter().map(|object| self.read(object, walk.budget))).await;
        let mut failed = None;
        for (object, read) in objects.iter().zip(reads) {
            failed = self.send_object(job, walk, &object.key, read).await.err();
            if failed.is_some() || job.record.progress.part.is_some() {
                break;
            }
        }
        job.record.progress.paced_until = walk.pace.paced_until();
        let is_whole = job.record.progress.part.is_none();
        (job.record.state, job.record.reason) = match failed {
            Some(_) => (ReplayState::Waiting, Some(ReplayReason::Unavailable)),
            None => (ReplayState::Running, None),
        };
        self.records.save(job).await?;
        match failed {
            Some(error) => Err(error),
            None if is_whole => Ok(Next::Object),
            None => Ok(Next::Rest),
        }
    }

    /// Tells whether back pressure lets replays through: they are the first that it holds back.
    async fn takes_bulk(&self) -> bool {
        let admitted = self.pressure.admit(Tier::Bulk).await;
        let is_pressed = async || self.pressure.state().await.is_some_and(|it| it.level() != Level::Normal);
        !admitted.is_held_back() && !is_pressed().await
    }

    /// Reads an object. One that is too large, or not there, is an error that lasts.
    async fn read(&self, object: &LetterObject, budget: Budget<'_>) -> Result<Bytes, PortError> {
        if object.bytes.is_some_and(|bytes| bytes > OBJECT_BYTES_MAX) {
            return Err(PortError::new("read an object of more than 16 MiB", ErrorKind::Invalid));
        }
        match timeout_at(self.clock, budget.send, Box::pin(self.dead_letters.get(&object.key))).await {
            Some(Ok(Some(Object { bytes, .. }))) => Ok(bytes),
            Some(Ok(None)) => Err(PortError::new("find the object", ErrorKind::NotFound)),
            Some(Err(error)) => Err(error),
            None => Err(PortError::new("read the object in time", ErrorKind::TimedOut)),
        }
    }

    /// Sends what was asked for of one object, as far as the rate allows.
    async fn send_object(
        &self,
        job: &mut Job,
        walk: &mut Walk<'_>,
        key: &str,
        read: Result<Bytes, PortError>,
    ) -> Result<(), ReplayError> {
        let progress = &mut job.record.progress;
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(error) if !is_lasting(&error) && progress.try_again(key) < READS_MAX => {
                return Err(ReplayError::Read(error));
            }
            Err(error) => {
                fail(progress, key, chain(&error));
                return Ok(());
            }
        };
        let Receiver { topic, subscription } = walk.to;
        let done = progress.done_of(key);
        let picked = match pick(&bytes, subscription, &walk.selection, done, walk.pace.room()) {
            Ok(picked) => picked,
            Err(error) => {
                fail(progress, key, chain(&error));
                return Ok(());
            }
        };
        let default_time_to_live = topic.default_time_to_live;
        let replay = Replay { id: &job.record.id, subscription, default_time_to_live };
        let messages = replay.messages(key, &picked.events, &mut walk.pace, self.clock.now());
        let sent = self.sender.send(&messages, walk.budget.send).await;
        picked.note(key, &messages, sent, progress).map_or(Ok(()), |error| Err(ReplayError::Send(error)))
    }
}

/// Counts an object that cannot be replayed, and goes on past it.
fn fail(progress: &mut ReplayProgress, key: &str, why: String) {
    progress.fail(key, None, why);
    progress.finish(key);
}

/// Tells whether a store will answer no better in a minute.
fn is_lasting(error: &PortError) -> bool {
    matches!(error.kind, ErrorKind::Denied | ErrorKind::Invalid | ErrorKind::NotFound)
}

fn size(object: &LetterObject) -> usize {
    // An object that was named is taken for as large as deadletter gathers.
    let bytes = object.bytes.unwrap_or(DEAD_LETTER_OBJECT_BYTES_PREFERRED as u64);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
