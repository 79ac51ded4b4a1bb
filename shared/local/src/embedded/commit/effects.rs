//! Changes of memory once a commit is durable, and their undoing when it was not done.

use posthaste_core::model::{CarriedEvents, Timestamp};
use posthaste_ports::QueueName;

use super::{Committer, Outcome};
use crate::embedded::bodies::{Bodies, Content};
use crate::embedded::inbox::{NewMessage, Work};
use crate::embedded::index::Arrived;
use crate::embedded::record::{self, QUEUES};

/// A message that one of the queues now holds.
struct Arrival {
    sequence: u64,
    group: String,
    due: Timestamp,
    bytes: usize,
    carried: CarriedEvents,
}

/// The changes of one queue's index, so that its lock is taken once for a whole commit.
#[derive(Default)]
struct Changes {
    arrivals: Vec<Arrival>,
    replaced: Vec<u64>,
}

impl Committer {
    /// Shows finished work: messages become visible, replaced ones are gone.
    pub(super) fn apply(&self, works: Vec<(Work, Outcome)>) {
        let mut changes: [Changes; QUEUES.len()] = Default::default();
        let mut bodies = self.shared.bodies.lock();
        for (work, done) in works
            .into_iter()
            .filter_map(|(work, outcome)| Some((work, outcome.ok()?)))
        {
            match work {
                // Their caller shows them.
                Work::Messages {
                    is_withheld: true, ..
                } => {}
                Work::Messages {
                    messages,
                    instead_of,
                    ..
                } => {
                    for (sequence, message) in (done.number..).zip(messages) {
                        let queue = &mut changes[usize::from(record::number_of(message.to))];
                        queue.arrivals.push(arrive(sequence, message, &mut bodies));
                    }
                    if let Some((queue, sequence)) = instead_of {
                        changes[usize::from(record::number_of(queue))]
                            .replaced
                            .push(sequence);
                    }
                }
                Work::Redrive { messages, .. } => {
                    let moved = messages.into_iter().map(|worn_out| Arrival {
                        sequence: worn_out.sequence,
                        group: worn_out.group.to_string(),
                        due: Timestamp::EPOCH,
                        bytes: 0,
                        carried: CarriedEvents::default(),
                    });
                    let redrive = usize::from(record::number_of(QueueName::Redrive));
                    changes[redrive].arrivals.extend(moved);
                }
                Work::Put { key, .. } => {
                    self.shared.versions.forget(&key);
                    if !done.was_there {
                        self.shared.waiting_objects.add(&key);
                    }
                }
                Work::Delete { key } => {
                    self.shared.versions.forget(&key);
                    if done.was_there {
                        self.shared.waiting_objects.remove(&key);
                    }
                }
            }
        }
        drop(bodies);
        for (name, changes) in QUEUES.into_iter().zip(changes) {
            self.show(name, changes);
        }
    }

    /// Deletes messages that are withheld for callers who were told that they failed: nobody would
    /// ever show them.
    pub(super) fn delete_withheld(&self, jobs: &[(Work, Outcome)]) {
        for (work, outcome) in jobs {
            if let (
                Work::Messages {
                    messages,
                    is_withheld: true,
                    ..
                },
                Ok(done),
            ) = (work, outcome)
            {
                let behind = done.number + messages.len() as u64;
                (done.number..behind).for_each(|sequence| self.shared.inbox.delete(sequence));
            }
        }
    }

    fn show(&self, name: QueueName, changes: Changes) {
        if changes.arrivals.is_empty() && changes.replaced.is_empty() {
            return;
        }
        let now = (self.shared.now)();
        self.shared.queue(name).update(now, |index| {
            changes
                .replaced
                .into_iter()
                .for_each(|sequence| index.forget(sequence));
            for arrival in &changes.arrivals {
                let arrived = Arrived {
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

    /// Restores the memory of before the call, for work that was not done.
    pub(super) fn undo(&self, work: Work) {
        let now = (self.shared.now)();
        match work {
            Work::Messages {
                instead_of: Some((queue, sequence)),
                ..
            } => {
                self.shared
                    .queue(queue)
                    .update(now, |index| index.release(sequence));
            }
            Work::Redrive { from, messages } => self.shared.queue(from).update(now, |index| {
                for message in &messages {
                    index.put_back(message);
                }
            }),
            // Whatever became of the object, it is read again.
            Work::Put { key, .. } | Work::Delete { key } => self.shared.versions.forget(&key),
            Work::Messages { .. } => {}
        }
    }
}

/// A body that is due at once is likely to be asked for soon; one that waits is read when its time
/// has come.
fn arrive(sequence: u64, message: NewMessage, bodies: &mut Bodies) -> Arrival {
    let bytes = message.body.len();
    let carried = record::carried(message.to, &message.body, message.sent_at);
    if message.due <= message.sent_at {
        bodies.insert(
            message.to,
            sequence,
            Content {
                sent_at: message.sent_at,
                body: message.body,
            },
        );
    }
    Arrival {
        sequence,
        group: message.group.unwrap_or_default(),
        due: message.due,
        bytes,
        carried,
    }
}
