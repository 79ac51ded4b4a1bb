//! Events that were published for later and taken back before their release. They go to deliver
//! with a mark, which ends them without a request and records it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use posthaste_core::model::{Delivery, TopicName};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::{EventCancellation, FormatError, cancellable_id_digest, layout};
use posthaste_ports::validate::LIST_PAGE_MAX;
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};

use crate::ports::WakePorts;

/// The time for which a look at a topic's notes stands. A request that is answered later than the
/// look comes when the release has begun.
const LOOK_STANDS: Duration = Duration::from_secs(1);

/// Notes that are read at once.
const NOTES_AT_ONCE: usize = 8;

/// Most pages of a topic's notes that are listed: 20,000 notes. Of a topic with more, the notes of
/// all scheduled events are looked for.
const PAGES_MAX: usize = 20;

/// Why it is not known whether something was taken back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CancellationError {
    #[error("failed to read the notes of it")]
    Store(#[source] PortError),
    #[error("failed to understand the note of it")]
    Note(#[source] FormatError),
}

/// The last look at what was taken back, for all objects of a run. They are released by minute, so
/// that of the topics the last one is the likeliest to come again.
#[derive(Debug, Default)]
pub(crate) struct CancellationCache(Mutex<Option<CachedNotes>>);

#[derive(Debug, Clone)]
struct CachedNotes {
    topic: TopicName,
    /// The time of it, by the clock's `monotonic`.
    at: Duration,
    notes: Arc<CancellationNotes>,
}

/// The notes of a topic, by the digests of the ids.
#[derive(Debug)]
enum CancellationNotes {
    These(BTreeSet<String>),
    /// There are more than are listed.
    TooMany,
}

impl CancellationNotes {
    fn may_have(&self, id: &str) -> bool {
        match self {
            Self::These(ids) => ids.contains(id),
            Self::TooMany => true,
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::These(ids) if ids.is_empty())
    }
}

/// Marks the events in the messages of a scheduled object of this topic that were taken back.
/// Without a look at the notes nothing is released.
pub(crate) async fn mark_cancelled<P: Ports>(
    ports: &WakePorts<P>,
    look: &CancellationCache,
    topic: &TopicName,
    messages: Vec<Bytes>,
) -> Result<Vec<Bytes>, CancellationError> {
    let notes = cached_notes(ports, look, topic).await?;
    if notes.is_empty() {
        return Ok(messages);
    }
    let mut marked = Vec::with_capacity(messages.len());
    for message in messages {
        // One that cannot be read goes as it is: deliver keeps it byte for byte.
        marked.push(match parse_delivery(&message) {
            Ok(delivery) => mark_delivery(ports, &notes, delivery)
                .await?
                .unwrap_or(message),
            Err(_) => message,
        });
    }
    Ok(marked)
}

/// The notes of a topic. So where nothing was taken back, a release costs a list for many events.
async fn cached_notes<P: Ports>(
    ports: &WakePorts<P>,
    look: &CancellationCache,
    topic: &TopicName,
) -> Result<Arc<CancellationNotes>, CancellationError> {
    let now = ports.clock.monotonic();
    let last = look.0.lock().clone();
    if let Some(look) = last
        && look.topic == *topic
        && now < look.at + LOOK_STANDS
    {
        return Ok(look.notes);
    }
    let notes = Arc::new(list_notes(ports, topic).await?);
    *look.0.lock() = Some(CachedNotes {
        topic: topic.clone(),
        at: now,
        notes: Arc::clone(&notes),
    });
    Ok(notes)
}

async fn list_notes<P: Ports>(
    ports: &WakePorts<P>,
    topic: &TopicName,
) -> Result<CancellationNotes, CancellationError> {
    let prefix = layout::cancelled_key(topic, "");
    let mut ids = BTreeSet::new();
    let mut after = None;
    for _ in 0..PAGES_MAX {
        let page = ports.state.list(&prefix, after.as_deref(), LIST_PAGE_MAX);
        let page = page.await.map_err(CancellationError::Store)?;
        let keys = page.objects.iter().map(|object| &object.key);
        ids.extend(keys.filter_map(|key| Some(key.strip_prefix(&prefix)?.to_owned())));
        after = page.next_after;
        if after.is_none() {
            return Ok(CancellationNotes::These(ids));
        }
    }
    Ok(CancellationNotes::TooMany)
}

/// The message of a delivery with the marks of what was taken back. `None` if nothing was.
async fn mark_delivery<P: Ports>(
    ports: &WakePorts<P>,
    notes: &CancellationNotes,
    mut delivery: Delivery,
) -> Result<Option<Bytes>, CancellationError> {
    let ids = delivery.events.iter().filter_map(cancellable_id_digest);
    let ids: BTreeSet<&str> = ids.filter(|id| notes.may_have(id)).collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let mut taken_back: BTreeSet<&str> = BTreeSet::new();
    for some in ids.chunks(NOTES_AT_ONCE) {
        let notes = some.iter().map(|id| read_note(ports, &delivery.topic, id));
        for (id, note) in some.iter().zip(try_join_all(notes).await?) {
            if note.is_some_and(|note| note.takes_back(&delivery)) {
                taken_back.insert(id);
            }
        }
    }
    let mut has_marked = false;
    for entry in &mut delivery.events {
        let is_taken_back = cancellable_id_digest(entry).is_some_and(|id| taken_back.contains(id));
        if let Some(scheduled) = entry.marks.scheduled.as_mut().filter(|_| is_taken_back) {
            scheduled.cancelled = true;
            has_marked = true;
        }
    }
    Ok(has_marked.then(|| render_delivery(&delivery)))
}

/// The note that events of an id were taken back, by the digest of the id.
async fn read_note<P: Ports>(
    ports: &WakePorts<P>,
    topic: &TopicName,
    id: &str,
) -> Result<Option<EventCancellation>, CancellationError> {
    let key = layout::cancelled_key(topic, id);
    let found = ports.state.get(&key).await;
    let found = found.map_err(CancellationError::Store)?;
    let note = found.map(|found| EventCancellation::parse(&found.bytes));
    note.transpose().map_err(CancellationError::Note)
}
