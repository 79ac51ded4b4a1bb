use std::time::Duration;

use futures_util::future::join;
use posthaste_core::model::{OwnershipClaim, STATE_OWNER_RENEWED};
use posthaste_core::stored::layout;
use posthaste_ports::{ErrorKind, ObjectStore};
use posthaste_services::{ClaimRefused, StackOwnership, UpdateError};
use posthaste_testkit::memory::MemoryStore;
use posthaste_testkit::{CallFault, FaultPlan, Faulty, ManualClock, PortOperation};
use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::stack_claim::{Key, Phase, StackClaim, Variant};
use posthaste_tests_models::step::Actor;
use posthaste_tests_models::trace::{Notes, Run, Traced, follow};

use crate::kit::START;
use crate::report;

const GRANTED: &str = "no stack is granted a state that another one has";

/// The stacks of a run over one state bucket, each with its claims. The first one has the state.
struct Stacks {
    clock: ManualClock,
    state: MemoryStore,
    notes: Notes,
}

impl Stacks {
    async fn new() -> Self {
        let stacks = Self {
            clock: ManualClock::new(START),
            state: MemoryStore::like_s3(1000),
            notes: Notes::default(),
        };
        let first = StackOwnership::new(stacks.state.clone(), stacks.clock.clone());
        first.claim(&name(0)).await.unwrap();
        stacks
    }

    fn of(&self, stack: Actor) -> StackOwnership<Traced<MemoryStore>, ManualClock> {
        self.over(self.state.clone(), stack)
    }

    /// The claims of a stack over this store of the same objects.
    fn over<S: ObjectStore>(
        &self,
        store: S,
        stack: Actor,
    ) -> StackOwnership<Traced<S>, ManualClock> {
        let store = Traced::new(store, stack, &self.notes);
        StackOwnership::new(store, self.clock.clone())
    }

    /// Deploys a stack while another one has the state. What failed is rolled back.
    async fn is_refused(&self, stack: Actor) {
        let ownership = self.of(stack);
        let refused = ownership.claim(&name(stack)).await.unwrap_err();
        assert!(
            matches!(refused, UpdateError::Edit(ClaimRefused::Living(_))),
            "{refused}"
        );
        ownership.release(&name(stack)).await.unwrap();
    }

    fn run(&self) -> Run<Key> {
        let store_key = |key: &str| (key == layout::OWNER).then_some(Key::Owner);
        Run::of(&self.notes, store_key, |_| None, None)
    }
}

fn name(stack: Actor) -> String {
    format!("stack-{stack}")
}

#[test]
fn single_stack_has_the_state_in_every_order() {
    let model = StackClaim::of_the_code([0, 1, 0]);
    report("stack_claim", holds("stack_claim", model));
}

#[test]
fn claim_without_a_condition_is_refuted() {
    let model = StackClaim {
        variant: Variant::PutWithoutMatch,
        ..StackClaim::of_the_code([0, 0, 0])
    };
    refutes("stack_claim", model, GRANTED);
}

/// The functions of a stack have stood still for ten minutes, it is deleted, and between its look and
/// its delete another one takes the state. Its claim is deleted then, and a third stack is granted the
/// same state.
#[test]
fn claim_that_is_given_up_by_a_delete_is_refuted() {
    let model = StackClaim {
        variant: Variant::ReleasesByDelete,
        may_stop: true,
        ..StackClaim::of_the_code([0, 0, 0])
    };
    refutes("stack_claim", model, GRANTED);
}

#[test]
fn stack_that_stood_still_is_deleted_in_every_order() {
    let model = StackClaim {
        may_stop: true,
        ..StackClaim::of_the_code([0, 0, 0])
    };
    report("stack_claim, stopped", holds("stack_claim, stopped", model));
}

/// A second stack is refused while the first one renews its claim. Then the first is deleted, and
/// the third has the state at once.
#[tokio::test]
async fn calls_of_stacks_are_steps_of_the_model() {
    let stacks = Stacks::new().await;
    stacks.is_refused(1).await;
    let first = stacks.of(0);
    stacks.clock.advance(STATE_OWNER_RENEWED);
    assert_eq!(first.claim(&name(0)).await.unwrap(), OwnershipClaim::Due);
    first.release(&name(0)).await.unwrap();
    let third = stacks.of(2);
    assert_eq!(third.claim(&name(2)).await.unwrap(), OwnershipClaim::Due);
    let run = stacks.run();
    assert_eq!(run.calls().len(), 8, "{run:#?}");
    let model = StackClaim {
        faults: 0,
        ..StackClaim::of_the_code([0, 0, 0])
    };
    let ends = follow("stack_claim", &model, &run, (1, 8));
    let phases = [Phase::Gone, Phase::Gone, Phase::Lives];
    assert!(
        ends.iter()
            .any(|end| end.stacks.map(|stack| stack.phase) == phases)
    );
}

/// Two stacks find the state given up at once. One of them wins, and the other is rolled back.
#[tokio::test]
async fn calls_of_stacks_that_claim_at_once_are_steps_of_the_model() {
    let stacks = Stacks::new().await;
    stacks.of(0).release(&name(0)).await.unwrap();
    let first = stacks.of(1);
    let second = stacks.of(2);
    let claimed = name(1);
    let refused = name(2);
    let (claimed, refused) = join(first.claim(&claimed), second.claim(&refused)).await;
    claimed.unwrap();
    refused.unwrap_err();
    second.release(&name(2)).await.unwrap();
    let run = stacks.run();
    assert_eq!(run.calls().len(), 8, "{run:#?}");
    let model = StackClaim {
        faults: 0,
        ..StackClaim::of_the_code([0, 0, 0])
    };
    let ends = follow("stack_claim", &model, &run, (1, 4));
    let phases = [Phase::Gone, Phase::Lives, Phase::Gone];
    assert!(
        ends.iter()
            .any(|end| end.stacks.map(|stack| stack.phase) == phases)
    );
}

/// The functions of the first stack stand still, and the second takes its state by a claim whose
/// answer is lost. It is rolled back, and gives up what it does not know it has.
#[tokio::test]
async fn calls_of_a_claim_whose_answer_is_lost_are_steps_of_the_model() {
    let stacks = Stacks::new().await;
    stacks.clock.advance(Duration::from_mins(10));
    let plan = FaultPlan::nth_of(0, CallFault::After(ErrorKind::Other), |effect| {
        effect.operation == PortOperation::Put
    });
    let second = stacks.over(Faulty::new(stacks.state.clone(), "state", &plan), 1);
    let lost = second.claim(&name(1)).await.unwrap_err();
    assert!(matches!(lost, UpdateError::Write(_)), "{lost}");
    second.release(&name(1)).await.unwrap();
    let third = stacks.of(2);
    assert_eq!(third.claim(&name(2)).await.unwrap(), OwnershipClaim::Due);
    let run = stacks.run();
    assert_eq!(run.calls().len(), 6, "{run:#?}");
    let model = StackClaim {
        may_stop: true,
        ..StackClaim::of_the_code([0, 0, 0])
    };
    let ends = follow("stack_claim", &model, &run, (1, 12));
    let phases = [Phase::Lives, Phase::Gone, Phase::Lives];
    assert!(
        ends.iter()
            .any(|end| end.stacks.map(|stack| stack.phase) == phases)
    );
}
