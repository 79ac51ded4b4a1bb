//! monitor with the claim of its stack to the state bucket: it makes the claim when the stack is made, renews
//! it before it samples, and gives it up when the stack is deleted.

use std::time::Duration;

use lambda_runtime::Error;
use parking_lot::Mutex;
use posthaste_aws::lambda::{Scheduled, StackChange, StackResource};
use posthaste_core::model::{Claim, STATE_OWNER_RENEWED};
use posthaste_ports::{Clock, ErrorKind, ObjectStore};
use posthaste_services::{ClaimError, Ownership, UpdateError};

/// The time for which a new role may be refused before that is an error. IAM needs some seconds until S3
/// knows it. <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html>
const ROLE_UNKNOWN_MAX: Duration = Duration::from_secs(30);

/// The time between two tries of a role that is refused.
const ROLE_TRIES: Duration = Duration::from_secs(2);

/// A function that runs only while its stack owns the state.
#[derive(Debug)]
pub struct Owned<R, S, C> {
    pub(crate) run: R,
    ownership: Ownership<S, C>,
    /// The id of the stack, by which it renews its claim. A function without one renews nothing.
    stack: Option<String>,
    bucket: String,
    clock: C,
    /// The time of the last claim that this process wrote, by the clock's `monotonic`.
    claimed_at: Mutex<Option<Duration>>,
}

impl<R, S: ObjectStore, C: Clock> Owned<R, S, C> {
    /// `run` as a function of `stack`, over the state in `bucket`.
    pub fn new(run: R, stack: Option<String>, bucket: String, state: S, clock: C) -> Self {
        Self {
            run,
            ownership: Ownership::new(state, clock.clone()),
            stack,
            bucket,
            clock,
            claimed_at: Mutex::default(),
        }
    }

    /// Claims the state, and tries again while the role is refused.
    async fn claim_patiently(&self, stack: &str, deadline: Duration) -> Result<(), ClaimError> {
        let until = deadline.min(self.clock.monotonic() + ROLE_UNKNOWN_MAX);
        loop {
            match self.claim(stack).await {
                Err(error) if is_denied(&error) && self.clock.monotonic() + ROLE_TRIES < until => {
                    self.clock.sleep(ROLE_TRIES).await;
                }
                done => return done,
            }
        }
    }

    async fn claim(&self, stack: &str) -> Result<(), ClaimError> {
        let now = self.clock.monotonic();
        // Boxed, as the future of a request is large.
        if Box::pin(self.ownership.claim(stack)).await? == Claim::Due {
            *self.claimed_at.lock() = Some(now);
        }
        Ok(())
    }

    /// Renews the claim, without a request while the last one holds.
    async fn renew(&self, stack: &str) -> Result<(), ClaimError> {
        let is_due = |at: Duration| self.clock.monotonic().saturating_sub(at) >= STATE_OWNER_RENEWED;
        let claimed_at = *self.claimed_at.lock();
        if claimed_at.is_none_or(is_due) { self.claim(stack).await } else { Ok(()) }
    }
}

impl<R: Scheduled, S: ObjectStore + 'static, C: Clock> Scheduled for Owned<R, S, C> {
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        if let Some(stack) = &self.stack {
            match self.renew(stack).await {
                Err(UpdateError::Edit(refused)) => return Err(refused.into()),
                Err(error) => {
                    tracing::warn!(
                        error = &error as &dyn std::error::Error,
                        "claim to the state not renewed"
                    );
                }
                Ok(()) => {}
            }
        }
        self.run.run(deadline).await
    }
}

impl<R: Scheduled, S: ObjectStore + 'static, C: Clock> StackResource for Owned<R, S, C> {
    /// The claim is one to the bucket: an update that names another bucket claims that one, and the former
    /// claim ends by itself.
    fn id(&self) -> String {
        format!("claim:{}", self.bucket)
    }

    async fn change(&self, change: StackChange, stack: &str, deadline: Duration) -> Result<(), Error> {
        match change {
            StackChange::Create | StackChange::Update => {
                Ok(Box::pin(self.claim_patiently(stack, deadline)).await?)
            }
            StackChange::Delete { id } if id == self.id() => Ok(self.ownership.release(stack).await?),
            StackChange::Delete { .. } => Ok(()),
        }
    }
}

fn is_denied(error: &ClaimError) -> bool {
    let (UpdateError::Read(error) | UpdateError::Write(error)) = error else { return false };
    error.kind == ErrorKind::Denied
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use posthaste_core::model::Timestamp;
    use posthaste_core::stored::layout::OWNER;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{Calls, ManualClock, Operation, Recorded};

    use super::*;

    const LATER: Duration = Duration::from_mins(1);

    /// Counts its runs.
    #[derive(Clone, Default)]
    struct Runs(Arc<AtomicUsize>);

    impl Scheduled for Runs {
        async fn run(&self, _: Duration) -> Result<(), Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    type World = (MemoryStore, ManualClock, Runs);

    fn world() -> World {
        (MemoryStore::default(), ManualClock::new(Timestamp::from_millis(1_700_000_000_000)), Runs::default())
    }

    fn owned((store, clock, runs): &World, stack: &str) -> Owned<Runs, MemoryStore, ManualClock> {
        let (stack, bucket) = (Some(stack.to_owned()), "state".to_owned());
        Owned::new(runs.clone(), stack, bucket, store.clone(), clock.clone())
    }

    fn deleted(bucket: &str) -> StackChange {
        StackChange::Delete { id: format!("claim:{bucket}") }
    }

    #[tokio::test]
    async fn a_second_stack_is_neither_made_nor_run_while_the_first_lives() {
        let world = world();
        let (first, second) = (owned(&world, "first"), owned(&world, "second"));
        first.change(StackChange::Create, "first", LATER).await.unwrap();
        first.run(LATER).await.unwrap();
        assert!(second.change(StackChange::Create, "second", LATER).await.is_err());
        // CloudFormation takes back what it failed to make.
        second.change(deleted("state"), "second", LATER).await.unwrap();
        let refused = second.run(LATER).await.unwrap_err();
        assert!(refused.to_string().starts_with("the stack first works on this state"), "{refused}");
        assert_eq!(world.2.0.load(Ordering::Relaxed), 1);
        first.change(deleted("state"), "first", LATER).await.unwrap();
        second.change(StackChange::Create, "second", LATER).await.unwrap();
        second.run(LATER).await.unwrap();
        assert_eq!(world.2.0.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn the_claim_of_a_bucket_that_is_used_no_more_is_left_alone() {
        let world = world();
        let stack = owned(&world, "first");
        stack.change(StackChange::Update, "first", LATER).await.unwrap();
        stack.change(deleted("another"), "first", LATER).await.unwrap();
        assert!(world.0.get(OWNER).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_claim_is_renewed_every_five_minutes_and_costs_no_request_in_between() {
        let world = world();
        let calls = Calls::default();
        let store = Recorded::new(world.0.clone(), "state", &calls);
        let (stack, clock) = (Some("first".to_owned()), world.1.clone());
        let owned = Owned::new(world.2.clone(), stack, "state".to_owned(), store, clock.clone());
        let claim = [(Operation::Get, OWNER), (Operation::Put, OWNER)];
        for minute in 0..12 {
            owned.run(LATER).await.unwrap();
            let expected: &[_] = if minute % 5 == 0 { &claim } else { &[] };
            let made: Vec<_> = calls.take().into_iter().map(|call| (call.operation, call.key)).collect();
            let expected: Vec<_> = expected.iter().map(|(what, key)| (*what, (*key).to_owned())).collect();
            assert_eq!(made, expected, "minute {minute}");
            clock.advance(LATER);
        }
    }

    #[tokio::test]
    async fn a_function_without_a_stack_claims_nothing() {
        let world = world();
        let (store, clock, runs) = world.clone();
        Owned::new(runs, None, "state".to_owned(), store, clock).run(LATER).await.unwrap();
        assert!(world.0.get(OWNER).await.unwrap().is_none());
        assert_eq!(world.2.0.load(Ordering::Relaxed), 1);
    }
}
