use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::stack_claim::{StackClaim, Variant};

use crate::report;

const GRANTED: &str = "no stack is granted a state that another one has";

#[test]
fn one_stack_has_the_state_in_every_order() {
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
