//! Changes of memory once a commit is durable, and their undoing when it was not done.

use posthaste_core::model::{CarriedEvents, Timestamp};
use posthaste_ports::QueueName;

use crate::embedded::bodies::{BodyCache, MessageContent};
use crate::embedded::inbox::{CommitWork, JobResult, NewMessage};
use crate::embedded::index::ArrivingMessage;
use crate::embedded::record::{self, QUEUES};
use crate::embedded::shared::SharedStore;

/// A message that one of the queues now holds.
struct QueueArrival {
    sequence: u64,
    group: String,
    due: Timestamp,
    bytes: usize,
    carried: CarriedEvents,
}

/// The changes of one queue's index, so that its lock is taken once for a whole commit.
#[derive(Default)]
struct QueueChanges {
    arrivals: Vec<QueueArrival>,
    replaced: Vec<u64>,
}

/// Shows finished work: messages become visible, replaced ones are gone.
pub(super) fn apply_finished(shared: &SharedStore, works: Vec<(CommitWork, JobResult)>) {
    let mut changes: [QueueChanges; QUEUES.len()] = Default::default();
    let mut bodies = shared.bodies.lock();
    for (work, done) in works
        .into_iter()
        .filter_map(|(work, outcome)| Some((work, outcome.ok()?)))
    {
        match work {
            // The caller of `withhold` shows these.
            CommitWork::Messages {
                is_withheld: true, ..
            } => {}
            CommitWork::Messages {
                messages,
                instead_of,
                ..
            } => {
                for (sequence, message) in (done.number..).zip(messages) {
                    let queue = &mut changes[usize::from(record::number_of(message.to))];
                    queue
                        .arrivals
                        .push(cache_arrival(sequence, message, &mut bodies));
                }
                if let Some((queue, sequence)) = instead_of {
                    changes[usize::from(record::number_of(queue))]
                        .replaced
                        .push(sequence);
                }
            }
            CommitWork::Redrive { messages, .. } => {
                let moved = messages.into_iter().map(|worn_out| QueueArrival {
                    sequence: worn_out.sequence,
                    group: worn_out.group.to_string(),
                    due: Timestamp::EPOCH,
                    bytes: 0,
                    carried: CarriedEvents::default(),
                });
                let redrive = usize::from(record::number_of(QueueName::Redrive));
                changes[redrive].arrivals.extend(moved);
            }
            CommitWork::Put { key, .. } => {
                shared.versions.forget(&key);
                if !done.was_there {
                    shared.waiting_objects.add(&key);
                }
            }
            CommitWork::Delete { key } => {
                shared.versions.forget(&key);
                if done.was_there {
                    shared.waiting_objects.remove(&key);
                }
            }
        }
    }
    drop(bodies);
    for (name, changes) in QUEUES.into_iter().zip(changes) {
        update_queue(shared, name, changes);
    }
}

/// Deletes messages that were withheld for callers that were told of a failure: no caller would
/// ever show these messages.
pub(super) fn delete_withheld(shared: &SharedStore, jobs: &[(CommitWork, JobResult)]) {
    for (work, outcome) in jobs {
        if let (
            CommitWork::Messages {
                messages,
                is_withheld: true,
                ..
            },
            Ok(done),
        ) = (work, outcome)
        {
            let behind = done.number + messages.len() as u64;
            (done.number..behind).for_each(|sequence| shared.inbox.queue_delete(sequence));
        }
    }
}

fn update_queue(shared: &SharedStore, name: QueueName, changes: QueueChanges) {
    if changes.arrivals.is_empty() && changes.replaced.is_empty() {
        return;
    }
    let now = (shared.now)();
    shared.queue(name).update_index(now, |index| {
        changes
            .replaced
            .into_iter()
            .for_each(|sequence| index.forget_held(sequence));
        for arrival in &changes.arrivals {
            let arrived = ArrivingMessage {
                sequence: arrival.sequence,
                group: &arrival.group,
                due: arrival.due,
                bytes: arrival.bytes,
                carried: arrival.carried,
            };
            index.insert(arrived, now.wall);
        }
    });
}

/// Restores memory as it was before the call, for work that was not done.
pub(super) fn undo_work(shared: &SharedStore, work: CommitWork) {
    let now = (shared.now)();
    match work {
        CommitWork::Messages {
            instead_of: Some((queue, sequence)),
            ..
        } => {
            shared
                .queue(queue)
                .update_index(now, |index| index.release_held(sequence));
        }
        CommitWork::Redrive { from, messages } => {
            shared.queue(from).update_index(now, |index| {
                for message in &messages {
                    index.put_back(message);
                }
            });
        }
        // The fate of the object is unknown, so it is read again.
        CommitWork::Put { key, .. } | CommitWork::Delete { key } => {
            shared.versions.forget(&key);
        }
        CommitWork::Messages { .. } => {}
    }
}

/// Caches a body that is due at once, because it is likely to be asked for soon. One that waits is
/// read from the disk when its time has come.
fn cache_arrival(sequence: u64, message: NewMessage, bodies: &mut BodyCache) -> QueueArrival {
    let bytes = message.body.len();
    let carried = record::carried_events(message.to, &message.body, message.sent_at);
    if message.due <= message.sent_at {
        bodies.insert(
            message.to,
            sequence,
            MessageContent {
                sent_at: message.sent_at,
                body: message.body,
            },
        );
    }
    QueueArrival {
        sequence,
        group: message.group.unwrap_or_default(),
        due: message.due,
        bytes,
        carried,
    }
}
