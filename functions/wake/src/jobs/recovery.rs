//! Recovery by itself: looks at the marks of outages, begins a replay for each once its endpoint
//! has been well, and says which of those replays may go on in this run. The rules are in
//! [`posthaste_core::release::recovery`].

mod look;
mod marked;
mod notice;
mod probe;
mod step;

use std::collections::BTreeSet;
use std::error::Error;

use parking_lot::Mutex;
use posthaste_core::health::HealthBook;
use posthaste_core::model::TopicName;
use posthaste_core::stored::layout;
use posthaste_ports::{ErrorKind, ObjectStore, Ports};
use posthaste_services::catch_panic::catch_panic;

use super::ended;
use super::recovery_permits::RecoveryPermits;
use super::replays::ReplayError;
use crate::run::WakeRun;
use look::RecoveryContext;
use marked::StoredMark;
use step::take_step;

/// Most marks that a run looks at: the next one goes on after them.
const MARKS_MAX: usize = 200;

/// The key after which the next run looks at marks.
#[derive(Debug, Default)]
pub(crate) struct MarkWalk(Mutex<Option<String>>);

/// Looks at marks, and answers which replays may go on.
pub(crate) async fn check_marks<P: Ports>(
    run: WakeRun<'_, P>,
    walk: &MarkWalk,
    notices_topic: Option<&TopicName>,
) -> RecoveryPermits {
    let mut look = RecoveryContext {
        run,
        notices_topic,
        book: HealthBook::default(),
        probed: BTreeSet::new(),
        permits: RecoveryPermits::new(),
    };
    ended::run_and_log(run, "recovery", check_all(&mut look, walk)).await;
    look.permits
}

async fn check_all<P: Ports>(
    look: &mut RecoveryContext<'_, P>,
    walk: &MarkWalk,
) -> Result<(), ReplayError> {
    let run = look.run;
    let ports = run.ports;
    let after = walk.0.lock().clone();
    let page = ports
        .state
        .list(layout::RECOVERY, after.as_deref(), MARKS_MAX);
    let page = page.await.map_err(ReplayError::Store)?;
    if page.next_after.is_some() || after.is_some() {
        // The marks of other pages may have work too.
        run.note_work();
    }
    if !page.objects.is_empty() {
        let stored = ports.links.arrivals().stored_book().await;
        look.book = stored.map_err(ReplayError::Health)?;
    }
    for object in page.objects {
        if !run.has_time() {
            run.note_work();
            return Ok(());
        }
        let looked = catch_panic(Box::pin(check_mark(look, &object.key))).await;
        let looked = looked.map_err(ReplayError::Panicked).flatten();
        if looked.as_ref().is_err_and(is_raced) {
            // deadletter has counted more letters meanwhile.
            run.note_work();
        } else if let Err(error) = looked {
            run.note_work();
            tracing::error!(
                key = object.key,
                error = &error as &dyn Error,
                "the recovery of an outage made no progress, the next run tries again"
            );
        }
        *walk.0.lock() = Some(object.key);
    }
    *walk.0.lock() = page.next_after;
    Ok(())
}

async fn check_mark<P: Ports>(
    look: &mut RecoveryContext<'_, P>,
    key: &str,
) -> Result<(), ReplayError> {
    match StoredMark::load(look.run.ports, key).await? {
        Some(marked) => take_step(look, marked).await,
        None => Ok(()),
    }
}

/// Whether another writer was faster.
fn is_raced(error: &ReplayError) -> bool {
    matches!(error, ReplayError::Store(error) if error.kind == ErrorKind::PreconditionFailed)
}

#[cfg(test)]
mod tests;
