//! Asking the state bucket for a lease, on behalf of all requests of a subscription that wait.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use posthaste_core::attempt::rate::{Grant, Rate, RateState};
use posthaste_core::stored::format::FormatError;
use posthaste_ports::{Clock, ETag, ErrorKind, ObjectStore, PortError, Ports, PutCondition};

use super::known::Limited;
use crate::Deliver;

/// Why nothing can be said about a rate.
#[derive(Debug, thiserror::Error)]
pub(super) enum LeaseError {
    #[error("failed to reach the state of the rate")]
    Store(#[from] PortError),
    #[error("failed to understand the state of the rate")]
    State(#[from] FormatError),
}

impl<P: Ports> Deliver<P> {
    /// Takes the next stretch of time, if no other worker has taken it since the state was read. What is known of the
    /// subscription says what came of it.
    pub(super) async fn lease(
        &self,
        key: &str,
        rate: Rate,
        limited: &Limited,
    ) -> Result<(), Arc<LeaseError>> {
        // The other requests of the invocation come to wait first, so that one answer serves them all.
        tokio::task::yield_now().await;
        let known = limited.known.lock().take_state();
        let state = match known {
            Some(state) => Some(state),
            None => self.read(key).await.map_err(Arc::new)?,
        };
        let (now, wanted) = (self.ports.clock.now(), limited.waiting.load(Ordering::Relaxed));
        let (lease, next) = match rate.take(state.as_ref().map(|(state, _)| *state), wanted, now) {
            Grant::NothingBefore(_) => {
                limited.known.lock().learn(state);
                return Ok(());
            }
            Grant::Lease(lease, next) => (lease, next),
        };
        if state.as_ref().is_none_or(|(state, _)| state.is_idle(now)) {
            limited.known.lock().clear_line();
        }
        let condition = state.map_or(PutCondition::IfAbsent, |(_, etag)| PutCondition::IfMatch(etag));
        match self.ports.state.put(key, next.render(), condition).await {
            Ok(etag) => {
                limited.known.lock().lease(lease, (next, etag));
                Ok(())
            }
            Err(error) if error.kind == ErrorKind::PreconditionFailed => Ok(()),
            Err(error) => Err(Arc::new(error.into())),
        }
    }

    async fn read(&self, key: &str) -> Result<Option<(RateState, ETag)>, LeaseError> {
        let Some(object) = self.ports.state.get(key).await? else { return Ok(None) };
        Ok(Some((RateState::parse(&object.bytes)?, object.etag)))
    }
}
