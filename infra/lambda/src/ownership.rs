//! monitor with the claim of its stack to the state bucket: it makes the claim when the stack is
//! made, renews it before it samples, and gives it up when the stack is deleted.

use std::time::Duration;

use lambda_runtime::Error;
use parking_lot::Mutex;
use posthaste_aws::lambda::{ScheduledFunction, StackChange};
use posthaste_core::model::{OwnershipClaim, STATE_OWNER_RENEWED, Timestamp};
use posthaste_ports::{Clock, ErrorKind, ObjectStore, PortError};
use posthaste_services::{ClaimError, StackOwnership, UpdateError, timeout_at};

/// The time for which a new role may be refused before that is an error. IAM needs some seconds
/// until S3 knows it. <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html>
const ROLE_UNKNOWN_MAX: Duration = Duration::from_secs(30);

/// The time between two tries of a role that is refused.
const ROLE_TRIES: Duration = Duration::from_secs(2);

/// A function that runs only while its stack owns the state.
#[derive(Debug)]
pub struct OwnedFunction<R, S, C> {
    pub(crate) run: R,
    ownership: StackOwnership<S, C>,
    /// The id of the stack, by which it renews its claim. A function without one renews nothing.
    stack: Option<String>,
    bucket: String,
    clock: C,
    /// The time of the last claim that this process wrote. It is the wall clock's, which continues
    /// while Lambda freezes the instance.
    claimed_at: Mutex<Option<Timestamp>>,
}

impl<R, S: ObjectStore, C: Clock> OwnedFunction<R, S, C> {
    /// `run` as a function of `stack`, over the state in `bucket`.
    pub fn new(run: R, stack: Option<String>, bucket: String, state: S, clock: C) -> Self {
        Self {
            run,
            ownership: StackOwnership::new(state, clock.clone()),
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
            match self.claim_state(stack).await {
                Err(error) if is_denied(&error) && self.clock.monotonic() + ROLE_TRIES < until => {
                    self.clock.sleep(ROLE_TRIES).await;
                }
                done => return done,
            }
        }
    }

    async fn claim_state(&self, stack: &str) -> Result<(), ClaimError> {
        let now = self.clock.now();
        // Boxed, as the future of a request is large.
        if Box::pin(self.ownership.claim(stack)).await? == OwnershipClaim::Due {
            *self.claimed_at.lock() = Some(now);
        }
        Ok(())
    }

    /// Renews the claim, without a request while the last one holds.
    async fn renew_claim(&self, stack: &str) -> Result<(), ClaimError> {
        let now = self.clock.now();
        let claimed_at = *self.claimed_at.lock();
        // A claim of the future is of a clock that was set back since.
        if claimed_at.is_none_or(|at| now < at || now.since(at) >= STATE_OWNER_RENEWED) {
            self.claim_state(stack).await
        } else {
            Ok(())
        }
    }

    /// Gives up the claim. That may fail: a stack whose bucket, key or role is gone must still be
    /// deleted, and a claim that stays ends by itself.
    async fn give_up(&self, stack: &str, deadline: Duration) {
        let released = timeout_at(
            &self.clock,
            deadline,
            Box::pin(self.ownership.release(stack)),
        )
        .await
        .unwrap_or_else(|| {
            let error =
                PortError::new("release the claim before the deadline", ErrorKind::TimedOut);
            Err(UpdateError::Write(error))
        });
        if let Err(error) = released {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "claim to the state not given up, it ends by itself");
        }
    }
}

impl<R: ScheduledFunction, S: ObjectStore + 'static, C: Clock> ScheduledFunction
    for OwnedFunction<R, S, C>
{
    async fn run(&self, deadline: Duration) -> Result<(), Error> {
        if let Some(stack) = &self.stack {
            match self.renew_claim(stack).await {
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

impl<R: ScheduledFunction, S: ObjectStore + 'static, C: Clock> OwnedFunction<R, S, C> {
    /// The physical id of the claim. The claim is one to the bucket: an update that names another
    /// bucket claims that one, and the former claim ends by itself.
    pub(crate) fn claim_id(&self) -> String {
        format!("claim:{}", self.bucket)
    }

    /// Makes the change of the claim that CloudFormation asks for.
    pub(crate) async fn change_claim(
        &self,
        change: StackChange,
        stack: &str,
        deadline: Duration,
    ) -> Result<(), Error> {
        match change {
            StackChange::Create | StackChange::Update => {
                Ok(Box::pin(self.claim_patiently(stack, deadline)).await?)
            }
            StackChange::Delete { id } => {
                if id == self.claim_id() {
                    self.give_up(stack, deadline).await;
                }
                Ok(())
            }
        }
    }
}

fn is_denied(error: &ClaimError) -> bool {
    let (UpdateError::Read(error) | UpdateError::Write(error)) = error else {
        return false;
    };
    error.kind == ErrorKind::Denied
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use posthaste_core::model::StateOwner;
    use posthaste_core::stored::layout::OWNER;
    use posthaste_testkit::memory::MemoryStore;
    use posthaste_testkit::{
        CallFault, FaultPlan, Faulty, ManualClock, PortOperation, Recorded, RecordedCalls,
    };

    use super::*;

    const LATER: Duration = Duration::from_mins(1);

    /// Counts its runs.
    #[derive(Clone, Default)]
    struct Runs(Arc<AtomicUsize>);

    impl ScheduledFunction for Runs {
        async fn run(&self, _: Duration) -> Result<(), Error> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }

    type World = (MemoryStore, ManualClock, Runs);

    fn world() -> World {
        (
            MemoryStore::default(),
            ManualClock::new(Timestamp::from_millis(1_700_000_000_000)),
            Runs::default(),
        )
    }

    fn owned(
        (store, clock, runs): &World,
        stack: &str,
    ) -> OwnedFunction<Runs, MemoryStore, ManualClock> {
        let stack = Some(stack.to_owned());
        let bucket = "state".to_owned();
        OwnedFunction::new(runs.clone(), stack, bucket, store.clone(), clock.clone())
    }

    fn deleted(bucket: &str) -> StackChange {
        StackChange::Delete {
            id: format!("claim:{bucket}"),
        }
    }

    #[tokio::test]
    async fn a_second_stack_is_neither_made_nor_run_while_the_first_lives() {
        let world = world();
        let first = owned(&world, "first");
        let second = owned(&world, "second");
        first
            .change_claim(StackChange::Create, "first", LATER)
            .await
            .unwrap();
        first.run(LATER).await.unwrap();
        assert!(
            second
                .change_claim(StackChange::Create, "second", LATER)
                .await
                .is_err()
        );
        // CloudFormation takes back what it failed to make.
        second
            .change_claim(deleted("state"), "second", LATER)
            .await
            .unwrap();
        let refused = second.run(LATER).await.unwrap_err();
        assert!(
            refused
                .to_string()
                .starts_with("the stack first works on this state"),
            "{refused}"
        );
        assert_eq!(world.2.0.load(Ordering::Relaxed), 1);
        first
            .change_claim(deleted("state"), "first", LATER)
            .await
            .unwrap();
        second
            .change_claim(StackChange::Create, "second", LATER)
            .await
            .unwrap();
        second.run(LATER).await.unwrap();
        assert_eq!(world.2.0.load(Ordering::Relaxed), 2);
    }

    #[tokio::test]
    async fn the_claim_of_a_bucket_that_is_used_no_more_is_left_alone() {
        let world = world();
        let stack = owned(&world, "first");
        stack
            .change_claim(StackChange::Update, "first", LATER)
            .await
            .unwrap();
        stack
            .change_claim(deleted("another"), "first", LATER)
            .await
            .unwrap();
        assert!(world.0.get(OWNER).await.unwrap().is_some());
    }

    /// A stack is deleted whatever its state bucket returns; its claim ends by itself.
    #[tokio::test]
    async fn stack_is_deleted_even_if_its_state_bucket_fails() {
        use PortOperation::{Get, Put};
        let fails = |operation, kind| (operation, CallFault::Before(kind));
        let faults = [
            fails(Get, ErrorKind::NotFound),
            fails(Get, ErrorKind::Denied),
            fails(Put, ErrorKind::Denied),
            (Get, CallFault::HangBefore),
        ];
        for (operation, fault) in faults {
            let world = world();
            let (store, clock, runs) = world.clone();
            owned(&world, "first")
                .change_claim(StackChange::Create, "first", LATER)
                .await
                .unwrap();
            let plan = FaultPlan::at(fault.clone(), move |effect| effect.operation == operation);
            let store = Faulty::new(store, "state", &plan);
            let first = OwnedFunction::new(
                runs,
                Some("first".to_owned()),
                "state".to_owned(),
                store,
                clock.clone(),
            );
            let (deleted, _) = tokio::join!(
                biased;
                first.change_claim(deleted("state"), "first", LATER),
                async { clock.advance_to_next() }
            );
            deleted.unwrap();
            assert_eq!(plan.faults(), 1, "{operation:?} {fault:?}");
            let second = owned(&world, "second");
            assert!(
                second
                    .change_claim(StackChange::Create, "second", LATER)
                    .await
                    .is_err()
            );
            clock.advance(Duration::from_mins(10));
            second
                .change_claim(StackChange::Create, "second", LATER)
                .await
                .unwrap();
        }
    }

    /// Runs once a minute, and returns the minutes in which the state bucket was asked. Each of
    /// them is one read and one write.
    async fn renewals<C: Clock>((store, wall, runs): &World, clock: C, minutes: u64) -> Vec<u64> {
        let calls = RecordedCalls::default();
        let store = Recorded::new(store.clone(), "state", &calls);
        let owned = OwnedFunction::new(
            runs.clone(),
            Some("first".to_owned()),
            "state".to_owned(),
            store,
            clock,
        );
        let mut renewals = Vec::new();
        for minute in 0..minutes {
            owned.run(LATER).await.unwrap();
            let made: Vec<_> = calls
                .take()
                .into_iter()
                .map(|call| (call.operation, call.key))
                .collect();
            if !made.is_empty() {
                let claim = [PortOperation::Get, PortOperation::Put]
                    .map(|operation| (operation, OWNER.to_owned()));
                assert_eq!(made, claim, "minute {minute}");
                renewals.push(minute);
            }
            wall.advance(LATER);
        }
        renewals
    }

    /// A claim is renewed every five minutes and costs no request in between.
    #[tokio::test]
    async fn claim_is_renewed_every_five_minutes_without_other_requests() {
        let world = world();
        assert_eq!(renewals(&world, world.1.clone(), 12).await, [0, 5, 10]);
    }

    /// The clock of an instance that Lambda freezes between its invocations.
    #[derive(Clone)]
    struct Frozen(ManualClock);

    impl Clock for Frozen {
        fn now(&self) -> Timestamp {
            self.0.now()
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }

        async fn sleep(&self, _: Duration) {
            pending::<()>().await;
        }
    }

    #[tokio::test]
    async fn the_time_in_which_lambda_freezes_the_instance_counts() {
        let world = world();
        assert_eq!(
            renewals(&world, Frozen(world.1.clone()), 12).await,
            [0, 5, 10]
        );
    }

    #[tokio::test]
    async fn a_claim_is_renewed_at_once_after_the_clock_was_set_back() {
        let world = world();
        let stack = owned(&world, "first");
        stack.run(LATER).await.unwrap();
        world.1.set_back(Duration::from_hours(1));
        stack.run(LATER).await.unwrap();
        let owner = StateOwner::parse(&world.0.get(OWNER).await.unwrap().unwrap().bytes).unwrap();
        assert_eq!(owner.seen_at, world.1.now());
    }

    #[tokio::test]
    async fn a_function_without_a_stack_claims_nothing() {
        let world = world();
        let (store, clock, runs) = world.clone();
        OwnedFunction::new(runs, None, "state".to_owned(), store, clock)
            .run(LATER)
            .await
            .unwrap();
        assert!(world.0.get(OWNER).await.unwrap().is_none());
        assert_eq!(world.2.0.load(Ordering::Relaxed), 1);
    }
}
