//! Whether pressure is far away.

use super::*;

fn after(readings: &ResourceReadings, before: &PressureState) -> PressureState {
    evaluate_pressure(
        before,
        readings,
        &PressureSettings::default(),
        before.at + POLL,
    )
    .0
}

fn check(readings: &ResourceReadings, expected: bool) {
    let state = after(readings, &PressureState::normal(START));
    assert_eq!(state.is_calm(), expected, "{readings:?}");
}

#[test]
fn state_is_calm_below_half_of_normal() {
    check(&at_rest(), true);
    // The thresholds for Normal are 2000 messages, 1000 dead letters and 30 seconds.
    check(
        &ResourceReadings {
            visible: Some(999),
            ..at_rest()
        },
        true,
    );
    check(
        &ResourceReadings {
            visible: Some(1_000),
            ..at_rest()
        },
        false,
    );
    check(
        &ResourceReadings {
            dead_letters: Some(500),
            ..at_rest()
        },
        false,
    );
    check(
        &ResourceReadings {
            drain_secs: Some(15),
            ..at_rest()
        },
        false,
    );
}

#[test]
fn unreadable_resource_is_not_calm() {
    let rest = after(&at_rest(), &PressureState::normal(START));
    assert!(rest.is_calm());
    assert!(
        !after(
            &ResourceReadings {
                visible: None,
                ..at_rest()
            },
            &rest
        )
        .is_calm()
    );
    check(&ResourceReadings::default(), false);
}

#[test]
fn state_is_not_calm_while_a_tarpit_runs_out() {
    let rest = after(&at_rest(), &PressureState::normal(START));
    let base = PressureState {
        tarpit_ms: 100,
        base_ms: 100,
        ..rest.clone()
    };
    assert!(base.is_calm());
    assert!(
        !PressureState {
            tarpit_ms: 5_000,
            ..rest
        }
        .is_calm()
    );
}
