//! State of a double that its connections share.

use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use posthaste_testkit::ManualClock;
use tokio::sync::Notify;

use super::journal::Journal;
use super::s3::bucket::Buckets;
use super::script::Script;
use super::sqs::queue::ACCOUNT;
use super::sqs::queues::Queues;

/// State that the connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) address: SocketAddr,
    pub(super) clock: ManualClock,
    state: Mutex<State>,
    /// Something may have become visible.
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) queues: Queues,
    pub(super) buckets: Buckets,
    pub(super) script: Script,
    pub(super) journal: Journal,
    pub(super) waiting: usize,
    answers: u64,
}

impl State {
    /// The number of an answer.
    pub(super) fn number(&mut self) -> u64 {
        self.answers += 1;
        self.answers
    }
}

impl Shared {
    /// State without queues and buckets.
    pub(super) fn new(address: SocketAddr, clock: ManualClock) -> Self {
        Self {
            address,
            clock,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a request must not hide behind the panics of all later ones.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn queue_url(&self, name: &str) -> String {
        format!("http://{}/{ACCOUNT}/{name}", self.address)
    }
}
