//! Plans of faults: which calls fail, and how.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use posthaste_ports::ErrorKind;

use crate::recorded::PortOperation;

/// More effects than a run has that is repeated with a fault at each.
const EFFECTS_MAX: u64 = 1000;

/// The fault of one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFault {
    /// The call fails without an effect. A webhook fails as `Socket`, or as `TimedOut` for that
    /// kind.
    Before(ErrorKind),
    /// The effect happens, but its result is lost and the call fails.
    After(ErrorKind),
    /// The call never ends and has no effect; dropping it is how a test kills the caller here.
    HangBefore,
    /// The effect happens, and the call never ends.
    HangAfter,
    /// Single entries of a `send_batch` fail. This fault does not touch other operations.
    Entries(Vec<EntryFault>),
}

/// The fault of one entry of a `send_batch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryFault {
    /// The entry's index, from 0. An index beyond the batch does nothing.
    pub index: usize,
    /// Whether the message is sent all the same.
    pub is_sent: bool,
    /// The kind of the entry's error.
    pub kind: ErrorKind,
}

/// A call about to be made, as a plan sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortEffect<'a> {
    /// The call's number over all ports that share the plan, from 0.
    pub number: u64,
    /// The label of the decorator it goes through.
    pub port: &'static str,
    /// The method.
    pub operation: PortOperation,
    /// The object's key or the listing's prefix; empty for others.
    pub key: &'a str,
}

type FaultRule = dyn Fn(PortEffect<'_>) -> Option<CallFault> + Send + Sync;

/// Decides which calls fail, until it is switched off. Clones share it, so several ports may count
/// through one plan.
#[derive(Clone)]
pub struct FaultPlan {
    rule: Arc<FaultRule>,
    is_off: Arc<AtomicBool>,
    effects: Arc<AtomicU64>,
    faults: Arc<AtomicU64>,
}

impl FaultPlan {
    /// A plan by which no call fails; effects are counted all the same.
    pub fn none() -> Self {
        Self::by(|_| None)
    }

    /// A plan by which the call with this number, from 0, fails so.
    pub fn nth(number: u64, fault: CallFault) -> Self {
        Self::nth_of(number, fault, |_| true)
    }

    /// The call with this number, from 0, of those that are meant and come while the plan is on,
    /// fails so.
    pub fn nth_of(
        number: u64,
        fault: CallFault,
        is_meant: impl Fn(PortEffect<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        let seen = AtomicU64::new(0);
        Self::at(fault, move |effect| {
            is_meant(effect) && seen.fetch_add(1, Ordering::SeqCst) == number
        })
    }

    /// A plan by which the selected calls fail so.
    pub fn at(
        fault: CallFault,
        is_meant: impl Fn(PortEffect<'_>) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self::by(move |effect| is_meant(effect).then(|| fault.clone()))
    }

    /// A plan by which calls fail as `rule` says.
    pub fn by(rule: impl Fn(PortEffect<'_>) -> Option<CallFault> + Send + Sync + 'static) -> Self {
        let rule = Arc::new(rule);
        Self {
            rule,
            is_off: Arc::default(),
            effects: Arc::default(),
            faults: Arc::default(),
        }
    }

    /// Switches the plan on, as it is at first, or off: then nothing fails, and effects are counted
    /// all the same.
    pub fn switch(&self, is_on: bool) {
        self.is_off.store(!is_on, Ordering::SeqCst);
    }

    /// Runs `call` until a fault hangs it, and drops it there, as a kill does.
    pub async fn kill<T: fmt::Debug>(&self, call: impl Future<Output = T>) {
        let is_hit = async {
            while self.faults() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            answer = call => panic!("it hangs, and not {answer:?}"),
            () = is_hit => {}
        }
    }

    /// The number of calls that the plan has seen.
    pub fn effects(&self) -> u64 {
        self.effects.load(Ordering::SeqCst)
    }

    /// The number of calls that it made fail.
    pub fn faults(&self) -> u64 {
        self.faults.load(Ordering::SeqCst)
    }

    pub(super) fn decide(
        &self,
        port: &'static str,
        operation: PortOperation,
        key: &str,
    ) -> Option<CallFault> {
        let number = self.effects.fetch_add(1, Ordering::SeqCst);
        if self.is_off.load(Ordering::SeqCst) {
            return None;
        }
        let fault = (self.rule)(PortEffect {
            number,
            port,
            operation,
            key,
        });
        if fault.is_some() {
            self.faults.fetch_add(1, Ordering::SeqCst);
        }
        fault
    }
}

impl fmt::Debug for FaultPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("effects", &self.effects)
            .field("faults", &self.faults)
            .finish_non_exhaustive()
    }
}

/// A fault at every effect, before it happens and after it: runs `run` with a plan that makes the
/// first effect fail, then with one for the second, until none is left to fail. `run` gets the
/// fault in words too.
pub async fn at_every_effect(run: impl AsyncFnMut(&FaultPlan, &str)) {
    at_every_effect_of(|_| true, run).await;
}

/// A fault at every selected effect, otherwise as [`at_every_effect`].
pub async fn at_every_effect_of(
    is_meant: fn(PortEffect<'_>) -> bool,
    mut run: impl AsyncFnMut(&FaultPlan, &str),
) {
    for fault in [
        CallFault::Before(ErrorKind::Other),
        CallFault::After(ErrorKind::TimedOut),
    ] {
        let mut number = 0;
        let mut is_whole = false;
        while !is_whole {
            assert!(
                number < EFFECTS_MAX,
                "the run has more than {EFFECTS_MAX} effects"
            );
            let plan = FaultPlan::nth_of(number, fault.clone(), is_meant);
            run(&plan, &format!("{fault:?} at effect {number}")).await;
            is_whole = plan.faults() == 0;
            number += 1;
        }
    }
}
