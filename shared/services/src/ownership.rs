//! A stack's claim to its state bucket: written when the stack is made, renewed while it lives, and
//! given up when it is deleted.

use std::convert::Infallible;

use posthaste_core::model::{FormatError, LivingOwner, OwnershipClaim, StateOwner, Timestamp};
use posthaste_core::stored::layout::OWNER;
use posthaste_ports::{Clock, ObjectStore, StoredObject};

use crate::update::{ObjectEdit, UpdateError, update_object};

/// Reasons for which a claim is refused.
#[derive(Debug, thiserror::Error)]
pub enum ClaimRefused {
    /// Another stack works on the state.
    #[error(transparent)]
    Living(LivingOwner),
    /// The owner cannot be understood, so that it may live.
    #[error("failed to understand {OWNER}: delete this object once no other stack uses the bucket")]
    Unreadable(#[source] FormatError),
}

/// Reasons for which a claim was not written.
pub type ClaimError = UpdateError<ClaimRefused>;

/// The claims of one stack to a state bucket.
#[derive(Debug)]
pub struct StackOwnership<S, C> {
    state: S,
    clock: C,
}

impl<S: ObjectStore, C: Clock> StackOwnership<S, C> {
    /// Claims on the state bucket `state`.
    pub const fn new(state: S, clock: C) -> Self {
        Self { state, clock }
    }

    /// Claims the state for `stack`, or renews its claim, and returns whether that was due. Of
    /// stacks that claim at once, one wins.
    pub async fn claim(&self, stack: &str) -> Result<OwnershipClaim, ClaimError> {
        let now = self.clock.now();
        Ok(
            update_object(&self.state, OWNER, |found| claim_edit(found, stack, now))
                .await?
                .answer,
        )
    }

    /// Gives up the claim of `stack`. The claim of another stack stays, even if it is made
    /// meanwhile. A delete has no condition, so the claim is not deleted but written as one that
    /// has ended.
    pub async fn release(&self, stack: &str) -> Result<(), UpdateError<Infallible>> {
        update_object(&self.state, OWNER, |found| Ok(release_edit(found, stack)))
            .await
            .map(drop)
    }
}

fn claim_edit(
    found: Option<StoredObject>,
    stack: &str,
    now: Timestamp,
) -> Result<ObjectEdit<OwnershipClaim>, ClaimRefused> {
    let owner = found
        .map(|object| StateOwner::parse(&object.bytes))
        .transpose();
    let owner = owner.map_err(ClaimRefused::Unreadable)?;
    let claim =
        StateOwner::claim_state(owner.as_ref(), stack, now).map_err(ClaimRefused::Living)?;
    Ok(match claim {
        OwnershipClaim::Current => ObjectEdit::Keep(claim),
        OwnershipClaim::Due => ObjectEdit::Write(
            StateOwner {
                stack: stack.to_owned(),
                seen_at: now,
            }
            .render(),
            claim,
        ),
    })
}

fn release_edit(found: Option<StoredObject>, stack: &str) -> ObjectEdit<()> {
    let owner = found.and_then(|object| StateOwner::parse(&object.bytes).ok());
    match owner {
        Some(owner) if owner.stack == stack && owner.seen_at != Timestamp::EPOCH => {
            ObjectEdit::Write(StateOwner::released_by(stack).render(), ())
        }
        _ => ObjectEdit::Keep(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::FutureExt;
    use posthaste_ports::PutCondition;
    use posthaste_testkit::ManualClock;
    use posthaste_testkit::faulty::{FaultPlan, Faulty};
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::recorded::PortOperation;

    use super::*;

    fn world() -> (
        MemoryStore,
        ManualClock,
        StackOwnership<MemoryStore, ManualClock>,
    ) {
        let clock = ManualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let store = MemoryStore::default();
        (
            store.clone(),
            clock.clone(),
            StackOwnership::new(store, clock),
        )
    }

    async fn owner(store: &MemoryStore) -> Option<String> {
        let object = store.get(OWNER).await.unwrap()?;
        Some(StateOwner::parse(&object.bytes).unwrap().stack)
    }

    #[tokio::test]
    async fn a_second_stack_is_refused_until_the_first_gives_up() {
        let (store, _, ownership) = world();
        ownership.claim("first").await.unwrap();
        let refused = ownership.claim("second").await.unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("the stack first works on this state"),
            "{refused}"
        );
        ownership.release("second").await.unwrap();
        assert_eq!(owner(&store).await.as_deref(), Some("first"));
        ownership.release("first").await.unwrap();
        let given_up = StateOwner::released_by("first").render();
        assert_eq!(store.get(OWNER).await.unwrap().unwrap().bytes, given_up);
        ownership.release("first").await.unwrap();
        ownership.claim("second").await.unwrap();
        assert_eq!(owner(&store).await.as_deref(), Some("second"));
    }

    /// The first stood still for ten minutes. Another one takes the state between a look at the claim
    /// and its end.
    #[tokio::test]
    async fn claim_that_is_made_while_another_is_given_up_stays() {
        let (store, clock, ownership) = world();
        ownership.claim("first").await.unwrap();
        clock.advance(Duration::from_mins(10));
        let plan = FaultPlan::by(move |effect| {
            if effect.operation == PortOperation::Put {
                let claimed = ownership.claim("second").now_or_never();
                claimed.expect("memory is quick").unwrap();
            }
            None
        });
        let releasing = StackOwnership::new(Faulty::new(store.clone(), "state", &plan), clock);
        releasing.release("first").await.unwrap();
        assert_eq!(owner(&store).await.as_deref(), Some("second"));
    }

    #[tokio::test]
    async fn a_stack_that_renews_its_claim_every_five_minutes_keeps_it() {
        let (store, clock, ownership) = world();
        for _ in 0..4 {
            ownership.claim("first").await.unwrap();
            clock.advance(Duration::from_mins(5));
            ownership.claim("second").await.unwrap_err();
        }
        clock.advance(Duration::from_mins(5));
        ownership.claim("second").await.unwrap();
        assert_eq!(owner(&store).await.as_deref(), Some("second"));
        ownership.claim("first").await.unwrap_err();
    }

    #[tokio::test]
    async fn an_owner_that_cannot_be_read_is_not_replaced_nor_deleted() {
        let (store, _, ownership) = world();
        for bytes in [r#"{"v":2}"#, "{"] {
            store
                .put(OWNER, Bytes::from(bytes), PutCondition::Always)
                .await
                .unwrap();
            let refused = ownership.claim("first").await.unwrap_err();
            assert!(
                matches!(refused, UpdateError::Edit(ClaimRefused::Unreadable(_))),
                "{refused}"
            );
            ownership.release("first").await.unwrap();
            assert_eq!(store.get(OWNER).await.unwrap().unwrap().bytes, bytes);
        }
    }
}
