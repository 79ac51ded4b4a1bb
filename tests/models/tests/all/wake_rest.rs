use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::wake_rest::{Variant, WakeRest};

use crate::report;

/// A signal ends a minute after the work that needs no other (`ENDING`): clocks may be apart by it, or
/// work may take as long.
#[test]
fn work_is_found_whatever_rests_in_every_order() {
    for (behind, making) in [([0, 1], 0), ([0, 0], 1)] {
        let model = WakeRest::of_the_code(behind, making);
        report("wake_rest", holds("wake_rest", model));
    }
}

#[test]
fn work_whose_signal_is_lost_is_found_after_a_rest() {
    let model = WakeRest::losing_a_signal();
    report("wake_rest, lost", holds("wake_rest, lost", model));
}

#[test]
fn variants_without_a_part_are_refuted() {
    let announced = "announced work is found by the next runs";
    for variant in [Variant::WorkBeforeSignal, Variant::RestsWithoutLook] {
        let model = WakeRest {
            variant,
            ..WakeRest::of_the_code([0, 0], 0)
        };
        refutes("wake_rest", model, announced);
    }
}
