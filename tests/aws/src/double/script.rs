//! Faults that a test sets up for the requests to come.

use std::collections::{HashMap, VecDeque};

use super::journal::Action;

/// A fault of one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Nothing happens; the answer is this error.
    Refused(Refusal),
    /// Nothing happens; the connection closes without an answer.
    RequestLost,
    /// The request takes effect; the connection closes without an answer.
    AnswerLost,
    /// The request takes effect; the connection closes in the middle of the answer's body.
    AnswerCut,
    /// Nothing happens, and no answer ever comes.
    SilentBefore,
    /// The request takes effect, and no answer ever comes.
    SilentAfter,
    /// Single entries of a batch go wrong. The fault does nothing to requests without entries.
    Entries(Vec<EntryFault>),
}

/// Errors that a service may answer at any time. Each service says them in its own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Too much is asked: 503 `SlowDown` of S3, 400 `RequestThrottled` of SQS.
    Throttled,
    /// Not allowed: 403 `AccessDenied`.
    Denied,
    /// Not here, not now: 503 `ServiceUnavailable`.
    Unavailable,
    /// The service broke: 500 `InternalError`.
    Broken,
    /// Another conditional put of the key was under way: 409 `ConditionalRequestConflict` (only
    /// S3).
    Conflict,
    /// A handle that was never given out: 404 `ReceiptHandleIsInvalid` (only SQS).
    BadHandle,
}

/// A fault of one entry of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFault {
    /// The entry's place, from 0; beyond the batch the fault does nothing.
    pub index: usize,
    /// True if it happens all the same.
    pub happens: bool,
    /// The entry's place in the answer.
    pub shown: Shown,
}

/// The place of an entry in the answer to a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// In neither list.
    Nowhere,
    /// In `Failed`.
    Failed {
        /// The error code.
        code: &'static str,
        /// True if the sender is to blame.
        is_senders_fault: bool,
    },
}

impl Fault {
    /// The entries in neither list.
    pub fn unmentioned(indices: &[usize], happens: bool) -> Self {
        let entry = |index: &usize| EntryFault {
            index: *index,
            happens,
            shown: Shown::Nowhere,
        };
        Self::Entries(indices.iter().map(entry).collect())
    }

    /// The entries in `Failed`; nothing happens to them.
    pub fn failed(indices: &[usize], code: &'static str, is_senders_fault: bool) -> Self {
        let shown = Shown::Failed {
            code,
            is_senders_fault,
        };
        Self::Entries(
            indices
                .iter()
                .map(|index| EntryFault {
                    index: *index,
                    happens: false,
                    shown,
                })
                .collect(),
        )
    }
}

/// The faults to come.
#[derive(Debug, Default)]
pub(super) struct Script {
    next: HashMap<Action, VecDeque<Option<Fault>>>,
    always: HashMap<Action, Fault>,
}

impl Script {
    pub(super) fn next(&mut self, action: Action, fault: Option<Fault>) {
        self.next.entry(action).or_default().push_back(fault);
    }

    pub(super) fn always(&mut self, action: Action, fault: Fault) {
        self.always.insert(action, fault);
    }

    /// The fault of a request that has just come.
    pub(super) fn take(&mut self, action: Action) -> Option<Fault> {
        let next = self.next.get_mut(&action).and_then(VecDeque::pop_front);
        next.unwrap_or_else(|| self.always.get(&action).cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_come_in_their_order_and_then_for_ever() {
        let mut script = Script::default();
        script.next(Action::PutObject, Some(Fault::AnswerLost));
        script.next(Action::PutObject, None);
        script.always(Action::PutObject, Fault::RequestLost);
        let taken: Vec<_> = (0..4).map(|_| script.take(Action::PutObject)).collect();
        let lost = Some(Fault::AnswerLost);
        let always = Some(Fault::RequestLost);
        assert_eq!(taken, [lost, None, always.clone(), always]);
        assert_eq!(script.take(Action::GetObject), None);
    }
}
