//! The common part of the limits on a subscription's requests: their states, each an object that
//! workers change by conditional put, the requests that wait for one, and the line of those that
//! are turned away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use posthaste_core::attempt::{EntryVerdict, LinePlace};
use posthaste_core::model::{FormatError, RequestRate, Timestamp};
use posthaste_ports::{
    Clock, ETag, ErrorKind, ObjectStore, PortError, Ports, PutCondition, StoredObject,
};
use posthaste_services::SingleFlight;

use crate::limits::OUR_FAULT_WAIT;

/// The most times that a request asks for a part of a shared state. If it has none then, other
/// workers or requests took every one.
pub(crate) const TRIES_MAX: u32 = 5;

/// The states of one kind, and the requests about them that are under way. Of the requests of a
/// subscription that wait at the same time, one asks, and the others share the answer.
pub(crate) struct SharedStates<P: Ports, T> {
    store: Arc<P::Store>,
    clock: P::Clock,
    asked: SingleFlight<Result<T, Arc<StateError>>>,
}

/// Reasons for which a shared state is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StateError {
    #[error("failed to reach the state of the limit")]
    Store(#[from] PortError),
    #[error("failed to understand the state of the limit")]
    Format(#[from] FormatError),
}

/// The line of a worker's requests that were turned away, with the limit by which it goes on.
#[derive(Debug)]
pub(crate) struct TurnedAwayLine<L>(Option<(L, LinePlace)>);

/// A waiting request, counted until this is dropped.
pub(crate) struct WaitGuard<'a>(&'a AtomicU32);

impl<P: Ports, T: Clone> SharedStates<P, T> {
    pub(crate) fn new(store: Arc<P::Store>, clock: P::Clock) -> Self {
        Self {
            store,
            clock,
            asked: SingleFlight::default(),
        }
    }

    /// Asks about the state of this key, unless another request does so already. The other requests
    /// of the invocation come to wait first, so that one answer serves them all.
    pub(crate) async fn ask_once<F: Future<Output = Result<T, StateError>> + Send>(
        &self,
        key: &str,
        ask: impl FnOnce() -> F + Send,
    ) -> Result<T, Arc<StateError>> {
        self.asked
            .run(key, || async {
                tokio::task::yield_now().await;
                ask().await.map_err(Arc::new)
            })
            .await
    }

    pub(crate) async fn read_state(&self, key: &str) -> Result<Option<StoredObject>, StateError> {
        Ok(self.store.get(key).await?)
    }

    /// Writes a state in place of the one with this tag, or of none. `None` if another worker was
    /// first.
    pub(crate) async fn write_state(
        &self,
        key: &str,
        state: Bytes,
        last: Option<ETag>,
    ) -> Result<Option<ETag>, StateError> {
        let condition = last.map_or(PutCondition::IfAbsent, PutCondition::IfMatch);
        match self.store.put(key, state, condition).await {
            Ok(etag) => Ok(Some(etag)),
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The verdict over events whose limit is not known.
    pub(crate) fn unknown_limit_verdict(&self) -> EntryVerdict {
        EntryVerdict::Postponed {
            not_before: self.clock.now() + OUR_FAULT_WAIT,
        }
    }
}

impl<L> Default for TurnedAwayLine<L> {
    fn default() -> Self {
        Self(None)
    }
}

impl<L: Copy + PartialEq> TurnedAwayLine<L> {
    /// The time at which a request that found nothing comes back, behind those before it. A line of
    /// another limit is gone.
    pub(crate) fn join_line(
        &mut self,
        limit: L,
        pace: RequestRate,
        nothing_before: Timestamp,
        now: Timestamp,
    ) -> Timestamp {
        let last = self.0.filter(|(of, _)| *of == limit).map(|(_, last)| last);
        let next = pace.line_up(last, nothing_before, now);
        self.0 = Some((limit, next));
        // In whole seconds, as queues count, so that events of one message come back together.
        Timestamp::from_millis(next.due.as_millis().next_multiple_of(1000))
    }
}

impl<'a> WaitGuard<'a> {
    pub(crate) fn begin(count: &'a AtomicU32) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
