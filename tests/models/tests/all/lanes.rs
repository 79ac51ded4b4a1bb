use posthaste_tests_models::check::{holds, refutes};
use posthaste_tests_models::lanes::{Lanes, Variant};

use crate::report;

#[test]
fn a_message_is_kept_through_both_lanes_in_every_order() {
    for (faults, deaths) in [(1, 0), (0, 1)] {
        let model = Lanes {
            faults,
            deaths,
            ..Lanes::of_the_code()
        };
        report("lanes", holds("lanes", model));
    }
}

#[test]
fn a_slow_lane_is_drained_in_every_order() {
    let model = Lanes {
        is_drained: true,
        ..Lanes::of_the_code()
    };
    report("lanes, drained", holds("lanes, drained", model));
}

#[test]
fn variants_without_a_part_are_refuted() {
    let kept = "a message is in a queue or has arrived";
    let agreed = "two late requests within a minute make a target slow";
    for (variant, property) in [
        (Variant::SettlesFirst, kept),
        (Variant::SettlesAnyway, kept),
        (Variant::PutWithoutMatch, agreed),
    ] {
        let model = Lanes {
            variant,
            faults: u8::from(property == kept),
            deaths: u8::from(property == kept),
            ticks: 0,
            ..Lanes::of_the_code()
        };
        refutes("lanes", model, property);
    }
}
