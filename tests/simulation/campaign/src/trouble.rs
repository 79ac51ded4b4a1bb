//! Faults that a course plans, one at a time, over all ports of an installation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use parking_lot::Mutex;
use posthaste_ports::ErrorKind;
use posthaste_testkit::Fault;
use posthaste_testkit::faulty::Plan;
use posthaste_testkit::recorded::Operation;

use crate::course::Wrong;

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
    pub(crate) operation: Operation,
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

    pub(crate) fn plan(&self) -> Plan {
        let shared = Arc::clone(&self.0);
        Plan::by(move |effect| {
            let left = &shared.calls_left;
            if left.load(Ordering::Relaxed) < 0 || left.fetch_sub(1, Ordering::Relaxed) > 0 {
                return None;
            }
            let wrong = *shared.wrong.lock();
            shared.happened.lock().push(PlannedFault {
                wrong,
                port: effect.port,
                operation: effect.operation,
                key: effect.key.to_owned(),
            });
            Some(match wrong {
                Wrong::Fails => Fault::Before(ErrorKind::Other),
                Wrong::AnswerLost => Fault::After(ErrorKind::TimedOut),
                Wrong::KilledBefore => {
                    shared.kills.store(true, Ordering::Relaxed);
                    Fault::HangBefore
                }
                Wrong::KilledAfter => {
                    shared.kills.store(true, Ordering::Relaxed);
                    Fault::HangAfter
                }
            })
        })
    }
}
