//! Walking through the objects of one replay: read a few, send what was asked for, write how far that is.

use bytes::Bytes;
use futures_util::future::join_all;
use posthaste_core::api::{ReplayReason, ReplayState};
use posthaste_core::attempt::batch::Pack;
use posthaste_core::model::topic::{Subscription, Topic};
use posthaste_core::release::replay::{Pace, Replay, ReplayMessage, Selection};
use posthaste_ports::{
    Clock, Entropy, ErrorKind, Object, ObjectStore, OutgoingMessage, PortError, PutCondition, QueueSender,
};
use posthaste_services::replay::{LetterObject, letter_objects};
use posthaste_services::send_all;

use super::job::Job;
use super::pick::{chain, pick};
use super::{ReplayError, is_lasting};
use crate::Wake;
use crate::limits::{Limits, within};

/// Objects read side by side, with one record written after them. A larger one is read alone.
const AT_ONCE: Pack = Pack { items_max: 8, bytes_preferred: 8 * 1024 * 1024 };

/// Largest object that is read, in bytes: four times what deadletter gathers. Its events take as much again.
const OBJECT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// In so many runs an object is tried that cannot be read, before it counts as failed.
const READS_MAX: u32 = 5;

/// One replay in one run.
struct Course<'a> {
    selection: Selection,
    pace: Pace,
    topic: &'a Topic,
    subscription: &'a Subscription,
    limits: Limits,
}

/// Whether this run goes on with the replay.
#[derive(PartialEq, Eq)]
enum Next {
    Object,
    /// The rate is used up for this minute, or the time is.
    Rest,
}

impl<Q, S, D, C, E> Wake<Q, S, D, C, E>
where
    Q: QueueSender,
    S: ObjectStore,
    D: ObjectStore,
    C: Clock,
    E: Entropy,
{
    /// Goes on with a replay where its record says, until its end or until this run must stop.
    pub(super) async fn go_on(
        &self,
        job: &mut Job,
        topic: &Topic,
        subscription: &Subscription,
        limits: Limits,
    ) -> Result<(), ReplayError> {
        let selection = job.record.selection().map_err(ReplayError::Request)?;
        let pace =
            Pace::new(selection.rate_per_second(), job.record.progress.paced_until, self.ports.clock.now());
        let mut course = Course { selection, pace, topic, subscription, limits };
        loop {
            let after = job.record.progress.after.clone();
            let listed = letter_objects(&self.ports.dead_letters, &course.selection, after.as_deref()).await;
            let listed = listed.map_err(ReplayError::List)?;
            for range in AT_ONCE.cut(listed.objects.iter().map(size)) {
                if self.work_on(job, &mut course, &listed.objects[range]).await? == Next::Rest {
                    return Ok(());
                }
            }
            match listed.next_after {
                Some(after) => job.record.progress.after = Some(after),
                None => return self.turn(job, ReplayState::Done, None).await,
            }
            if self.must_rest(&course) {
                return self.save(job).await;
            }
        }
    }

    fn must_rest(&self, course: &Course<'_>) -> bool {
        self.ports.clock.monotonic() >= course.limits.begin || course.pace.room() == 0
    }

    /// Works on some objects, and writes how far that went.
    async fn work_on(
        &self,
        job: &mut Job,
        course: &mut Course<'_>,
        objects: &[LetterObject],
    ) -> Result<Next, ReplayError> {
        if self.must_rest(course) {
            return Ok(Next::Rest);
        }
        if !self.takes_bulk().await {
            self.turn(job, ReplayState::Waiting, Some(ReplayReason::Pressure)).await?;
            return Ok(Next::Rest);
        }
        let reads = join_all(objects.iter().map(|object| self.read(object, course.limits))).await;
        let mut trouble = None;
        for (object, read) in objects.iter().zip(reads) {
            trouble = self.send_object(job, course, &object.key, read).await.err();
            if trouble.is_some() || job.record.progress.part.is_some() {
                break;
            }
        }
        job.record.progress.paced_until = course.pace.paced_until();
        let is_whole = job.record.progress.part.is_none();
        let (state, reason) = match trouble {
            Some(_) => (ReplayState::Waiting, Some(ReplayReason::Unavailable)),
            None => (ReplayState::Running, None),
        };
        (job.record.state, job.record.reason) = (state, reason);
        self.save(job).await?;
        match trouble {
            Some(error) => Err(error),
            None if is_whole => Ok(Next::Object),
            None => Ok(Next::Rest),
        }
    }

    /// Reads an object. One that is too large, or not there, is an error that lasts.
    async fn read(&self, object: &LetterObject, limits: Limits) -> Result<Bytes, PortError> {
        if object.bytes.is_some_and(|bytes| bytes > OBJECT_BYTES_MAX) {
            return Err(PortError::new("read an object of more than 16 MiB", ErrorKind::Invalid));
        }
        let read = within(&self.ports.clock, limits.send, self.ports.dead_letters.get(&object.key)).await;
        match read {
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
        course: &mut Course<'_>,
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
                progress.fail(key, None, chain(&error));
                progress.finish(key);
                return Ok(());
            }
        };
        let done = progress.done_of(key);
        let picked = match pick(&bytes, course.subscription, &course.selection, done, course.pace.room()) {
            Ok(picked) => picked,
            Err(error) => {
                progress.fail(key, None, chain(&error));
                progress.finish(key);
                return Ok(());
            }
        };
        let replay = Replay {
            id: &job.record.id,
            subscription: course.subscription,
            default_time_to_live: course.topic.default_time_to_live,
        };
        let messages = replay.messages(key, &picked.events, &mut course.pace, self.ports.clock.now());
        let sent = self.send_replayed(&messages, course.limits).await;
        picked.note(key, &messages, sent, progress).map_or(Ok(()), |error| Err(ReplayError::Send(error)))
    }

    async fn send_replayed(&self, messages: &[ReplayMessage], limits: Limits) -> Vec<Result<(), PortError>> {
        let outgoing = |message: &ReplayMessage| OutgoingMessage {
            body: message.body.clone(),
            group: Some(message.group.clone()),
            delay_secs: message.delay_secs,
        };
        let sending = async {
            let stored = join_all(messages.iter().map(|message| self.store_payloads(message))).await;
            let is_stored = stored.iter().map(Result::is_ok);
            let sent = messages.iter().zip(is_stored).filter(|(_, is_stored)| *is_stored);
            let sent = sent.map(|(message, _)| outgoing(message)).collect();
            let mut sent = send_all(&self.ports.deliveries, sent).await.into_iter();
            let unsent = || Err(PortError::new("queue an event", ErrorKind::Other));
            let result =
                |stored: Result<(), PortError>| stored.and_then(|()| sent.next().unwrap_or_else(unsent));
            stored.into_iter().map(result).collect()
        };
        within(&self.ports.clock, limits.send, sending).await.unwrap_or_else(|| {
            let late = |_| Err(PortError::new("queue the events in time", ErrorKind::TimedOut));
            messages.iter().map(late).collect()
        })
    }

    /// Stores what a message refers to.
    async fn store_payloads(&self, message: &ReplayMessage) -> Result<(), PortError> {
        for (key, text) in &message.payloads {
            self.ports.state.put(key, text.clone(), PutCondition::Always).await?;
        }
        Ok(())
    }
}

fn size(object: &LetterObject) -> usize {
    // An object that was named is taken for as large as deadletter gathers.
    let bytes =
        object.bytes.unwrap_or(posthaste_core::model::limits::DEAD_LETTER_OBJECT_BYTES_PREFERRED as u64);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
