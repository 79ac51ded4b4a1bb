//! The audit trail of this function: who asks, and the entry of each change. An entry is written
//! before its change, and its end before the answer.

pub(crate) mod list;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::HeaderMap;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use posthaste_core::api::{
    AuditAction, AuditActor, AuditCaller, AuditDoor, AuditEntry, AuditOutcome, PeerAddress,
};
use posthaste_ports::{Clock, Entropy, Ports};
use posthaste_services::audit::{begin_change, end_change, note_refused_keys, own_entry};

use crate::answer::ApiError;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The beginning of the `User-Agent` of the command line.
const CLI_AGENT: &str = "posthaste/";

/// The caller, as the guard or the console found out. Without them the caller is unknown.
pub(crate) struct RequestCaller(pub(crate) AuditCaller);

impl<S: Send + Sync> FromRequestParts<S> for RequestCaller {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let known = parts.extensions.get::<AuditCaller>().cloned();
        Ok(Self(known.unwrap_or_else(|| {
            let peer = parts.extensions.get::<PeerAddress>().copied();
            AuditCaller::without_key(door_from_headers(&parts.headers), peer)
        })))
    }
}

impl RequestCaller {
    /// The same as an endpoint, which is known by its code.
    pub(crate) fn into_endpoint(self) -> AuditCaller {
        AuditCaller {
            actor: AuditActor::Endpoint,
            ..self.0
        }
    }
}

/// The door of a request with these headers that comes over HTTP.
pub(crate) fn door_from_headers(headers: &HeaderMap) -> AuditDoor {
    let agent = headers
        .get(USER_AGENT)
        .and_then(|agent| agent.to_str().ok());
    if agent.is_some_and(|agent| agent.starts_with(CLI_AGENT)) {
        AuditDoor::Cli
    } else {
        AuditDoor::Api
    }
}

/// The entries of this function in the audit trail.
pub(crate) struct AuditTrail<P: Ports> {
    state: SharedPort<P, P::Store>,
    clock: P::Clock,
    entropy: SharedPort<P, P::Entropy>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for AuditTrail<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            clock: manage.clock.clone(),
            entropy: SharedPort::new(manage, |it| &it.entropy),
        }
    }
}

impl<P: Ports> AuditTrail<P> {
    /// The entry of a change that is asked for now.
    pub(crate) fn new_entry(&self, caller: AuditCaller, action: AuditAction) -> AuditEntry {
        let id = self.entropy.uuid().simple().to_string();
        AuditEntry::new(id, self.clock.now(), caller, action)
    }

    /// The entry of a change that this function makes by itself.
    pub(crate) fn own_entry(&self, action: AuditAction) -> AuditEntry {
        own_entry(&self.clock, &*self.entropy, action)
    }

    /// Makes a change between the two writes of its entry. `note` adds to the entry what is only
    /// known after the change.
    pub(crate) async fn run_audited<T>(
        &self,
        entry: AuditEntry,
        change: impl Future<Output = Result<T, ApiError>>,
        note: impl FnOnce(AuditEntry, &T) -> AuditEntry,
    ) -> Result<T, ApiError> {
        begin_change(&*self.state, &entry).await?;
        let changed = change.await;
        let entry = match &changed {
            Ok(answer) => note(entry, answer),
            Err(_) => entry,
        };
        self.end_audited(entry, changed.as_ref().map(drop)).await;
        changed
    }

    /// Writes down the end of a change that was begun.
    pub(crate) async fn end_audited(&self, entry: AuditEntry, changed: Result<(), &ApiError>) {
        let (entry, outcome) = match changed {
            Ok(()) => (entry, AuditOutcome::Done),
            Err(ApiError(problem)) => {
                let title = problem.kind.title();
                let detail = problem.detail.as_deref().unwrap_or(title);
                let is_refusal = problem.status.is_client_error();
                let outcome = if is_refusal {
                    AuditOutcome::Refused
                } else {
                    AuditOutcome::Failed
                };
                (entry.with_detail(detail), outcome)
            }
        };
        end_change(&*self.state, entry, outcome).await;
    }

    /// Adds refused keys to the audit trail.
    pub(crate) async fn note_refused_keys(
        &self,
        door: AuditDoor,
        peer: Option<PeerAddress>,
        keys: u64,
    ) {
        note_refused_keys(&*self.state, self.clock.now(), door, peer, keys).await;
    }
}
