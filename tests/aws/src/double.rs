//! A strict double of SQS and S3: one process, real HTTP on 127.0.0.1, a clock that is moved by
//! hand.
//!
//! The double enforces what AWS documents and emulators do not: delays of 900 s, visibility of 12
//! hours in all, a mebibyte per message and per batch, distinct ids, refused characters, receipt
//! handles that go stale, and the exact shapes of errors. A [`Script`] sets up its faults. It
//! writes a [`Journal`] of every request, so that tests can count what would be billed and in which
//! order things became durable. It checks that requests are signed, not by whom.

pub mod journal;
pub mod script;

mod answer;
mod call;
mod digest;
mod s3;
mod server;
mod shared;
mod sqs;

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_ports::Clock;
use posthaste_testkit::ManualClock;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use journal::{Action, Journal, Seen};
pub use s3::Access;
pub use script::{EntryFault, Fault, Refusal, Shown};
pub use sqs::Redrive;

use script::Script;
use shared::Shared;

/// A running double. Clones share it; it stops with the last of them.
#[derive(Debug, Clone)]
pub struct Double {
    shared: Arc<Shared>,
    _server: Arc<Server>,
}

/// The task that accepts connections; it takes them with it.
#[derive(Debug)]
struct Server(JoinHandle<()>);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Double {
    /// Starts a double without queues and buckets, whose time is `clock`'s. Needs a tokio runtime.
    pub async fn start(clock: ManualClock) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port on 127.0.0.1");
        let address = listener.local_addr().expect("the listener is bound");
        let shared = Arc::new(Shared::new(address, clock));
        let server = tokio::spawn(server::serve(listener, shared.clone()));
        Self {
            shared,
            _server: Arc::new(Server(server)),
        }
    }

    /// The endpoint of both services, for `AWS_ENDPOINT_URL`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.shared.address)
    }

    /// Makes an empty queue, or empties the one there is, and answers its URL.
    pub fn queue(&self, name: &str, redrive: Option<Redrive>) -> String {
        let url = self.shared.queue_url(name);
        self.shared.lock().queues.make(name, &url, redrive);
        url
    }

    /// Sets the most messages of a queue in flight at once, instead of 120,000.
    pub fn limit_in_flight(&self, queue: &str, max: usize) {
        self.shared.lock().queues.limit_in_flight(queue, max);
    }

    /// Every message of a queue that is in flight or was deleted can be received once more, under
    /// its id: a server that was unavailable when the message was received or deleted shows the
    /// copy that it has. See "Amazon SQS at-least-once delivery" in the developer guide of SQS.
    pub fn show_copies(&self, queue: &str) {
        self.shared
            .lock()
            .queues
            .show_copies(queue, &self.shared.clock);
        self.shared.changed.notify_waiters();
    }

    /// Makes an empty bucket, or empties the one there is.
    pub fn bucket(&self, name: &str, access: Access) {
        self.shared.lock().buckets.make(name, access);
    }

    /// Puts an object beside the HTTP interface; nothing is written in the journal.
    pub fn put(&self, bucket: &str, key: &str, bytes: impl Into<Bytes>) {
        let now = self.shared.clock.now();
        self.shared
            .lock()
            .buckets
            .insert(bucket, key, bytes.into(), now);
    }

    /// The bytes of an object, where there is one.
    pub fn object(&self, bucket: &str, key: &str) -> Option<Bytes> {
        self.shared.lock().buckets.object(bucket, key)
    }

    /// The bodies of all messages of a queue, visible, delayed or in flight, in the order they were
    /// sent.
    pub fn bodies(&self, queue: &str) -> Vec<String> {
        self.shared.lock().queues.bodies(queue)
    }

    /// Scripts a fault for the next request for `action` without one. A second call is for the
    /// request after it.
    pub fn fail_next(&self, action: Action, fault: Fault) {
        self.shared.lock().script.next(action, Some(fault));
    }

    /// Lets the next request for `action` pass; scripted faults are for later ones.
    pub fn spare_next(&self, action: Action) {
        self.shared.lock().script.next(action, None);
    }

    /// Scripts a fault for every request for `action` without a fault of its own.
    pub fn fail_always(&self, action: Action, fault: Fault) {
        self.shared.lock().script.always(action, fault);
    }

    /// Removes all faults.
    pub fn heal(&self) {
        self.shared.lock().script = Script::default();
    }

    /// The requests until now.
    pub fn journal(&self) -> Journal {
        self.shared.lock().journal.clone()
    }

    /// Answers the journal and begins a new one.
    pub fn take_journal(&self) -> Journal {
        std::mem::take(&mut self.shared.lock().journal)
    }

    /// The number of receives that wait for a message or for the end of their time.
    pub fn waiting(&self) -> usize {
        self.shared.lock().waiting
    }
}
