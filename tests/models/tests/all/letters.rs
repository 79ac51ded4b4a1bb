use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::letters::{Letters, Variant};

use crate::report;

#[test]
fn an_event_keeps_one_letter_in_every_order() {
    for (deliveries, may_arrive) in [(2, true), (3, false)] {
        let model = Letters::of_the_code(deliveries, may_arrive);
        report("letters", holds("letters", model));
    }
}

#[test]
fn variants_without_a_part_are_refuted() {
    let one = "at rest it has one letter, and one more for each fault";
    let kept = "an event that did not arrive has a letter";
    for (variant, property, faults) in [
        (Variant::PutWithoutMatch, one, 0),
        (Variant::NoChain, one, 0),
        (Variant::ResolvesFirst, kept, 1),
    ] {
        let model = Letters {
            variant,
            faults,
            deaths: faults,
            ..Letters::of_the_code(2, false)
        };
        refutes("letters", model, property);
    }
}
