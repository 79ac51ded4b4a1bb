//! Events that were published for later and taken back before their release. They go to deliver
//! with a mark, which ends them without a request and records it.

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use posthaste_core::model::{Delivery, TopicName};
use posthaste_core::stored::delivery::{parse_delivery, render_delivery};
use posthaste_core::stored::{Cancellation, FormatError, cancellable, layout};
use posthaste_ports::{Clock, ObjectStore, PortError, Ports};

use crate::ports::WakePorts;

/// The time for which a look at whether there are any notes stands. A request that is answered
/// later than the look comes when the release has begun.
const LOOK_STANDS: Duration = Duration::from_secs(1);

/// Notes that are looked for at once.
const NOTES_AT_ONCE: usize = 8;

/// Why it is not known whether something was taken back.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CancellationError {
    #[error("failed to read the notes of it")]
    Store(#[source] PortError),
    #[error("failed to understand the note of it")]
    Note(#[source] FormatError),
}

/// The last look at whether anything was taken back, for all objects of a run.
#[derive(Debug, Default)]
pub(crate) struct CancellationLook(Mutex<Option<Look>>);

#[derive(Debug, Clone, Copy)]
struct Look {
    /// The time of it, by the clock's `monotonic`.
    at: Duration,
    has_notes: bool,
}

/// Marks the events in the messages of a scheduled object that were taken back. Without a look at
/// the notes nothing is released.
pub(crate) async fn mark_cancelled<P: Ports>(
    ports: &WakePorts<P>,
    look: &CancellationLook,
    messages: Vec<Bytes>,
) -> Result<Vec<Bytes>, CancellationError> {
    if !has_notes(ports, look).await? {
        return Ok(messages);
    }
    let mut marked = Vec::with_capacity(messages.len());
    for message in messages {
        // One that cannot be read goes as it is: deliver keeps it byte for byte.
        marked.push(match parse_delivery(&message) {
            Ok(delivery) => mark(ports, delivery).await?.unwrap_or(message),
            Err(_) => message,
        });
    }
    Ok(marked)
}

/// Whether any event was taken back. So where none is, a release costs nothing for it.
async fn has_notes<P: Ports>(
    ports: &WakePorts<P>,
    look: &CancellationLook,
) -> Result<bool, CancellationError> {
    let now = ports.clock.monotonic();
    let last = *look.0.lock();
    if let Some(look) = last.filter(|look| now < look.at + LOOK_STANDS) {
        return Ok(look.has_notes);
    }
    let mut after = None;
    let has_notes = loop {
        let page = ports.state.list(layout::CANCELLED, after.as_deref(), 1);
        let page = page.await.map_err(CancellationError::Store)?;
        // A page may be empty and yet not the last.
        after = page.next_after;
        if !page.objects.is_empty() || after.is_none() {
            break !page.objects.is_empty();
        }
    };
    *look.0.lock() = Some(Look { at: now, has_notes });
    Ok(has_notes)
}

/// The message of a delivery with the marks of what was taken back. `None` if nothing was.
async fn mark<P: Ports>(
    ports: &WakePorts<P>,
    mut delivery: Delivery,
) -> Result<Option<Bytes>, CancellationError> {
    let ids: BTreeSet<&str> = delivery.events.iter().filter_map(cancellable).collect();
    let ids: Vec<String> = ids.into_iter().map(str::to_owned).collect();
    let mut taken_back: BTreeSet<&str> = BTreeSet::new();
    for some in ids.chunks(NOTES_AT_ONCE) {
        let notes = some.iter().map(|id| note(ports, &delivery.topic, id));
        for (id, note) in some.iter().zip(try_join_all(notes).await?) {
            if note.is_some_and(|note| note.takes_back(&delivery)) {
                taken_back.insert(id);
            }
        }
    }
    let mut has_marked = false;
    for entry in &mut delivery.events {
        let is_taken_back = cancellable(entry).is_some_and(|id| taken_back.contains(id));
        if let Some(scheduled) = entry.marks.scheduled.as_mut().filter(|_| is_taken_back) {
            scheduled.cancelled = true;
            has_marked = true;
        }
    }
    Ok(has_marked.then(|| render_delivery(&delivery)))
}

/// The note that events of an id were taken back, by the digest of the id.
async fn note<P: Ports>(
    ports: &WakePorts<P>,
    topic: &TopicName,
    id: &str,
) -> Result<Option<Cancellation>, CancellationError> {
    let key = layout::cancelled(topic, id);
    let found = ports.state.get(&key).await;
    let found = found.map_err(CancellationError::Store)?;
    let note = found.map(|found| Cancellation::parse(&found.bytes));
    note.transpose().map_err(CancellationError::Note)
}
