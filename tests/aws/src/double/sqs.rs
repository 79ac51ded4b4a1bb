//! SQS: standard queues over the AWS JSON 1.0 protocol.

mod batch;
mod error;
mod fields;
mod handle;
pub(super) mod queue;
pub(super) mod queues;
mod receive;
mod request;
mod rules;

use serde_json::Value;

use super::answer::Answer;
use super::journal::Seen;
use super::script::EntryFault;
use super::shared::Shared;

pub(super) use error::Error;
use error::to_answer;
pub use queue::Redrive;
use queues::Queues;
pub(super) use request::{Call, TARGET};

use request::Request;

/// Performs a request and writes it into the journal.
pub(super) async fn perform(call: &Call, faults: &[EntryFault], shared: &Shared) -> Answer {
    match &call.request {
        Request::Send(batch) => at_once(call, shared, |queues| {
            let queue = queues.named(&call.queue_url)?;
            batch::check_size(&call.request)?;
            batch::answer(batch, faults, |outgoing| {
                queue.send(outgoing, &shared.clock)
            })
        }),
        Request::Delete(batch) => at_once(call, shared, |queues| {
            let queue = queues.named(&call.queue_url)?;
            batch::answer(batch, faults, |deletion| queue.delete(deletion))
        }),
        Request::Change(batch) => at_once(call, shared, |queues| {
            let queue = queues.named(&call.queue_url)?;
            batch::answer(batch, faults, |change| {
                queue.change_visibility(change, &shared.clock)
            })
        }),
        Request::Attributes(names) => at_once(call, shared, |queues| {
            queues
                .named(&call.queue_url)?
                .attributes(names, &shared.clock)
        }),
        Request::Receive(receive) => receive::perform(call, receive, shared).await,
    }
}

/// Performs an action that does not wait, under one lock with its line in the journal.
fn at_once(
    call: &Call,
    shared: &Shared,
    effect: impl FnOnce(&mut Queues) -> Result<Value, Error>,
) -> Answer {
    let mut state = shared.lock();
    let answer = to_answer(effect(&mut state.queues));
    state.journal.push(call.seen(answer.status.as_u16()));
    drop(state);
    shared.changed.notify_waiters();
    answer
}

impl Call {
    /// The entry of the journal, for any outcome.
    pub(super) fn seen(&self, status: u16) -> Seen {
        let (subjects, payload_bytes) = self.request.subjects();
        let target = self
            .queue_url
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        Seen {
            action: self.action,
            target,
            subjects,
            payload_bytes,
            status,
        }
    }
}
