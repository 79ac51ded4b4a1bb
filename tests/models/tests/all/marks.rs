use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::marks::{Marks, Variant};

use crate::report;

#[test]
fn letters_of_an_outage_are_recovered_once_in_every_order() {
    for (faults, deaths) in [(0, 0)] {
        let model = Marks {
            faults,
            deaths,
            ..Marks::of_the_code()
        };
        report("marks", holds("marks", model));
    }
}

#[test]
fn a_recovery_that_is_cancelled_sends_nothing_in_every_order() {
    let model = Marks {
        cancels: 1,
        faults: 0,
        deaths: 0,
        ..Marks::of_the_code()
    };
    report("marks, cancelled", holds("marks, cancelled", model));
}

#[test]
fn variants_without_a_part_are_refuted() {
    let recovered = "every letter is recovered in the end";
    let once = "a letter is sent once, and once more for each fault";
    for (variant, property) in [
        (Variant::PutWithoutMatch, recovered),
        (Variant::DeletesAtOnce, recovered),
        (Variant::EndsWithRecovery, once),
        (Variant::OpensBeforeNaming, once),
    ] {
        let model = Marks {
            variant,
            ..Marks::of_the_code()
        };
        refutes("marks", model, property);
    }
}
