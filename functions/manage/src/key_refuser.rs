//! The answer to wrong keys.

use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::StatusCode;
use posthaste_core::api::problem::{ApiProblem, ProblemKind};
use posthaste_core::api::{AuditDoor, PeerAddress};
use posthaste_ports::Ports;
use posthaste_services::wrong_keys::TOO_MANY_RETRY_AFTER;
use posthaste_services::{WrongKeyAnswer, WrongKeys};

use crate::answer::ApiError;
use crate::audit::AuditTrail;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// The refusal of wrong keys. Guesses are slowed down, and their number is in the audit trail.
pub(crate) struct KeyRefuser<P: Ports> {
    wrong_keys: SharedPort<P, WrongKeys>,
    clock: P::Clock,
    audit: AuditTrail<P>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for KeyRefuser<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            wrong_keys: SharedPort::new(manage, |it| &it.wrong_keys),
            clock: manage.clock.clone(),
            audit: AuditTrail::from_ref(manage),
        }
    }
}

impl<P: Ports> KeyRefuser<P> {
    /// Answers a wrong key with this problem, where waiting costs nothing after a while. The audit
    /// trail has their number.
    pub(crate) async fn refuse_key(
        &self,
        problem: ApiProblem,
        door: AuditDoor,
        peer: Option<PeerAddress>,
    ) -> ApiError {
        if let Some(keys) = self.wrong_keys.note_wrong_key("manage", &self.clock) {
            self.audit.note_refused_keys(door, peer, keys).await;
        }
        match self.wrong_keys.slow_down(&self.clock).await {
            WrongKeyAnswer::Wrong => problem.into(),
            WrongKeyAnswer::TooMany => too_many_keys().into(),
        }
    }
}

fn too_many_keys() -> ApiProblem {
    ApiProblem::new(ProblemKind::Unauthorized)
        .status(StatusCode::TOO_MANY_REQUESTS)
        .detail("too many wrong keys are being answered")
        .retry_after(TOO_MANY_RETRY_AFTER)
}
