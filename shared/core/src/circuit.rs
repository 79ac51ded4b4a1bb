//! Whether endpoints can be reached, and what that means for what waits for them: Exchange's queue
//! states, for links and for subscriptions, as data and pure decisions.
//!
//! A target that fails again and again gets no requests for a while. Then one request, the probe,
//! asks it. A target that is well has no record.
//!
//! | phase | observation | becomes | what waits |
//! |---|---|---|---|
//! | well | a streak of failures | Glitch, 60 s | in the queue |
//! | Glitch | its probe fails | the next Glitch; after three of them Retry, 10 min | in the queue |
//! | Retry | its probe fails | the next hold: 10 min three times, then 15 min each | held |
//! | Glitch, Retry | a success, force, or a probe of an unknown host | Recovering: 1, 2, 4 … | let through |
//! | Recovering | a streak of failures | Glitch, 60 s | in the queue |
//! | Recovering | the ramp has ended | well | – |
//! | well, Recovering | its endpoint asks for a pause (`Retry-After`) | a pause: Glitch 0 | in the queue |
//! | Glitch, Retry | the same | the same hold, until then at least | as before |
//! | pause | its probe fails, or asks for the tenth in a row | Glitch, 60 s at least | in the queue |
//! | well, Recovering | refusals in a row, of different events | Glitch, 60 s | in the queue |
//! | the same, refused | its probe is refused too | the next hold | as before |
//!
//! A success ends a hold, but not one whose end was asked for. A refusal is as good as a success,
//! but not to a target that is held for its refusals. Everything else changes nothing.
//! [`condition_after`] decides the table, [`decide_for_subscription`] whether a delivery may be sent, [`state_change`] the
//! notices.

mod answering;
mod blame;
mod condition;
mod consecutive_failures;
mod decision;
mod failure_scope;
mod invocation_results;
mod last_successes;
mod log_ids;
mod observe;
mod pause;
mod refusals;
mod settings;
mod shard;
mod state_change;
mod target;

pub use answering::AnsweredSubscriptions;
pub use blame::FailureBlame;
pub use condition::{ProbeLease, RequestFailure, TargetCondition, TargetPhase};
pub use consecutive_failures::{ConsecutiveFailures, SuccessSpan};
pub use decision::{
    CircuitDecision, PROBE_LOOK_AGAIN, ProbedTargets, decide_for_subscription, stricter_decision,
};
pub use failure_scope::{
    FailureScope, HealthSignal, HealthSignals, failure_scope, health_signals, is_problem,
};
pub use invocation_results::{AllFailed, InvocationResults};
pub use last_successes::LastSuccesses;
pub use log_ids::{EXCHANGE_FAILED, LINK_FAILED};
pub use observe::{Observation, RequestedPause, condition_after};
pub use pause::{SubscriptionPause, brief_pause_end, requested_pause};
pub use refusals::{ConsecutiveRefusals, REFUSED_EVENTS_MIN, RefusalSubject, refusal_subject};
pub use settings::{HealthSettings, HealthSettingsError};
pub(crate) use shard::CLOCKS_APART_MAX;
pub use shard::{LINK_SHARDS, LinkShard, TARGETS_PER_SHARD_MAX, shard_index};
pub use state_change::{RECOVERED_KNOWN_FOR, StateChange, is_over, state_change, with_notice_sent};
pub use target::DeliveryTarget;

#[cfg(test)]
mod tests;
