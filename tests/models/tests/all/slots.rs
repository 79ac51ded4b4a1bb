use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::slots::{Slots, Variant};

use crate::report;

const BOUND: &str = "no more requests are open than the bound";

#[test]
fn open_requests_stay_within_the_bound_in_every_order() {
    for (limit, ahead) in [(1, [0, 0]), (1, [1, 0]), (2, [0, 0])] {
        let model = Slots::of_the_code(limit, ahead);
        report("slots", holds("slots", model));
    }
}

#[test]
fn clocks_further_apart_than_the_margin_are_refuted() {
    refutes("slots", Slots::of_the_code(1, [2, 0]), BOUND);
}

#[test]
fn variants_without_a_part_are_refuted() {
    for variant in [
        Variant::PutWithoutMatch,
        Variant::CountsLateLeases,
        Variant::GivesBackBeforeItShrinks,
    ] {
        let model = Slots {
            variant,
            ..Slots::of_the_code(1, [0, 0])
        };
        refutes("slots", model, BOUND);
    }
}
