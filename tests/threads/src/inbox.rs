//! Work that waits for the commit thread.

#[path = "../../../shared/local/src/embedded/inbox.rs"]
#[allow(dead_code, unreachable_pub, reason = "the product needs more of it")]
mod code;

/// In place of the engine's own errors.
mod failure {
    #[derive(Debug, thiserror::Error)]
    pub(crate) enum EngineError {
        #[error("the store is closed")]
        Closed,
    }
}

/// In place of a message that was received too often: nothing here looks into it.
mod index {
    #[derive(Debug)]
    pub(crate) struct WornOutMessage;
}

use std::sync::Arc;

use posthaste_core::model::Timestamp;
use posthaste_ports::QueueName;
use shuttle::future::block_on;
use shuttle::thread;

use crate::search::Search;
use code::{CommitInbox, CommitWork, CompletedJob, NewMessage};

pub(crate) const SEARCH: Search = Search::new("shared/local/src/embedded/inbox.rs", run);

/// A record of the delivery log, which may wait for other work.
fn record() -> CommitWork {
    let message = NewMessage {
        to: QueueName::Records,
        group: None,
        sent_at: Timestamp::from_millis(0),
        due: Timestamp::from_millis(0),
        body: bytes::Bytes::from_static(b"record"),
    };
    CommitWork::Messages {
        messages: vec![message],
        instead_of: None,
        is_withheld: false,
    }
}

fn delete() -> CommitWork {
    CommitWork::Delete {
        key: "topics/a.json".to_owned(),
    }
}

/// As the commit thread does it: takes work and answers, until the inbox is closed and empty.
/// Returns the acknowledgements that it was given.
fn commit(inbox: &CommitInbox) -> Vec<u64> {
    let mut deletes = Vec::new();
    while let Some(batch) = inbox.next() {
        deletes.extend(batch.deletes);
        for job in batch.jobs {
            let (_, answer) = job.into_parts();
            let done = CompletedJob {
                number: 0,
                was_there: false,
            };
            // A caller may have gone.
            drop(answer.send(Ok(done)));
        }
    }
    inbox.refuse_all();
    deletes
}

/// Callers that wait for their work, of both kinds, and acknowledge messages. One gives up, and one
/// comes while the inbox is being closed.
fn run() {
    let inbox = Arc::new(CommitInbox::new());
    let committing = Arc::clone(&inbox);
    let thread = thread::spawn(move || commit(&committing));
    let callers: Vec<_> = (0..3)
        .map(|number| {
            let inbox = Arc::clone(&inbox);
            thread::spawn(move || {
                let work = if number == 0 { record() } else { delete() };
                inbox.queue_delete(number);
                let room = block_on(inbox.reserve_room(6));
                let answer = inbox.push(work, room);
                if number == 2 {
                    return drop(answer);
                }
                let outcome = block_on(answer).expect("an answer");
                outcome.expect("it is not closed yet");
            })
        })
        .collect();
    for caller in callers {
        caller.join().expect("it ends");
    }
    let late = {
        let inbox = Arc::clone(&inbox);
        thread::spawn(move || {
            // It is done or refused, but answered.
            let answer = block_on(inbox.push(delete(), None)).expect("an answer");
            drop(answer);
        })
    };
    inbox.close();
    let mut deletes = thread.join().expect("it ends");
    late.join().expect("it ends");
    deletes.sort_unstable();
    assert_eq!(deletes, [0, 1, 2]);
}
