//! Ownership of a state bucket: one stack at a time works on it. Two would share its queues, and
//! each would deliver by settings of its own.

use serde::{Deserialize, Serialize};

use super::{STATE_OWNER_LIVES, STATE_OWNER_RENEWED, Timestamp};

/// The stack that works on a state, as it says itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateOwner {
    /// The stack's id, an ARN.
    pub stack: String,
    /// The time at which it last said so; the epoch if it has given the state up.
    pub seen_at: Timestamp,
}

/// The state is this stack's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnershipClaim {
    /// The stored owner says so already.
    Current,
    /// The owner must be written.
    Due,
}

/// Another stack works on the state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the stack {} works on this state, last seen at {}: delete that stack (its queues and buckets stay) and \
     deploy again; if it is gone already, deploy again once {} minutes have passed since then",
    .0.stack, .0.seen_at, STATE_OWNER_LIVES.as_secs() / 60
)]
pub struct LivingOwner(pub StateOwner);

impl StateOwner {
    /// The claim of `stack` once it is given up: last seen at the epoch, so it has expired.
    pub fn released_by(stack: &str) -> Self {
        Self {
            stack: stack.to_owned(),
            seen_at: Timestamp::EPOCH,
        }
    }

    /// Whether `stack` may work on a state with this owner. A clock that is wrong by a while counts
    /// as one that is right: an owner seen in the near future lives.
    pub fn claim_state(
        owner: Option<&Self>,
        stack: &str,
        now: Timestamp,
    ) -> Result<OwnershipClaim, LivingOwner> {
        let Some(owner) = owner else {
            return Ok(OwnershipClaim::Due);
        };
        let age = now.since(owner.seen_at).max(owner.seen_at.since(now));
        match owner.stack == stack {
            true if age < STATE_OWNER_RENEWED => Ok(OwnershipClaim::Current),
            false if age < STATE_OWNER_LIVES => Err(LivingOwner(owner.clone())),
            _ => Ok(OwnershipClaim::Due),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const SEEN_AT: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    fn owner() -> StateOwner {
        StateOwner {
            stack: "old".to_owned(),
            seen_at: SEEN_AT,
        }
    }

    fn after(age: Duration) -> Timestamp {
        SEEN_AT + age
    }

    #[test]
    fn a_state_without_an_owner_is_free() {
        assert_eq!(
            StateOwner::claim_state(None, "new", SEEN_AT),
            Ok(OwnershipClaim::Due)
        );
    }

    #[test]
    fn other_stack_seen_within_ten_minutes_is_not_replaced() {
        let just_alive = Duration::from_secs(599);
        let gone = Duration::from_mins(10);
        let claim = |now| StateOwner::claim_state(Some(&owner()), "new", now);
        assert_eq!(claim(SEEN_AT), Err(LivingOwner(owner())));
        assert_eq!(claim(after(just_alive)), Err(LivingOwner(owner())));
        assert_eq!(claim(after(gone)), Ok(OwnershipClaim::Due));
        // The clock of the other stack is ahead.
        assert_eq!(
            claim(Timestamp::from_millis(SEEN_AT.as_millis() - 1)),
            Err(LivingOwner(owner()))
        );
        assert_eq!(
            claim(Timestamp::from_millis(SEEN_AT.as_millis() - 600_000)),
            Ok(OwnershipClaim::Due)
        );
    }

    #[test]
    fn owner_renews_its_claim_twice_before_it_counts_as_gone() {
        let claim = |now| StateOwner::claim_state(Some(&owner()), "old", now);
        assert_eq!(
            claim(after(Duration::from_secs(299))),
            Ok(OwnershipClaim::Current)
        );
        assert_eq!(
            claim(after(Duration::from_mins(5))),
            Ok(OwnershipClaim::Due)
        );
        assert_eq!(
            claim(after(Duration::from_hours(9))),
            Ok(OwnershipClaim::Due)
        );
        assert!(STATE_OWNER_RENEWED * 2 <= STATE_OWNER_LIVES);
    }

    #[test]
    fn a_refusal_names_the_stack_and_the_time_and_says_what_to_do() {
        assert_eq!(
            LivingOwner(owner()).to_string(),
            "the stack old works on this state, last seen at 2023-11-14T22:13:20.000Z: delete that stack \
             (its queues and buckets stay) and deploy again; if it is gone already, deploy again once 10 \
             minutes have passed since then"
        );
    }
}
