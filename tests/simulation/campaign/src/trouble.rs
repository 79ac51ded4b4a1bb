//! Faults that a course plans, one at a time, over all ports of an installation.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use posthaste_ports::ErrorKind;
use posthaste_testkit::CallFault;
use posthaste_testkit::faulty::FaultPlan;
use posthaste_testkit::recorded::PortOperation;

use crate::course::Wrong;

/// The label of the client of endpoints.
const CLIENT: &str = "webhooks";

/// A fault that is to come. Clones share it, also over the processes of an installation.
#[derive(Debug, Clone)]
pub(crate) struct Trouble(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// The calls until the fault; below zero there is none.
    calls_left: AtomicI64,
    wrong: Mutex<Wrong>,
    /// Whether the process is to be killed now.
    kills: AtomicBool,
    happened: Mutex<Vec<PlannedFault>>,
}

/// A fault that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedFault {
    pub(crate) wrong: Wrong,
    pub(crate) port: &'static str,
    pub(crate) operation: PortOperation,
    pub(crate) key: String,
}

impl Trouble {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Shared {
            calls_left: AtomicI64::new(-1),
            wrong: Mutex::new(Wrong::Fails),
            kills: AtomicBool::new(false),
            happened: Mutex::default(),
        }))
    }

    /// A call goes wrong, so many calls from now.
    pub(crate) fn arm(&self, calls: u16, wrong: Wrong) {
        *self.0.wrong.lock() = wrong;
        self.0.calls_left.store(i64::from(calls), Ordering::Relaxed);
    }

    /// Panics if a request to an endpoint is to panic now.
    pub(crate) fn panic_in_client(&self) {
        let shared = &self.0;
        let is_meant = *shared.wrong.lock() == Wrong::ClientPanics;
        if is_meant && self.counts_down() {
            shared.happened.lock().push(PlannedFault {
                wrong: Wrong::ClientPanics,
                port: CLIENT,
                operation: PortOperation::Post,
                key: String::new(),
            });
            resume_unwind(Box::new("as planned"));
        }
    }

    /// Counts a call. True if it is the one that goes wrong.
    fn counts_down(&self) -> bool {
        let left = &self.0.calls_left;
        left.load(Ordering::Relaxed) >= 0 && left.fetch_sub(1, Ordering::Relaxed) == 0
    }

    /// No armed fault happens any more.
    pub(crate) fn disarm(&self) {
        self.0.calls_left.store(-1, Ordering::Relaxed);
    }

    /// Whether the process is to be killed now; it is asked once.
    pub(crate) fn takes_kill(&self) -> bool {
        self.0.kills.swap(false, Ordering::Relaxed)
    }

    /// The faults since the last time.
    pub(crate) fn take_happened(&self) -> Vec<PlannedFault> {
        std::mem::take(&mut self.0.happened.lock())
    }

    pub(crate) fn plan(&self) -> FaultPlan {
        let trouble = self.clone();
        FaultPlan::by(move |effect| {
            let shared = &trouble.0;
            let wrong = *shared.wrong.lock();
            if wrong == Wrong::ClientPanics || !trouble.counts_down() {
                return None;
            }
            shared.happened.lock().push(PlannedFault {
                wrong,
                port: effect.port,
                operation: effect.operation,
                key: effect.key.to_owned(),
            });
            Some(match wrong {
                Wrong::Fails => CallFault::Before(ErrorKind::Other),
                Wrong::AnswerLost => CallFault::After(ErrorKind::TimedOut),
                Wrong::Panics | Wrong::ClientPanics => resume_unwind(Box::new("as planned")),
                Wrong::KilledBefore => {
                    shared.kills.store(true, Ordering::Relaxed);
                    CallFault::HangBefore
                }
                Wrong::KilledAfter => {
                    shared.kills.store(true, Ordering::Relaxed);
                    CallFault::HangAfter
                }
            })
        })
    }
}
