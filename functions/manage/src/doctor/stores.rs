//! The stores: each is listed, read and written to as this function needs it.
//!
//! A write that cannot happen shows the right to write and leaves nothing behind: its condition is
//! a version that no object has. A store that refuses the writer says so before it looks at the
//! condition.

use std::sync::Arc;

use axum::extract::FromRef;
use bytes::Bytes;
use futures_util::future::join3;
use posthaste_core::api::doctor::{CheckResult, CheckView};
use posthaste_core::model::with_causes;
use posthaste_delivery_log::DeliveryLog;
use posthaste_ports::{Clock, ETag, ErrorKind, ObjectStore, PortError, Ports, PutCondition};

use super::in_time::in_time;
use crate::manage::Manage;
use crate::shared_port::SharedPort;

/// Keys at which nothing ever is, below prefixes where this function may read and write: the names
/// of their objects have another form.
const STATE_TRIAL: StoreTrial = StoreTrial {
    key: "validating/doctor",
    uses: StoreUse::ReadsAndWrites,
};
const DEAD_LETTERS_TRIAL: StoreTrial = StoreTrial {
    key: "resolved/doctor",
    uses: StoreUse::ReadsAndWrites,
};
const LOG_TRIAL: StoreTrial = StoreTrial {
    key: "doctor",
    uses: StoreUse::Reads,
};

/// A version that no object has.
const NO_VERSION: &str = "\"doctor\"";

/// A key of a store, and the use that this function makes of the store.
#[derive(Debug, Clone, Copy)]
struct StoreTrial {
    key: &'static str,
    uses: StoreUse,
}

/// The use that this function makes of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StoreUse {
    Reads,
    ReadsAndWrites,
}

/// The checks of the stores.
pub(crate) struct StoreChecks<P: Ports> {
    state: SharedPort<P, P::Store>,
    dead_letters: SharedPort<P, P::DeadLetters>,
    log: SharedPort<P, DeliveryLog<P::Log>>,
}

impl<P: Ports> FromRef<Arc<Manage<P>>> for StoreChecks<P> {
    fn from_ref(manage: &Arc<Manage<P>>) -> Self {
        Self {
            state: SharedPort::new(manage, |it| &it.state),
            dead_letters: SharedPort::new(manage, |it| &it.dead_letters),
            log: SharedPort::new(manage, |it| &it.log),
        }
    }
}

impl<P: Ports> StoreChecks<P> {
    /// A check of each store.
    pub(super) async fn check_stores(&self, clock: &P::Clock) -> Vec<CheckView> {
        let state = check_store(clock, &*self.state, "the state", STATE_TRIAL);
        let dead_letters = check_store(
            clock,
            &*self.dead_letters,
            "dead letters",
            DEAD_LETTERS_TRIAL,
        );
        let log = check_store(clock, self.log.store(), "the delivery log", LOG_TRIAL);
        let (state, dead_letters, log) = join3(state, dead_letters, log).await;
        vec![state, dead_letters, log]
    }
}

async fn check_store<S: ObjectStore>(
    clock: &impl Clock,
    store: &S,
    of: &str,
    trial: StoreTrial,
) -> CheckView {
    let look = async {
        match try_store(store, trial).await {
            Ok(()) => {
                let done = match trial.uses {
                    StoreUse::Reads => "listed and read",
                    StoreUse::ReadsAndWrites => "listed and read, and may be written to",
                };
                CheckView::passed("store", of, done)
            }
            Err(error) => CheckView::passed("store", of, with_causes(&error))
                .with_result(CheckResult::Failed, store_advice(error.kind)),
        }
    };
    in_time(clock, "store", of.to_owned(), look).await
}

/// Lists, reads and writes at a key where there is nothing.
async fn try_store<S: ObjectStore>(store: &S, trial: StoreTrial) -> Result<(), PortError> {
    let StoreTrial { key, uses } = trial;
    store.list(key, None, 1).await?;
    store.get(key).await?;
    if uses == StoreUse::Reads {
        return Ok(());
    }
    let condition = PutCondition::IfMatch(ETag(NO_VERSION.to_owned()));
    match store.put(key, Bytes::new(), condition).await {
        // S3 answers 404 where there is no object, and others that the condition does not hold.
        Err(error) if is_of_condition(error.kind) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => Ok(()),
    }
}

fn is_of_condition(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::PreconditionFailed | ErrorKind::NotFound)
}

fn store_advice(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Denied => {
            "give the right back: deploy the template again, and look for a policy of the bucket, \
             of its key or of the organisation that denies it"
        }
        ErrorKind::Full => "free space on the disk that holds the data folder",
        ErrorKind::NotFound => "the bucket must exist: restore it, or deploy the stack again",
        ErrorKind::Throttled { .. } | ErrorKind::TimedOut => "ask again in a minute",
        _ => "look at the server's log, which has the same error with each request that met it",
    }
}
